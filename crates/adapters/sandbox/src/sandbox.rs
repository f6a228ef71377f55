//! The sandbox: entry point of the crate.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use tokio::sync::OnceCell;

use crate::{error::SandboxError, host::HostCapabilities, supervisor::Isolation};

/// Configuration of a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Data directory of the platform, absolute.
    pub data_dir: PathBuf,
    /// Program that calls [`supervise`](crate::supervise), and its arguments.
    pub supervisor: Vec<OsString>,
    /// Python that runs scripts; default: `python3` of the path.
    pub python: Option<PathBuf>,
    /// uv that installs dependencies; default: that of the path, or a pinned one that is fetched
    /// once.
    pub uv: Option<PathBuf>,
    /// Strongest isolation to use. Weaker isolation is used where the kernel does not allow it.
    pub isolation: Isolation,
}

impl Settings {
    /// Returns settings with that data directory and supervisor, and defaults for the rest.
    #[must_use]
    pub fn new(data_dir: PathBuf, supervisor: Vec<OsString>) -> Self {
        Self {
            data_dir,
            supervisor,
            python: None,
            uv: None,
            isolation: Isolation::Namespaces,
        }
    }
}

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
