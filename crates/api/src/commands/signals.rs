//! SIGTERM and SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the process to end, watched from the moment this is made.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to watch; from now on the signals no longer kill the process.
    pub(super) fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits until one of them arrives.
    pub(super) async fn arrive(&mut self) {
        let name = tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        };
        tracing::info!(signal = name, "stopping");
    }
}
