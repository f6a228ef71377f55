//! Limits on concurrent queries.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_domain::ids::OrganizationId;
use labdata_ports::PortError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent queries of one organization, in this process.
const OF_ONE: usize = 4;

/// Maximum number of concurrent queries of all organizations.
const OF_ALL: usize = 16;

/// Maximum time that a query waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Limits concurrent queries, so that no organization takes the whole server.
pub(super) struct Gate {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// Permit to run one query.
pub(super) struct Pass {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(OF_ALL)),
            each: Mutex::default(),
        }
    }
}

impl Gate {
    fn of(&self, organization: OrganizationId) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the semaphores without a holder.
        each.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = each
            .entry(organization)
            .or_insert_with(|| Arc::new(Semaphore::new(OF_ONE)));
        Arc::clone(semaphore)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`PortError::Busy`] after 10 s.
    pub(super) async fn enter(&self, organization: OrganizationId) -> Result<Pass, PortError> {
        let of_one = self.of(organization);
        let entering = async {
            let of_one = of_one.acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Pass {
                _of_one: of_one,
                _of_all: of_all,
            })
        };
        let entered = tokio::time::timeout(PATIENCE, entering)
            .await
            .ok()
            .flatten();
        entered.ok_or_else(|| PortError::Busy("too many queries are running".to_owned()))
    }
}
