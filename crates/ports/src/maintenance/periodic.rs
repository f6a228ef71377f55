//! Schedule of periodic tasks that one server at a time runs.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::PortError;

/// Response to a claim of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassClaim {
    /// The caller runs the pass.
    Granted,
    /// The task is not due.
    NotDue {
        /// Time from which a claim is granted.
        due_at: OffsetDateTime,
        /// End of the last successful pass.
        last_success_at: Option<OffsetDateTime>,
    },
}

/// Result of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassResult {
    /// The pass succeeded. The task stays due when its claim said.
    Succeeded {
        /// End of the pass.
        at: OffsetDateTime,
    },
    /// The pass failed.
    Failed {
        /// End of the pass.
        at: OffsetDateTime,
        /// Error, for operators.
        error: String,
        /// Time from which the next claim is granted.
        due_at: OffsetDateTime,
    },
}

/// Decides which server runs a periodic task, and stores when it last did.
#[async_trait]
pub trait PeriodicTaskStore: Send + Sync {
    /// Claims a pass of the task if it is due at `now`; it is then due again at `next_due_at`. A
    /// task that was never claimed is due. Of racing calls, from any servers, one MUST be granted.
    async fn claim(
        &self,
        task: &str,
        now: OffsetDateTime,
        next_due_at: OffsetDateTime,
    ) -> Result<PassClaim, PortError>;

    /// Stores the result of a pass that was granted.
    async fn record(&self, task: &str, result: &PassResult) -> Result<(), PortError>;
}
