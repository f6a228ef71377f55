//! The sandbox: entry point of the crate.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::{error::SandboxError, host::HostCapabilities, settings::Settings};

/// Runner of isolated processes. Its processes end with it.
#[derive(Debug)]
pub struct Sandbox {
    settings: Settings,
    host: OnceCell<Arc<HostCapabilities>>,
}

impl Sandbox {
    /// Creates a sandbox. The host is examined on first use, so that a server without Python can
    /// serve everything else.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            host: OnceCell::new(),
        }
    }

    /// Returns the capabilities of this host. The first call runs a Python to find them.
    ///
    /// # Errors
    /// [`SandboxError`], with the missing prerequisite.
    pub async fn host(&self) -> Result<&Arc<HostCapabilities>, SandboxError> {
        let opened = self.host.get_or_try_init(|| async {
            HostCapabilities::open(&self.settings).await.map(Arc::new)
        });
        opened.await
    }
}
