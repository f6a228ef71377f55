//! Connections opened in advance, so that a query need not wait for one.
//!
//! A spare serves one query, as every connection does, and is closed after it. It has run nothing
//! before but the statements of [`Wire::open`]. An unused one is closed soon.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_domain::ids::OrganizationId;
use tokio::task::JoinHandle;

use super::wire::{Login, Wire, WireError};
use crate::database::server::Server;

/// Maximum number of spares of all organizations together, in this process.
const MAX_SPARES: usize = 8;

/// Default time that a spare waits for a query; the server closes it after 60 s.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Server and credentials for a login.
#[derive(Clone)]
pub(super) struct Entrance {
    pub(super) server: Arc<Server>,
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
        Wire::open(&self.server, &login).await
    }
}

struct Spare {
    /// Distinguishes it from earlier and later spares of the same organization.
    number: u64,
    opening: JoinHandle<Result<Wire, WireError>>,
}

#[derive(Default)]
struct SpareConnections {
    count: u64,
    each: HashMap<OrganizationId, Spare>,
}

/// At most one spare per organization, and [`MAX_SPARES`] together.
#[derive(Clone, Default)]
pub(super) struct SparePool(Arc<Mutex<SpareConnections>>);

impl SparePool {
    fn with<T>(&self, work: impl FnOnce(&mut SpareConnections) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts to open one, unless the organization has one or the limit is reached.
    pub(super) fn prepare(
        &self,
        organization: OrganizationId,
        entrance: Entrance,
        timeout: Duration,
    ) {
        let number = self.with(|spares| {
            if spares.each.len() >= MAX_SPARES || spares.each.contains_key(&organization) {
                return None;
            }
            spares.count += 1;
            let number = spares.count;
            // Under the lock, so that two queries do not open one each.
            let opening = tokio::spawn(async move { entrance.open().await });
            spares.each.insert(organization, Spare { number, opening });
            Some(number)
        });
        let Some(number) = number else { return };
        // The spares of a dropped runner are dropped with it.
        let spares = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            if let Some(spares) = spares.upgrade() {
                Self(spares).discard(organization, Some(number)).await;
            }
        });
    }

    /// Removes and returns the organization's spare, if it has one that could be opened.
    pub(super) async fn take(&self, organization: OrganizationId) -> Option<Wire> {
        let spare = self.with(|spares| spares.each.remove(&organization))?;
        spare.opening.await.ok()?.ok()
    }

    /// Closes the organization's spare; if a number is given, only the spare of that number.
    pub(super) async fn discard(&self, organization: OrganizationId, number: Option<u64>) {
        let spare = self.with(|spares| {
            let spare = spares.each.get(&organization)?;
            let meant = number.is_none_or(|number| spare.number == number);
            meant.then(|| spares.each.remove(&organization)).flatten()
        });
        let Some(spare) = spare else { return };
        if let Ok(Ok(wire)) = spare.opening.await {
            wire.close().await;
        }
    }
}
