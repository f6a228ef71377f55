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
use labdata_sandbox::{Sandbox, StopHandle, stop_channel};

use crate::{
    packages::{Packages, unavailable},
    process::ReadingProcess,
    settings::FileReaderSettings,
};

/// Reads files in processes of this machine. They end with it.
#[derive(Debug)]
pub struct SandboxFileReader {
    sandbox: Arc<Sandbox>,
    settings: FileReaderSettings,
    packages: Packages,
    slots: FairSlots<OrganizationId>,
    /// Number of the next reading.
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
            packages: Packages::default(),
            slots: FairSlots::new(settings.of_one_organization(), all),
            next: AtomicU64::new(0),
        }
    }
}

/// Kills a reading whose caller has left.
struct KilledOnDrop(Arc<StopHandle>);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[async_trait]
impl FileReader for SandboxFileReader {
    async fn read(&self, request: ReadingRequest) -> Result<Reading, ReadingFailure> {
        // Before the slot: waiting for the installation must not occupy one.
        self.prepare().await?;
        let slot = self.slots.enter(request.organization).await;
        let slot = slot.ok_or(ReadingFailure::Busy)?;
        let host = self.sandbox.host().await;
        let host = host.map_err(|error| unavailable(&error))?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (stop, signal) = stop_channel();
        let stop = Arc::new(stop);
        let process = ReadingProcess {
            workspace: host.workspace(&format!("reading-{number}")),
            host,
            request,
            stop: Arc::clone(&stop),
            signal,
        };
        let _killed = KilledOnDrop(stop);
        // A separate task, so that a caller that leaves does not leave the workspace behind.
        let task = tokio::spawn(async move {
            let outcome = process.run().await;
            // After the workspace is removed: until then the reading uses memory and disk.
            drop(slot);
            outcome
        });
        task.await
            .unwrap_or_else(|error| Err(ReadingFailure::Unavailable(error.to_string())))
    }

    async fn prepare(&self) -> Result<(), ReadingFailure> {
        self.packages
            .ready(&self.sandbox, self.settings.timeout)
            .await
    }
}
