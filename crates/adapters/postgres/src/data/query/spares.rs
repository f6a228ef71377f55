//! Connections that were opened before they are asked for, so that a query need not wait for one.
//!
//! A spare serves one query, as every connection does, and is thrown away after it. It has run
//! nothing before but what [`Wire::open`] says. One that nobody asks for is closed soon.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_domain::ids::OrganizationId;
use tokio::task::JoinHandle;

use super::wire::{Address, Login, Wire, WireError};

/// The most spares of all organizations together, in this process.
const MOST: usize = 8;

/// How long a spare waits for a query unless it is said; the server itself waits no longer than 60 s.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where to log in, as whom.
#[derive(Clone)]
pub(super) struct Entrance {
    pub(super) address: Address,
    pub(super) database: String,
    pub(super) user: String,
    pub(super) password: String,
}

impl Entrance {
    pub(super) async fn open(&self) -> Result<Wire, WireError> {
        let login = Login {
            database: &self.database,
            user: &self.user,
            password: &self.password,
        };
        Wire::open(&self.address, &login).await
    }
}

struct Spare {
    /// Tells it from those of the same organization before and after.
    number: u64,
    opening: JoinHandle<Result<Wire, WireError>>,
}

#[derive(Default)]
struct Kept {
    count: u64,
    each: HashMap<OrganizationId, Spare>,
}

/// At most one spare per organization, and few in all.
#[derive(Clone, Default)]
pub(super) struct Spares(Arc<Mutex<Kept>>);

impl Spares {
    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins to open one, unless the organization has one or there are enough.
    pub(super) fn prepare(
        &self,
        organization: OrganizationId,
        entrance: Entrance,
        patience: Duration,
    ) {
        let number = self.with(|kept| {
            if kept.each.len() >= MOST || kept.each.contains_key(&organization) {
                return None;
            }
            kept.count += 1;
            let number = kept.count;
            let opening = tokio::spawn(async move { entrance.open().await });
            kept.each.insert(organization, Spare { number, opening });
            Some(number)
        });
        let Some(number) = number else { return };
        // Spares whose runner is gone are gone with it.
        let kept = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            if let Some(kept) = kept.upgrade() {
                Self(kept).discard(organization, Some(number)).await;
            }
        });
    }

    /// The organization's spare, if it has one that could be opened; it is the caller's then.
    pub(super) async fn take(&self, organization: OrganizationId) -> Option<Wire> {
        let spare = self.with(|kept| kept.each.remove(&organization))?;
        spare.opening.await.ok()?.ok()
    }

    /// Closes the organization's spare; if a number is given, only the spare of that number.
    pub(super) async fn discard(&self, organization: OrganizationId, number: Option<u64>) {
        let spare = self.with(|kept| {
            let spare = kept.each.get(&organization)?;
            let meant = number.is_none_or(|number| spare.number == number);
            meant.then(|| kept.each.remove(&organization)).flatten()
        });
        let Some(spare) = spare else { return };
        if let Ok(Ok(wire)) = spare.opening.await {
            wire.close().await;
        }
    }
}
