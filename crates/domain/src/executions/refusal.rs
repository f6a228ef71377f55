//! Refusals to end an execution.

use crate::{
    ids::ExecutionId,
    refusal::{ErrorCode, Refuse},
};

/// Why an execution cannot be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// It has ended with another status.
    #[error("this execution is already {0}, which is final")]
    EndedOtherwise(&'static str),
    /// It runs on the platform.
    #[error(
        "this execution runs on the platform, which records itself how it ends; to stop it, \
         cancel it"
    )]
    RunsOnPlatform,
    /// A data write created it.
    #[error(
        "this execution was created by a data write, which completed it; there is nothing to close"
    )]
    CreatedByWrite,
    /// An agent writes under it.
    #[error(
        "this execution was opened for what an agent writes, and ends with the agent's run or \
         session; to stop it, cancel it"
    )]
    OfAgent,
}

impl Refuse for CloseError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::EndedOtherwise(_) => ErrorCode::ExecutionEnded,
            Self::RunsOnPlatform | Self::CreatedByWrite | Self::OfAgent => {
                ErrorCode::ExecutionNotClosable
            }
        }
    }
}

/// Why an execution cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// It has ended.
    #[error("this execution is already {0}, which is final")]
    Ended(&'static str),
    /// It has failed, and another one retries it.
    #[error("this execution lost its worker, and execution {0} retries it: cancel that one")]
    Retried(ExecutionId),
}

impl Refuse for CancelError {
    fn code(&self) -> ErrorCode {
        ErrorCode::ExecutionEnded
    }
}
