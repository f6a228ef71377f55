//! Uploads under way on this server: one at a time per object, and their bytes per organization.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use labdata_domain::{files::ObjectKey, ids::OrganizationId};

/// Uploads under way; shared by all of one process.
#[derive(Debug, Default)]
pub struct OngoingUploads {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Objects that an upload is creating.
    objects: HashSet<(OrganizationId, ObjectKey)>,
    /// Bytes that uploads have announced or received, and that no record counts yet.
    bytes: HashMap<OrganizationId, u64>,
    /// Number of uploads that have ended.
    ended: u64,
}

/// Uploads of an organization at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OngoingBytes {
    /// Their bytes.
    pub(super) bytes: u64,
    /// Number of uploads that had ended; their bytes are in records.
    pub(super) ended: u64,
}

/// An upload under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct OngoingUpload {
    uploads: Arc<OngoingUploads>,
    organization: OrganizationId,
    object: ObjectKey,
    bytes: AtomicU64,
}

impl OngoingUploads {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an upload; `None` while another one creates the same object.
    pub(crate) fn begin(
        self: &Arc<Self>,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Option<OngoingUpload> {
        let is_first = self.state().objects.insert((organization, object));
        is_first.then(|| OngoingUpload {
            uploads: Arc::clone(self),
            organization,
            object,
            bytes: AtomicU64::new(0),
        })
    }
}

impl OngoingUpload {
    pub(crate) const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Counts the upload as at least that many bytes. Returns the bytes of all uploads of the
    /// organization.
    pub(super) fn grow_to(&self, bytes: u64) -> OngoingBytes {
        // An announced length is counted as a whole at first, so later reports may be smaller.
        let more = bytes.saturating_sub(self.bytes.fetch_max(bytes, Ordering::Relaxed));
        let mut state = self.uploads.state();
        let all = state.bytes.entry(self.organization).or_default();
        *all = all.saturating_add(more);
        let bytes = *all;
        OngoingBytes {
            bytes,
            ended: state.ended,
        }
    }
}

impl Drop for OngoingUpload {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        let mut state = self.uploads.state();
        // Makes quota checks read the stored bytes again, which may now include this upload.
        state.ended += 1;
        state.objects.remove(&(self.organization, self.object));
        if let Some(all) = state.bytes.get_mut(&self.organization) {
            *all = all.saturating_sub(bytes);
            // The map would otherwise have an entry for each organization that ever uploaded.
            if *all == 0 {
                state.bytes.remove(&self.organization);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const LAB: OrganizationId = OrganizationId::new(Uuid::from_u128(1));
    const OTHER: OrganizationId = OrganizationId::new(Uuid::from_u128(2));

    fn object(number: u128) -> ObjectKey {
        ObjectKey::new(Uuid::from_u128(number))
    }

    #[test]
    fn an_object_is_created_by_one_upload_at_a_time() {
        let uploads = Arc::<OngoingUploads>::default();
        let first = uploads.begin(LAB, object(1)).unwrap();
        assert!(uploads.begin(LAB, object(1)).is_none());
        assert!(uploads.begin(LAB, object(2)).is_some());
        assert!(uploads.begin(OTHER, object(1)).is_some());
        assert!(uploads.begin(LAB, object(1)).is_none());
        drop(first);
        assert!(uploads.begin(LAB, object(1)).is_some());
    }

    #[test]
    fn bytes_count_per_organization_until_the_upload_ends() {
        let uploads = Arc::<OngoingUploads>::default();
        let first = uploads.begin(LAB, object(1)).unwrap();
        let second = uploads.begin(LAB, object(2)).unwrap();
        let other = uploads.begin(OTHER, object(1)).unwrap();
        let ongoing = |bytes, ended| OngoingBytes { bytes, ended };
        assert_eq!(first.grow_to(10), ongoing(10, 0));
        assert_eq!(second.grow_to(5), ongoing(15, 0));
        assert_eq!(first.grow_to(8), ongoing(15, 0), "it never shrinks");
        assert_eq!(other.grow_to(1), ongoing(1, 0));
        drop(first);
        assert_eq!(second.grow_to(6), ongoing(6, 1));
        drop((second, other));
        assert!(uploads.state().bytes.is_empty() && uploads.state().objects.is_empty());
    }
}
