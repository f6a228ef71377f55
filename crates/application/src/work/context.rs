//! Context that a worker passes to its work.

use labdata_domain::work::{BackendPolicy, RunLimits, WorkKind};

use super::begin_run::RunContext;
use crate::models::training::begin_training::TrainingContext;

/// Context that a worker passes to all its work of one kind.
#[derive(Clone, Debug)]
pub enum WorkContext {
    /// For runs.
    Run(RunContext),
    /// For trainings.
    Training(TrainingContext),
}

impl WorkContext {
    /// Returns the kind of work.
    #[must_use]
    pub const fn kind(&self) -> WorkKind {
        match self {
            Self::Run(_) => WorkKind::Run,
            Self::Training(_) => WorkKind::Training,
        }
    }

    /// Returns the rules for the backend.
    #[must_use]
    pub const fn policy(&self) -> BackendPolicy {
        match self {
            Self::Run(context) => context.policy,
            Self::Training(context) => context.policy,
        }
    }

    /// Returns the limits of each script.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        match self {
            Self::Run(context) => context.limits,
            Self::Training(context) => context.limits.of_run(),
        }
    }
}
