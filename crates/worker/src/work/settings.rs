//! Settings of the work that a worker does.

use std::{fmt, sync::Arc, time::Duration};

use labdata_application::work::WorkContext;
use labdata_ports::work::runner::JobRunner;

/// Backend of a kind of work, and how a worker uses it.
#[derive(Clone)]
pub struct BackendSettings {
    /// Backend that runs scripts.
    pub runner: Arc<dyn JobRunner>,
    /// Maximum number of concurrent runs.
    pub concurrency: u32,
    /// Time for which the backend may be unavailable. After it, a run that has not begun fails, and
    /// one that has begun is lost and tried once more.
    pub timeout: Duration,
}

/// Default of [`BackendSettings::timeout`].
pub const BACKEND_TIMEOUT: Duration = Duration::from_secs(30);

impl fmt::Debug for BackendSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendSettings")
            .field("concurrency", &self.concurrency)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Settings of one kind of work.
#[derive(Clone, Debug)]
pub struct WorkSettings {
    /// Backend that runs its scripts.
    pub backend: BackendSettings,
    /// The kind, with limits, URL of the platform, and rules for the backend.
    pub context: WorkContext,
}
