//! Requests with the same idempotency key wait for each other in the process, without a connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use labdata_domain::ids::ApiKeyId;
use labdata_limits::waiting;
use labdata_ports::{PortError, idempotency::IdempotentRequest};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Most requests with one key at a time; more are refused.
const MAX_DUPLICATES: usize = 64;

/// Time that a request waits for earlier ones with its key.
const PATIENCE: Duration = Duration::from_secs(10);

/// API key, operation and idempotency key of a request.
type Identity = (ApiKeyId, String, String);

/// Requests under way, by identity.
#[derive(Debug)]
pub(crate) struct Duplicates {
    all: Mutex<HashMap<Identity, Waiting>>,
    wait_limit: Duration,
}

impl Default for Duplicates {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
            wait_limit: PATIENCE,
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    turn: Arc<AsyncMutex<()>>,
    count: usize,
}

/// A place among the requests of an identity.
#[derive(Debug)]
struct Place {
    duplicates: Arc<Duplicates>,
    identity: Identity,
}

/// The turn of a request; the next one follows when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    // Dropped first, so that the next request starts before its place is given up.
    _held: OwnedMutexGuard<()>,
    _place: Place,
}

impl Duplicates {
    fn all(&self) -> MutexGuard<'_, HashMap<Identity, Waiting>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no earlier request with the same key runs in this process.
    ///
    /// # Errors
    /// [`PortError::Busy`] when too many wait, or for too long.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        request: &IdempotentRequest,
    ) -> Result<Turn, PortError> {
        let identity = (
            request.api_key,
            request.operation.clone(),
            request.key.clone(),
        );
        let (place, turn) = self.enter(identity)?;
        let held = waiting::within(self.wait_limit, turn.lock_owned())
            .await
            .map_err(|_| {
                PortError::Busy("the first request with this key still runs".to_owned())
            })?;
        Ok(Turn {
            _held: held,
            _place: place,
        })
    }

    fn enter(
        self: &Arc<Self>,
        identity: Identity,
    ) -> Result<(Place, Arc<AsyncMutex<()>>), PortError> {
        let mut all = self.all();
        let waiting = all.entry(identity.clone()).or_default();
        if waiting.count >= MAX_DUPLICATES {
            return Err(PortError::Busy(
                "too many requests with this key are waiting".to_owned(),
            ));
        }
        // Counted under the map's lock, so that the last one cannot remove the entry in between.
        waiting.count += 1;
        let turn = Arc::clone(&waiting.turn);
        let duplicates = Arc::clone(self);
        let place = Place {
            duplicates,
            identity,
        };
        Ok((place, turn))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.duplicates.all();
        if let Some(waiting) = all.get_mut(&self.identity) {
            waiting.count -= 1;
            if waiting.count == 0 {
                all.remove(&self.identity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::{idempotency::Fingerprint, ids::OrganizationId};
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;

    fn request(key: &str) -> IdempotentRequest {
        IdempotentRequest {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            api_key: ApiKeyId::new(Uuid::from_u128(2)),
            operation: "POST /".to_owned(),
            key: key.to_owned(),
            fingerprint: Fingerprint {
                body: [0; 32],
                rights: [0; 32],
            },
            now: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn a_flood_of_one_key_waits_in_turn_and_not_for_ever() {
        let duplicates = Arc::new(Duplicates {
            wait_limit: Duration::from_millis(50),
            ..Duplicates::default()
        });
        let first = duplicates.wait(&request("a")).await.expect("the first");
        let other = duplicates.wait(&request("b")).await.expect("another key");
        let flood: Vec<_> = (0..MAX_DUPLICATES)
            .map(|_| {
                let duplicates = Arc::clone(&duplicates);
                tokio::spawn(async move { duplicates.wait(&request("a")).await.map(drop) })
            })
            .collect();
        let outcomes = futures::future::join_all(flood).await;
        for outcome in outcomes {
            let outcome = outcome.expect("a task");
            assert!(matches!(outcome, Err(PortError::Busy(_))), "{outcome:?}");
        }
        drop((first, other));
        assert!(duplicates.wait(&request("a")).await.is_ok());
        assert!(duplicates.all().is_empty());
    }
}
