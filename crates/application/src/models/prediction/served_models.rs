//! Facts about models that one process remembers from one prediction to the next.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use labdata_domain::{
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{ModelSignature, ModelVersion, PredictedLast},
};
use time::OffsetDateTime;

/// Maximum number of versions, and of models, that are remembered.
const CAPACITY: usize = 256;

/// Signatures of versions, which never change, and the version of each model that predicted last. One
/// process has one.
#[derive(Debug, Default)]
pub struct ServedModels {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    signatures: Recent<(OrganizationId, ModelVersionId), Arc<ModelSignature>>,
    last: Recent<(OrganizationId, ModelId), PredictedLast>,
}

impl ServedModels {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signature of a version, if it is known.
    pub(super) fn signature(
        &self,
        organization: OrganizationId,
        version: ModelVersionId,
    ) -> Option<Arc<ModelSignature>> {
        let mut inner = self.lock();
        let found = inner.signatures.get(&(organization, version));
        found.map(|signature| Arc::clone(signature))
    }

    /// Remembers the signature of a version.
    pub(super) fn remember(
        &self,
        organization: OrganizationId,
        version: ModelVersionId,
        signature: &Arc<ModelSignature>,
    ) {
        let mut inner = self.lock();
        let key = (organization, version);
        inner.signatures.insert(key, Arc::clone(signature));
    }

    /// Records that a version predicted.
    pub(super) fn predicted(&self, organization: OrganizationId, version: &ModelVersion) {
        let mut inner = self.lock();
        let key = (organization, version.model);
        match inner.last.get(&key) {
            // Retains the time since when another one is active.
            Some(last) if last.version.version == version.version => {}
            _ => inner.last.insert(key, PredictedLast::new(version.clone())),
        }
    }

    /// Returns the version that predicts as long as the active one is not prepared.
    pub(super) fn stand_in(
        &self,
        organization: OrganizationId,
        active: &ModelVersion,
        now: OffsetDateTime,
    ) -> Option<ModelVersion> {
        let mut inner = self.lock();
        let last = inner.last.get(&(organization, active.model))?;
        let stands_in = last.stands_in_for(active, now);
        stands_in.then(|| last.version.clone())
    }
}

/// Map that forgets the entry that was not used for the longest time.
#[derive(Debug)]
struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    uses: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            uses: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Recent<K, V> {
    fn get(&mut self, key: &K) -> Option<&mut V> {
        self.uses += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.uses;
        Some(value)
    }

    fn insert(&mut self, key: K, value: V) {
        self.uses += 1;
        self.entries.insert(key, (self.uses, value));
        if self.entries.len() > CAPACITY {
            // A scan, because it happens only on insertion and the capacity is small.
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.entries.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_was_not_used_for_the_longest_time_is_forgotten() {
        let mut recent = Recent::default();
        for key in 0..CAPACITY {
            recent.insert(key, key);
        }
        assert_eq!(recent.get(&0), Some(&mut 0));
        recent.insert(CAPACITY, CAPACITY);
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.get(&0), Some(&mut 0));
        assert_eq!(recent.entries.len(), CAPACITY);
    }
}
