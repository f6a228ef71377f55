//! Implementation of the port of Python snippets.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use labdata_domain::{
    agent::{PythonOutcome, PythonUnavailable},
    ids::OrganizationId,
};
use labdata_limits::FairSlots;
use labdata_ports::agent::{PythonSandbox, PythonSnippet};
use labdata_sandbox::{KillOnDrop, PlatformProgram, Sandbox, stop_channel};

use crate::{
    packages::{snippet_program, unavailable},
    process::SnippetRun,
    settings::SnippetSettings,
};

/// Runs snippets as processes of this machine. They end with it.
#[derive(Debug)]
pub struct SnippetSandbox {
    sandbox: Arc<Sandbox>,
    settings: SnippetSettings,
    /// The program, or why there is none.
    program: Result<PlatformProgram, PythonUnavailable>,
    slots: FairSlots<OrganizationId>,
    /// Number of the next snippet.
    next: AtomicU64,
}

impl SnippetSandbox {
    /// Creates a sandbox of snippets. Nothing is installed before the first one.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, settings: SnippetSettings) -> Self {
        let all = settings.concurrency.max(1);
        Self {
            sandbox,
            settings,
            program: snippet_program()
                .map_err(|flaw| PythonUnavailable::Unavailable(flaw.to_string())),
            slots: FairSlots::new(settings.of_one_organization(), all),
            next: AtomicU64::new(0),
        }
    }
}

#[async_trait]
impl PythonSandbox for SnippetSandbox {
    async fn run(&self, snippet: PythonSnippet) -> Result<PythonOutcome, PythonUnavailable> {
        let timeout = self.settings.timeout;
        // Before the slot: waiting for the installation must not occupy one.
        let program = self.program.clone()?;
        let ready = program.ready(&self.sandbox, timeout).await;
        ready.map_err(unavailable)?;
        let slot = self.slots.enter(snippet.organization).await;
        let slot = slot.ok_or(PythonUnavailable::Busy)?;
        let host = self.sandbox.host().await;
        let host = host.map_err(unavailable)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (stop, signal) = stop_channel();
        let stop = Arc::new(stop);
        let run = SnippetRun {
            program,
            workspace: host.workspace(&format!("python-{number}")),
            host,
            snippet,
            time_limit: self.settings.time_limit,
            stop: Arc::clone(&stop),
            signal,
        };
        let _killed = KillOnDrop(stop);
        // A separate task, so that a caller that leaves does not leave the workspace behind.
        let task = tokio::spawn(async move {
            let outcome = run.run().await;
            // After the workspace is removed: until then the snippet uses memory and disk.
            drop(slot);
            outcome
        });
        task.await
            .unwrap_or_else(|error| Err(PythonUnavailable::Unavailable(error.to_string())))
    }
}
