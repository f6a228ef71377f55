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

/// Semaphores of owners, each of the same number of permits.
#[derive(Debug)]
struct Each<K> {
    of_one: usize,
    semaphores: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> Each<K> {
    fn new(of_one: usize) -> Self {
        Self {
            of_one,
            semaphores: Mutex::default(),
        }
    }

    fn of(&self, owner: K) -> Arc<Semaphore> {
        let semaphores = self.semaphores.lock();
        let mut semaphores = semaphores.unwrap_or_else(PoisonError::into_inner);
        // Removes the semaphores without a holder.
        semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = semaphores
            .entry(owner)
            .or_insert_with(|| Arc::new(Semaphore::new(self.of_one)));
        // Taken under the lock: the clone counts as a holder, so a waiting caller's semaphore stays.
        Arc::clone(semaphore)
    }
}

/// Slots for owners of type `K`.
#[derive(Debug)]
pub struct FairSlots<K> {
    all: Arc<Semaphore>,
    each: Each<K>,
}

/// Permit for one chunk of work.
#[derive(Debug)]
pub struct Slot {
    _member: Option<OwnedSemaphorePermit>,
    _owner: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> FairSlots<K> {
    /// Creates `of_all` slots, of which one owner takes at most `of_one` at a time.
    #[must_use]
    pub fn new(of_one: usize, of_all: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(of_all)),
            each: Each::new(of_one),
        }
    }

    /// Takes a slot that is free for the owner now, if there is one.
    #[must_use]
    pub fn try_enter(&self, owner: K) -> Option<Slot> {
        Some(Slot {
            _member: None,
            // First: an owner at its own limit must not take a slot from
            // all others, even for a moment.
            _owner: self.each.of(owner).try_acquire_owned().ok()?,
            _all: Arc::clone(&self.all).try_acquire_owned().ok()?,
        })
    }

    /// Waits for a slot. `None` if none was free for the owner within [`PATIENCE`], or what is left of the
    /// request's [budget](waiting).
    pub async fn enter(&self, owner: K) -> Option<Slot> {
        let entering = self.entered(owner);
        waiting::within(PATIENCE, entering).await.ok().flatten()
    }

    /// Waits for a slot as long as it takes.
    async fn entered(&self, owner: K) -> Option<Slot> {
        // The owner's own limit first: one that waits for it occupies no slot of the rest.
        let of_one = self.each.of(owner).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Slot {
            _member: None,
            _owner: of_one,
            _all: of_all,
        })
    }
}

/// Slots for owners of type `K` with members of type `M`: a member takes at most half of the owner's, rounded up.
#[derive(Debug)]
pub struct SharedSlots<K, M> {
    owners: FairSlots<K>,
    members: Each<(K, M)>,
}

impl<K: Clone + Eq + Hash, M: Eq + Hash> SharedSlots<K, M> {
    /// Creates `of_all` slots, of which one owner takes at most `of_one` at a time.
    #[must_use]
    pub fn new(of_one: usize, of_all: usize) -> Self {
        Self {
            owners: FairSlots::new(of_one, of_all),
            members: Each::new(of_one.div_ceil(2)),
        }
    }

    /// Takes a slot that is free for the member now, if there is one.
    #[must_use]
    pub fn try_enter(&self, owner: K, member: M) -> Option<Slot> {
        // First, as the owner's own limit precedes that of all.
        let of_member = self.members.of((owner.clone(), member));
        let of_member = of_member.try_acquire_owned().ok()?;
        let slot = self.owners.try_enter(owner)?;
        Some(Slot {
            _member: Some(of_member),
            ..slot
        })
    }

    /// Waits for a slot. `None` if none was free for the member within [`PATIENCE`], or what is left of the
    /// request's [budget](waiting).
    pub async fn enter(&self, owner: K, member: M) -> Option<Slot> {
        let of_member = self.members.of((owner.clone(), member));
        let entering = async {
            let of_member = of_member.acquire_owned().await.ok()?;
            let slot = self.owners.entered(owner).await?;
            Some(Slot {
                _member: Some(of_member),
                ..slot
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

    #[tokio::test(start_paused = true)]
    async fn a_member_takes_half_of_the_owners_share_and_leaves_the_rest_to_others() {
        let slots = SharedSlots::new(3, 4);
        let first = slots.enter("lab", "ada").await.expect("a slot");
        let _second = slots.enter("lab", "ada").await.expect("a slot");
        assert!(slots.enter("lab", "ada").await.is_none(), "it has half");
        assert!(slots.try_enter("lab", "ada").is_none());
        let _ben = slots.try_enter("lab", "ben").expect("a slot of the rest");
        assert!(
            slots.enter("lab", "ben").await.is_none(),
            "the owner has all"
        );
        let _other = slots.enter("other", "ada").await.expect("another owner's");
        drop(first);
        assert!(slots.try_enter("lab", "ben").is_some());
        let single = SharedSlots::new(1, 1);
        assert!(single.try_enter("lab", "ada").is_some());
    }
}
