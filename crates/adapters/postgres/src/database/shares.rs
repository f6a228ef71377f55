//! Shares of the connections: no organization can hold all of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use labdata_domain::ids::OrganizationId;
use labdata_limits::waiting;
use labdata_ports::PortError;
use tokio::sync::Notify;

/// Connections that an organization may hold for each free one. With 16 connections a busy
/// organization holds 11 at most, and two busy ones 6 or 7 each; the rest is free for a third.
const HELD_PER_FREE: usize = 2;

/// Connections in use, by organization.
#[derive(Debug)]
pub(crate) struct Shares {
    capacity: usize,
    wait: Duration,
    in_use: Mutex<InUse>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct InUse {
    all: usize,
    each: HashMap<OrganizationId, usize>,
}

/// Permit of an organization to hold one connection.
#[derive(Debug)]
pub(crate) struct Permit {
    shares: Arc<Shares>,
    organization: OrganizationId,
}

impl Shares {
    /// Shares of that many connections, each waited for that long.
    pub(crate) fn new(capacity: usize, wait: Duration) -> Self {
        Self {
            capacity,
            wait,
            in_use: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the organization may hold one more connection.
    ///
    /// # Errors
    /// [`PortError::Exhausted`] when it may not in time.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        organization: OrganizationId,
    ) -> Result<Permit, PortError> {
        let entering = async {
            loop {
                // Before the attempt: a permit that is released in between still wakes this future.
                let freed = self.freed.notified();
                if let Some(permit) = self.try_enter(organization) {
                    return permit;
                }
                freed.await;
            }
        };
        waiting::within(self.wait, entering).await.map_err(|_| {
            PortError::Exhausted("the organization's share of the connections is in use".to_owned())
        })
    }

    fn try_enter(self: &Arc<Self>, organization: OrganizationId) -> Option<Permit> {
        let mut in_use = self.in_use();
        let held = in_use.each.get(&organization).copied().unwrap_or_default();
        let free = self.capacity.saturating_sub(in_use.all);
        // The first connection waits for the pool only.
        if held > 0 && held >= free.saturating_mul(HELD_PER_FREE) {
            return None;
        }
        in_use.all += 1;
        in_use.each.insert(organization, held + 1);
        Some(Permit {
            shares: Arc::clone(self),
            organization,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_use = self.shares.in_use();
        in_use.all = in_use.all.saturating_sub(1);
        let held = in_use.each.get(&self.organization).copied();
        match held.unwrap_or_default() {
            // The map would otherwise grow with every organization that was ever active.
            0 | 1 => in_use.each.remove(&self.organization),
            held => in_use.each.insert(self.organization, held - 1),
        };
        drop(in_use);
        // All of them: which organization may use the place depends on what each of them holds.
        self.shares.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn shares() -> Arc<Shares> {
        Arc::new(Shares::new(16, Duration::from_millis(20)))
    }

    fn organization(number: u128) -> OrganizationId {
        OrganizationId::new(Uuid::from_u128(number))
    }

    /// Takes as many as the organization gets.
    fn take_all(shares: &Arc<Shares>, number: u128) -> Vec<Permit> {
        std::iter::from_fn(|| shares.try_enter(organization(number))).collect()
    }

    #[tokio::test]
    async fn a_greedy_organization_leaves_connections_to_every_other() {
        let shares = shares();
        let mut held = vec![take_all(&shares, 1)];
        assert_eq!(held[0].len(), 11);
        for number in 2..6 {
            held.push(take_all(&shares, number));
            assert!(!held[held.len() - 1].is_empty());
        }
        let refused = shares.enter(organization(1)).await;
        assert!(matches!(refused, Err(PortError::Exhausted(_))));
    }

    #[tokio::test]
    async fn a_connection_that_is_given_back_goes_to_who_waits() {
        let shares = Arc::new(Shares::new(3, Duration::from_secs(30)));
        let mut held = take_all(&shares, 1);
        assert_eq!(held.len(), 2);
        let waiting = shares.enter(organization(1));
        let giving = async {
            tokio::task::yield_now().await;
            held.clear();
        };
        let (entered, ()) = futures::join!(waiting, giving);
        drop(entered.expect("a permit"));
        assert_eq!(shares.in_use().all, 0);
        assert!(shares.in_use().each.is_empty());
    }
}
