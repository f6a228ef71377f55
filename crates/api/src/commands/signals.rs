//! SIGTERM and SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, watched from construction on.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts watching; from then on the signals no longer end the process by themselves.
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
