//! Effects that happen once per request, in memory.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures::lock::{Mutex as AsyncMutex, OwnedMutexGuard};
use labdata_domain::{
    idempotency::{CompletedRequest, StoredResponse},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError, Repositories,
    idempotency::{Begun, Idempotency, IdempotentRequest, OnceError, UnitOfWork, Units},
};
use time::OffsetDateTime;

use crate::{Memory, memory::fake, repositories};

/// The last completed request of a key, locked while a request runs.
pub(crate) type Slot = Arc<AsyncMutex<Option<CompletedRequest>>>;

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

    fn slot(&self, request: &IdempotentRequest) -> Slot {
        let mut state = self.memory.lock();
        let name = (
            request.organization,
            request.api_key,
            request.operation.clone(),
            request.key.clone(),
        );
        Arc::clone(state.responses.entry(name).or_default())
    }
}

/// A request that runs.
struct Unit {
    memory: Memory,
    request: IdempotentRequest,
    /// Empty after its end.
    slot: Mutex<Option<OwnedMutexGuard<Option<CompletedRequest>>>>,
}

impl Unit {
    fn end(&self) -> Option<OwnedMutexGuard<Option<CompletedRequest>>> {
        mem::take(&mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl UnitOfWork for Unit {
    fn repositories(&self) -> Repositories {
        repositories(&self.memory)
    }

    async fn commit(&self, response: Option<&StoredResponse>) -> Result<(), PortError> {
        let Some(mut slot) = self.end() else {
            return Err(PortError::Internal("the unit of work has ended".to_owned()));
        };
        *slot = response.map(|response| CompletedRequest {
            fingerprint: self.request.fingerprint,
            answered_at: self.request.now,
            response: response.clone(),
        });
        Ok(())
    }

    async fn roll_back(&self) {
        drop(self.end());
    }
}

#[async_trait]
impl Idempotency for InMemoryIdempotency {
    async fn begin(&self, request: &IdempotentRequest) -> Result<Begun, OnceError> {
        let mut slot = self.slot(request).lock_owned().await;
        if let Some(completed) = &*slot
            && let Some(response) = completed
                .clone()
                .replay(&request.fingerprint, request.now)?
        {
            return Ok(Begun::Replayed(response));
        }
        // What is left has expired.
        *slot = None;
        Ok(Begun::New(Box::new(Unit {
            memory: self.memory.clone(),
            request: request.clone(),
            slot: Mutex::new(Some(slot)),
        })))
    }

    async fn find_response(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError> {
        let slot = self.slot(request);
        let completed = slot.try_lock().and_then(|completed| completed.clone());
        Ok(match completed {
            Some(completed) => completed.replay(&request.fingerprint, request.now)?,
            None => None,
        })
    }

    async fn forget_expired(&self, now: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let state = self.memory.lock();
        let mut forgotten = 0;
        for slot in state.responses.values() {
            if forgotten == u64::from(limit) {
                break;
            }
            if let Some(mut slot) = slot.try_lock()
                && slot
                    .take_if(|completed| completed.has_expired(now))
                    .is_some()
            {
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }
}

fake!(
    /// Units of work in memory. What they did before they are rolled back is not undone.
    pub struct InMemoryUnits;
);

/// A unit of work without a response.
struct PlainUnit(Memory);

#[async_trait]
impl UnitOfWork for PlainUnit {
    fn repositories(&self) -> Repositories {
        repositories(&self.0)
    }

    async fn commit(&self, _: Option<&StoredResponse>) -> Result<(), PortError> {
        Ok(())
    }

    async fn roll_back(&self) {}
}

#[async_trait]
impl Units for InMemoryUnits {
    async fn begin(&self, _: OrganizationId) -> Result<Box<dyn UnitOfWork>, PortError> {
        Ok(Box::new(PlainUnit(self.memory.clone())))
    }
}
