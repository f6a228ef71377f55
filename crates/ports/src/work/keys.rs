//! Keys of runs.

use async_trait::async_trait;
use labdata_domain::people::{ApiKey, run_nonce::RunNonce};

use super::WorkClaim;
use crate::PortError;

/// Outcome of the use of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceUse {
    /// It was used for the first time; the key is stored.
    First,
    /// It was used before; the run's keys are revoked.
    Repeated,
    /// The run was taken from the holder, and the nonce with it.
    RunLost,
}

/// Keys of runs, and the nonces that runs exchange for them. Both end with the lease of the run.
#[async_trait]
pub trait RunKeys: Send + Sync {
    /// Stores a key of a run, unless the run was taken from the holder; returns whether it did.
    /// A key that is stored after that would never be revoked.
    async fn issue(&self, claim: WorkClaim, key: &ApiKey) -> Result<bool, PortError>;

    /// Stores the nonce of a run, unless the run was taken from the holder; returns whether it did. It replaces
    /// an earlier nonce of the run.
    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError>;

    /// Marks the nonce of a claim as used at the key's creation time and stores the key, in one step. Of
    /// racing calls, from all servers, one MUST be the first. Every other MUST revoke the run's keys.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the key's prefix is taken; the nonce is then not used.
    async fn redeem_nonce(&self, claim: WorkClaim, key: &ApiKey) -> Result<NonceUse, PortError>;
}
