//! Limits on results in memory: each counts until its last byte is sent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_application::Error;
use labdata_domain::ids::OrganizationId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Most results of one organization at a time.
const OF_ONE: usize = 4;

/// Most results of all organizations at a time.
const OF_ALL: usize = 16;

/// Time that a request waits for a slot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Slots for results.
#[derive(Debug)]
pub(crate) struct ResultSlots {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// Permit to hold one result.
#[derive(Debug)]
pub(crate) struct ResultSlot {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for ResultSlots {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(OF_ALL)),
            each: Mutex::default(),
        }
    }
}

impl ResultSlots {
    fn of(&self, organization: OrganizationId) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the semaphores without a holder.
        each.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = each
            .entry(organization)
            .or_insert_with(|| Arc::new(Semaphore::new(OF_ONE)));
        Arc::clone(semaphore)
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after 10 s.
    pub(crate) async fn enter(&self, organization: OrganizationId) -> Result<ResultSlot, Error> {
        let of_one = self.of(organization);
        let entering = async {
            let of_one = of_one.acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(ResultSlot {
                _of_one: of_one,
                _of_all: of_all,
            })
        };
        let entered = timeout(PATIENCE, entering).await.ok().flatten();
        entered.ok_or(Error::Exhausted {
            retry_after_seconds: 1,
        })
    }
}
