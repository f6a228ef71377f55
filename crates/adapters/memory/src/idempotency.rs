//! Effects that happen once per request, in memory.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{
    FutureExt,
    future::{BoxFuture, LocalBoxFuture},
    lock::Mutex,
};
use labdata_domain::idempotency::{CompletedRequest, StoredResponse};
use labdata_ports::{
    PortError,
    idempotency::{Idempotency, IdempotentRequest, Once, OnceError},
};
use time::OffsetDateTime;

use crate::Memory;

/// The last answered request of a key, locked while a request runs.
pub(crate) type Slot = Arc<Mutex<Option<CompletedRequest>>>;

/// Idempotency keys in memory. What an effect did before it failed is not undone: the fakes of
/// this crate change nothing when they fail.
#[derive(Clone, Debug)]
pub struct InMemoryIdempotency {
    memory: Memory,
}

impl InMemoryIdempotency {
    /// The keys in that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl InMemoryIdempotency {
    fn slot(&self, request: &IdempotentRequest) -> Slot {
        let mut state = self.memory.lock();
        let name = (
            request.api_key,
            request.operation.clone(),
            request.key.clone(),
        );
        Arc::clone(state.responses.entry(name).or_default())
    }
}

#[async_trait(?Send)]
impl Idempotency for InMemoryIdempotency {
    async fn once(
        &self,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError> {
        let slot = self.slot(request);
        let mut slot = slot.lock().await;
        if let Some(answered) = slot.clone()
            && let Some(response) = answered.replay(&request.body_sha256, request.now)?
        {
            return Ok(Once::Replayed(response));
        }
        *slot = effect.await.map(|response| CompletedRequest {
            body_sha256: request.body_sha256,
            answered_at: request.now,
            response,
        });
        Ok(Once::Ran)
    }

    async fn answered(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError> {
        let slot = self.slot(request);
        let answered = slot.try_lock().and_then(|answered| answered.clone());
        Ok(match answered {
            Some(answered) => answered.replay(&request.body_sha256, request.now)?,
            None => None,
        })
    }

    fn forget_expired(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> BoxFuture<'_, Result<u64, PortError>> {
        async move {
            let state = self.memory.lock();
            let mut forgotten = 0;
            for slot in state.responses.values() {
                if forgotten == u64::from(limit) {
                    break;
                }
                if let Some(mut slot) = slot.try_lock()
                    && slot.take_if(|answered| answered.has_expired(now)).is_some()
                {
                    forgotten += 1;
                }
            }
            Ok(forgotten)
        }
        .boxed()
    }
}
