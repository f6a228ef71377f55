//! Implementation of the port.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use labdata_domain::{
    ids::OrganizationId,
    instruments::{Reading, ReadingFailure},
};
use labdata_limits::FairSlots;
use labdata_ports::instruments::{FileReader, ReadingRequest};
use labdata_sandbox::{PlatformProgram, Sandbox};

use crate::{
    pool::Pool,
    process::{Launch, WarmProcess},
    program::{reader_program, unavailable},
    settings::FileReaderSettings,
};

/// Reads files in processes of this machine. They end with it.
#[derive(Debug)]
pub struct SandboxFileReader {
    sandbox: Arc<Sandbox>,
    settings: FileReaderSettings,
    /// The program, or why there is none.
    program: Result<PlatformProgram, ReadingFailure>,
    slots: FairSlots<OrganizationId>,
    pool: Arc<Pool>,
    /// Number of the next process.
    next: AtomicU64,
}

impl SandboxFileReader {
    /// Creates a reader of files. Nothing is installed before the first one.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, settings: FileReaderSettings) -> Self {
        let all = settings.concurrency.max(1);
        Self {
            sandbox,
            settings,
            program: reader_program(),
            slots: FairSlots::new(settings.of_one_organization(), all),
            pool: Arc::new(Pool::new(all, settings.idle)),
            next: AtomicU64::new(0),
        }
    }

    /// Returns the number of processes that were started so far.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the installed program.
    async fn installed(&self) -> Result<PlatformProgram, ReadingFailure> {
        let program = self.program.clone()?;
        let ready = program.ready(&self.sandbox, self.settings.timeout).await;
        ready.map(|()| program).map_err(unavailable)
    }

    /// Returns a process of the organization that waits, or a new one.
    async fn process(
        &self,
        organization: OrganizationId,
        program: PlatformProgram,
    ) -> Result<WarmProcess, ReadingFailure> {
        if let Some(process) = self.pool.take(organization) {
            return Ok(process);
        }
        let permit = self.pool.permit().await.ok_or(ReadingFailure::Busy)?;
        let host = self.sandbox.host().await.map_err(unavailable)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let launch = Launch {
            organization,
            program,
            workspace: host.workspace(&format!("reader-{number}")),
            host,
            memory: self.settings.memory,
            permit,
        };
        launch.start().await
    }
}

#[async_trait]
impl FileReader for SandboxFileReader {
    async fn read(&self, request: ReadingRequest) -> Result<Reading, ReadingFailure> {
        // Before the slot: waiting for the installation must not occupy one.
        let program = self.installed().await?;
        let slot = self.slots.enter(request.organization).await;
        let _slot = slot.ok_or(ReadingFailure::Busy)?;
        // Dropped, and so killed, when the caller leaves.
        let mut process = self.process(request.organization, program).await?;
        let reading = process.read(&request).await?;
        self.pool.put_back(process);
        Ok(reading)
    }

    async fn prepare(&self) -> Result<(), ReadingFailure> {
        self.installed().await.map(drop)
    }
}
