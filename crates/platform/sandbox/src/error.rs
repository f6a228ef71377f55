//! Errors of the sandbox.

/// Error of a [`Sandbox`](crate::Sandbox) operation. The texts are for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// No usable Python is installed; a retry does not help.
    #[error("there is no Python on this server: {0}")]
    NoPython(String),
    /// This host does not offer the minimum of isolation; another trial may succeed later.
    #[error("scripts would be isolated too little: {0}")]
    InsufficientIsolation(String),
    /// The operation failed on this host, and may succeed later.
    #[error("{0}")]
    Unavailable(String),
}
