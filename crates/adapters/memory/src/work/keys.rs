//! Keys of runs in memory.

use async_trait::async_trait;
use labdata_domain::{
    people::{ApiKey, run_nonce::RunNonce},
    work::WorkId,
};
use labdata_ports::{
    PortError,
    work::{NonceUse, RunKeys, WorkClaim},
};

use crate::memory::fake;

fake!(
    /// Keys of runs in memory.
    pub struct InMemoryRunKeys;
);

#[async_trait]
impl RunKeys for InMemoryRunKeys {
    async fn issue(&self, claim: WorkClaim, key: &ApiKey) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        if state.held(claim).is_none() {
            return Ok(false);
        }
        state.add_api_key(key)?;
        Ok(true)
    }

    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        state.require_user(nonce.organization, nonce.user)?;
        let held = state.held(WorkClaim {
            organization: nonce.organization,
            work: WorkId::Execution(nonce.execution),
            attempt: nonce.attempt,
        });
        Ok(held.map(|row| row.nonce = Some(nonce.clone())).is_some())
    }

    async fn redeem_nonce(&self, claim: WorkClaim, key: &ApiKey) -> Result<NonceUse, PortError> {
        let mut state = self.memory.lock();
        let nonce = state.held(claim).and_then(|row| row.nonce.as_ref());
        match nonce.map(|nonce| nonce.used_at) {
            None => Ok(NonceUse::RunLost),
            Some(Some(_)) => {
                if let Some(id) = claim.work.execution() {
                    state.revoke_run_keys(id, key.created_at);
                }
                Ok(NonceUse::Repeated)
            }
            Some(None) => {
                state.add_api_key(key)?;
                let nonce = state.held(claim).and_then(|row| row.nonce.as_mut());
                if let Some(nonce) = nonce {
                    nonce.used_at = Some(key.created_at);
                }
                Ok(NonceUse::First)
            }
        }
    }
}
