//! Settings of the predictor.

use std::time::Duration;

use labdata_domain::models::TaskType;

/// Configuration of a [`SandboxPredictor`](crate::SandboxPredictor).
#[derive(Clone, Debug)]
pub struct PredictorSettings {
    /// Maximum number of processes, at least 1.
    pub limit: usize,
    /// Time without a request after which a process is ended.
    pub idle: Duration,
    /// Time that a caller waits while a process is prepared.
    pub timeout: Duration,
    /// Time within which a process must respond something while requests wait.
    pub response_limit: Duration,
    /// Memory of a process, in bytes.
    pub memory: u64,
    /// Number of processors that a process may use.
    pub cpus: usize,
    /// The programs of the processes.
    pub scripts: PredictorScripts,
}

/// Scripts that load an artifact and respond to requests.
#[derive(Clone, Debug)]
pub struct PredictorScripts {
    /// Script for models of tables.
    pub tabular: String,
    /// Script for models of images and texts, and for segmentation.
    pub multimodal: String,
}

impl PredictorSettings {
    /// Returns settings with these scripts, and defaults for the rest: 4 processes of 4 GiB, ended after
    /// 10 minutes without a request.
    #[must_use]
    pub fn new(scripts: PredictorScripts) -> Self {
        Self {
            limit: 4,
            idle: Duration::from_mins(10),
            timeout: Duration::from_secs(20),
            response_limit: Duration::from_mins(1),
            memory: 4 << 30,
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            scripts,
        }
    }
}

impl PredictorScripts {
    /// Returns the script for models of that kind.
    pub(crate) fn of(&self, task: TaskType) -> &str {
        match task {
            TaskType::Tabular => &self.tabular,
            TaskType::Multimodal | TaskType::Segmentation => &self.multimodal,
        }
    }
}
