//! Limits concurrent work in this process, so that no owner, such as an organization, takes all of it.
//!
//! **Invariants.** Knows no other crate of the platform. A slot is free again when it is dropped.

pub mod sending;
pub mod waiting;

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum time that a caller waits for a slot.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Slots for owners of type `K`.
#[derive(Debug)]
pub struct FairSlots<K> {
    of_one: usize,
    all: Arc<Semaphore>,
    each: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// Permit for one chunk of work.
#[derive(Debug)]
pub struct Slot {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> FairSlots<K> {
    /// Creates `of_all` slots, of which one owner takes at most `of_one` at a time.
    #[must_use]
    pub fn new(of_one: usize, of_all: usize) -> Self {
        Self {
            of_one,
            all: Arc::new(Semaphore::new(of_all)),
            each: Mutex::default(),
        }
    }

    fn of(&self, owner: K) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes the semaphores without a holder.
        each.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = each
            .entry(owner)
            .or_insert_with(|| Arc::new(Semaphore::new(self.of_one)));
        // Taken under the lock: the clone counts as a holder, so a waiting caller's semaphore stays.
        Arc::clone(semaphore)
    }

    /// Takes a slot that is free for the owner now, if there is one.
    #[must_use]
    pub fn try_enter(&self, owner: K) -> Option<Slot> {
        Some(Slot {
            // First: an owner at its own limit must not take a slot from
            // all others, even for a moment.
            _of_one: self.of(owner).try_acquire_owned().ok()?,
            _of_all: Arc::clone(&self.all).try_acquire_owned().ok()?,
        })
    }

    /// Waits for a slot. `None` if none was free for the owner within [`PATIENCE`], or what is left of the
    /// request's [budget](waiting).
    pub async fn enter(&self, owner: K) -> Option<Slot> {
        let of_one = self.of(owner);
        let entering = async {
            // The owner's own limit first: one that waits for it occupies no slot of the rest.
            let of_one = of_one.acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Slot {
                _of_one: of_one,
                _of_all: of_all,
            })
        };
        waiting::within(PATIENCE, entering).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The clock stands still and jumps to the next timeout.
    #[tokio::test(start_paused = true)]
    async fn an_owner_takes_its_share_and_leaves_the_rest_to_others() {
        let slots = FairSlots::new(2, 3);
        let first = slots.enter("busy").await.expect("a slot");
        let _second = slots.enter("busy").await.expect("a slot");
        assert!(slots.enter("busy").await.is_none(), "it has its share");
        let _other = slots.enter("calm").await.expect("a slot of the rest");
        assert!(slots.enter("third").await.is_none(), "all are taken");
        for owner in ["busy", "third"] {
            assert!(slots.try_enter(owner).is_none(), "{owner}");
        }
        drop(first);
        assert!(slots.enter("third").await.is_some());
        assert!(slots.try_enter("third").is_some());
    }
}
