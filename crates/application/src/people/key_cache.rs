//! Keys that were checked a moment ago, so that a burst of requests costs one look-up.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{ApiKeyHash, actor::Actor},
};
use time::{Duration, OffsetDateTime};

/// Time for which a check is cached. A key that another server revokes is refused here after this
/// time at the latest (contract §2: within 5 s).
const TIME_TO_LIVE: Duration = Duration::seconds(4);

/// The most keys that are stored.
const CAPACITY: usize = 1024;

/// The responses of the last look-ups. One process has one; a revocation in it takes effect at once.
#[derive(Debug, Default)]
pub struct KeyCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Counts evictions, so that a look-up that began before one does not put the key back.
    generation: u64,
    entries: HashMap<[u8; 32], Entry>,
}

#[derive(Debug)]
struct Entry {
    actor: Actor,
    checked_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
}

impl Entry {
    fn holds(&self, now: OffsetDateTime) -> bool {
        // A clock that was set back must not make an entry last longer.
        self.checked_at <= now
            && now < self.checked_at + TIME_TO_LIVE
            && self.expires_at.is_none_or(|end| now < end)
    }
}

/// State of the cache when a look-up began.
#[derive(Clone, Copy, Debug)]
pub struct Generation(u64);

impl KeyCache {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller with that key, when it was checked a moment ago; else the generation to hand to
    /// [`KeyCache::insert`] after the look-up.
    ///
    /// # Errors
    /// The generation, when the key has to be looked up.
    pub fn get(&self, hash: ApiKeyHash, now: OffsetDateTime) -> Result<Actor, Generation> {
        let inner = self.lock();
        match inner.entries.get(&hash.0) {
            Some(entry) if entry.holds(now) => Ok(entry.actor.clone()),
            _ => Err(Generation(inner.generation)),
        }
    }

    /// Retains a key that was found valid, unless any was evicted since the look-up began.
    pub fn insert(
        &self,
        generation: Generation,
        hash: ApiKeyHash,
        actor: Actor,
        now: OffsetDateTime,
        expires_at: Option<OffsetDateTime>,
    ) {
        let mut inner = self.lock();
        // A key was revoked since the database was read, perhaps this one.
        if inner.generation != generation.0 {
            return;
        }
        if inner.entries.len() >= CAPACITY {
            inner.entries.retain(|_, entry| entry.holds(now));
        }
        if inner.entries.len() >= CAPACITY {
            // All entries are valid, which is rare; refilling costs one query per key.
            inner.entries.clear();
        }
        inner.entries.insert(
            hash.0,
            Entry {
                actor,
                checked_at: now,
                expires_at,
            },
        );
    }

    /// Forgets a key.
    pub fn evict(&self, id: ApiKeyId) {
        self.evict_callers(|actor| actor.api_key == id);
    }

    /// Forgets what has that hash.
    pub fn evict_hash(&self, hash: ApiKeyHash) {
        let mut inner = self.lock();
        inner.generation = inner.generation.wrapping_add(1);
        inner.entries.remove(&hash.0);
    }

    /// Forgets the keys of a user.
    pub fn evict_user(&self, id: UserId) {
        self.evict_callers(|actor| actor.user == id);
    }

    /// Forgets the keys of an organization.
    pub fn evict_organization(&self, id: OrganizationId) {
        self.evict_callers(|actor| actor.organization == id);
    }

    /// Forgets the keys of an execution.
    pub fn evict_execution(&self, id: ExecutionId) {
        self.evict_callers(|actor| actor.execution == Some(id));
    }

    fn evict_callers(&self, is_evicted: impl Fn(&Actor) -> bool) {
        let mut inner = self.lock();
        inner.generation = inner.generation.wrapping_add(1);
        inner.entries.retain(|_, entry| !is_evicted(&entry.actor));
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::people::{rights::Rights, scope::Scopes};
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const HASH: ApiKeyHash = ApiKeyHash([7; 32]);

    fn actor(key: u128) -> Actor {
        Actor {
            organization: OrganizationId::new(Uuid::nil()),
            user: UserId::new(Uuid::nil()),
            api_key: ApiKeyId::new(Uuid::from_u128(key)),
            scopes: Scopes::all(),
            rights: Rights::admin(),
            execution: None,
        }
    }

    fn filled(expires_at: Option<OffsetDateTime>) -> KeyCache {
        let cache = KeyCache::default();
        let generation = cache.get(HASH, NOW).unwrap_err();
        cache.insert(generation, HASH, actor(1), NOW, expires_at);
        cache
    }

    #[test]
    fn a_check_holds_for_less_than_five_seconds() {
        let cache = filled(None);
        assert!(cache.get(HASH, NOW + Duration::seconds(3)).is_ok());
        assert!(cache.get(HASH, NOW + Duration::seconds(4)).is_err());
        assert!(cache.get(HASH, NOW - Duration::seconds(1)).is_err());
    }

    #[test]
    fn a_cached_key_that_expires_is_looked_up_again() {
        let cache = filled(Some(NOW + Duration::seconds(1)));
        assert!(cache.get(HASH, NOW + Duration::seconds(1)).is_err());
    }

    #[test]
    fn an_evicted_key_is_not_put_back_by_a_lookup_that_began_before() {
        let cache = filled(None);
        let generation = cache.get(ApiKeyHash([8; 32]), NOW).unwrap_err();
        cache.evict(ApiKeyId::new(Uuid::from_u128(1)));
        assert!(cache.get(HASH, NOW).is_err());
        cache.insert(generation, HASH, actor(1), NOW, None);
        assert!(cache.get(HASH, NOW).is_err());
    }

    #[test]
    fn never_keeps_more_than_its_capacity() {
        let cache = KeyCache::default();
        for number in 0..u16::try_from(3 * CAPACITY).unwrap() {
            let mut hash = [0; 32];
            hash[..2].copy_from_slice(&number.to_be_bytes());
            let generation = cache.get(ApiKeyHash(hash), NOW).unwrap_err();
            cache.insert(
                generation,
                ApiKeyHash(hash),
                actor(number.into()),
                NOW,
                None,
            );
        }
        assert!(cache.lock().entries.len() <= CAPACITY);
    }
}
