//! Room for what the platform stores: the disk, its floor and its reserve, and quotas of organizations.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Free space that uploads leave on a disk, in bytes, however large the disk is.
const MAX_FLOOR: u64 = 1 << 30;

/// Why a request stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsufficientStorage {
    /// The disk is full, or the rest of it is left to the database.
    #[error(
        "the platform's disk is full, and nothing was stored; reading works, and so does storing \
         once there is room"
    )]
    DiskFull,
    /// The organization would store more than its quota.
    #[error(
        "this organization stores {used} of {quota} bytes, and {more} more do not fit \
         (LABDATA_STORAGE_QUOTA); delete files, or ask your operator; GET /api/v1/files/usage shows what \
         takes them"
    )]
    QuotaExceeded {
        /// Most bytes.
        quota: u64,
        /// Bytes in use, with those of uploads under way.
        used: u64,
        /// Bytes of the refused file, as far as they are known.
        more: u64,
    },
}

impl Refuse for InsufficientStorage {
    fn code(&self) -> ErrorCode {
        match self {
            Self::DiskFull => ErrorCode::DiskFull,
            Self::QuotaExceeded { .. } => ErrorCode::QuotaExceeded,
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::InsufficientStorage
    }
}

/// Kind of what an organization stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// Files, with those received that await their confirmation, and figures of chats.
    Files,
    /// Datasets, with the masks of those of annotations.
    Datasets,
    /// Artifacts of trained models.
    Models,
    /// Masks of images.
    Annotations,
    /// Logs of runs and trainings.
    Logs,
    /// Responses that are stored for idempotency keys.
    Responses,
    /// Earlier values of rows.
    History,
    /// Deleted files, tables and columns that can be restored.
    Trash,
}

impl StoredKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 8] = [
        Self::Files,
        Self::Datasets,
        Self::Models,
        Self::Annotations,
        Self::Logs,
        Self::Responses,
        Self::History,
        Self::Trash,
    ];

    /// Kinds whose records have their sizes: they count to the byte. All other kinds grow by small steps, and
    /// count as they were a short time ago.
    pub const RECORDED: [Self; 5] = [
        Self::Files,
        Self::Datasets,
        Self::Models,
        Self::Annotations,
        Self::Trash,
    ];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Datasets => "datasets",
            Self::Models => "models",
            Self::Annotations => "annotations",
            Self::Logs => "logs",
            Self::Responses => "responses",
            Self::History => "history",
            Self::Trash => "trash",
        }
    }
}

/// Bytes that an organization stores, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesByKind([u64; StoredKind::ALL.len()]);

impl BytesByKind {
    /// Sums bytes by their kinds.
    #[must_use]
    pub fn of(bytes: impl IntoIterator<Item = (StoredKind, u64)>) -> Self {
        let mut all = Self::default();
        for (kind, bytes) in bytes {
            let mut sums = all.0.iter_mut().zip(StoredKind::ALL);
            if let Some((sum, _)) = sums.find(|(_, of)| *of == kind) {
                *sum = sum.saturating_add(bytes);
            }
        }
        all
    }

    /// Bytes of one kind.
    #[must_use]
    pub fn get(&self, kind: StoredKind) -> u64 {
        let found = self.iter().find(|(of, _)| *of == kind);
        found.map_or(0, |(_, bytes)| bytes)
    }

    /// Each kind with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (StoredKind, u64)> {
        StoredKind::ALL.into_iter().zip(self.0)
    }

    /// Bytes of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of the kinds that are not [recorded](StoredKind::RECORDED).
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        let others = self
            .iter()
            .filter(|(kind, _)| !StoredKind::RECORDED.contains(kind));
        others.fold(0, |sum, (_, bytes)| sum.saturating_add(bytes))
    }
}

/// Most bytes that an organization stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageQuota {
    limit: Option<u64>,
    /// Bytes of kinds that are not recorded.
    unrecorded: u64,
}

impl StorageQuota {
    /// No limit.
    pub const UNLIMITED: Self = Self {
        limit: None,
        unrecorded: 0,
    };

    /// A limit in bytes.
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        Self {
            limit: Some(bytes),
            unrecorded: 0,
        }
    }

    /// The same for an organization that stores that many bytes of kinds that are not
    /// [recorded](StoredKind::RECORDED).
    #[must_use]
    pub const fn beside(self, unrecorded: u64) -> Self {
        Self { unrecorded, ..self }
    }

    /// Returns true if there is a limit, so that usage has to be known.
    #[must_use]
    pub const fn is_limited(self) -> bool {
        self.limit.is_some()
    }

    /// The limit in bytes, if there is one.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        self.limit
    }

    /// Checks that `more` bytes fit beside the `recorded` ones, and those that are not recorded.
    ///
    /// # Errors
    /// [`InsufficientStorage::QuotaExceeded`].
    pub const fn check(self, recorded: u64, more: u64) -> Result<(), InsufficientStorage> {
        let used = recorded.saturating_add(self.unrecorded);
        match self.limit {
            Some(quota) if used.saturating_add(more) > quota => {
                Err(InsufficientStorage::QuotaExceeded { quota, used, more })
            }
            _ => Ok(()),
        }
    }
}

/// Size and free space of the disk that holds the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Size in bytes.
    pub total: u64,
    /// Free bytes.
    pub available: u64,
}

impl DiskSpace {
    /// Checks that a file of `more` bytes leaves the floor free: a twentieth of the disk, at most
    /// 1 GiB. The floor is room for the database.
    ///
    /// # Errors
    /// [`InsufficientStorage::DiskFull`].
    pub const fn check(self, more: u64) -> Result<(), InsufficientStorage> {
        // A share of small disks; of large ones, 5 % would leave much space unused.
        let twentieth = self.total / 20;
        let floor = if twentieth < MAX_FLOOR {
            twentieth
        } else {
            MAX_FLOOR
        };
        if self.available.saturating_sub(more) < floor {
            Err(InsufficientStorage::DiskFull)
        } else {
            Ok(())
        }
    }
}

/// Reserve on the disk of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveState {
    /// Size in bytes.
    pub size: u64,
    /// True if its space is taken.
    pub held: bool,
    /// Free bytes of the disk, without those of the reserve.
    pub available: u64,
}

/// Change of the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveAction {
    /// It stays as it is.
    None,
    /// It is given up.
    GiveUp,
    /// It is made again.
    Hold,
}

impl ReserveState {
    /// Decides what to do with the reserve: it is given up while less than half its size is free
    /// beside it, and made again when its size stays free.
    #[must_use]
    pub const fn action(self) -> ReserveAction {
        if self.held {
            // Far below the limit for holding again, so that the two do not alternate.
            if self.available < self.size / 2 {
                ReserveAction::GiveUp
            } else {
                ReserveAction::None
            }
        } else if self.available / 2 >= self.size {
            ReserveAction::Hold
        } else {
            ReserveAction::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn files_may_take_the_whole_quota_and_no_byte_more() {
        let quota = StorageQuota::of_bytes(100);
        assert_eq!(quota.check(60, 40), Ok(()));
        let refused = quota.check(60, 41).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "this organization stores 60 of 100 bytes, and 41 more do not fit (LABDATA_STORAGE_QUOTA); \
             delete files, or ask your operator; GET /api/v1/files/usage shows what takes them"
        );
        assert_eq!(quota.beside(10).check(50, 40), Ok(()));
        assert!(quota.beside(10).check(50, 41).is_err());
        assert!(quota.check(u64::MAX, 1).is_err());
        assert_eq!(StorageQuota::UNLIMITED.check(u64::MAX, 1), Ok(()));
        assert!(quota.is_limited() && !StorageQuota::default().is_limited());
    }

    #[test]
    fn bytes_are_summed_by_kind() {
        let bytes = BytesByKind::of([
            (StoredKind::Files, 1),
            (StoredKind::Logs, 20),
            (StoredKind::Files, 2),
            (StoredKind::History, 400),
        ]);
        assert_eq!(
            bytes
                .iter()
                .map(|(kind, bytes)| (kind.as_str(), bytes))
                .collect::<Vec<_>>(),
            [
                ("files", 3),
                ("datasets", 0),
                ("models", 0),
                ("annotations", 0),
                ("logs", 20),
                ("responses", 0),
                ("history", 400),
                ("trash", 0)
            ]
        );
        assert_eq!((bytes.get(StoredKind::Logs), bytes.total()), (20, 423));
        assert_eq!(bytes.unrecorded(), 420);
    }

    #[test]
    fn a_file_leaves_a_twentieth_of_a_small_disk_and_a_gigabyte_of_a_large_one() {
        let space = |total, available| DiskSpace { total, available };
        assert_eq!(space(100, 15).check(10), Ok(()));
        assert_eq!(space(100, 15).check(11), Err(InsufficientStorage::DiskFull));
        assert_eq!(space(1000 * GIB, 3 * GIB).check(2 * GIB), Ok(()));
        assert_eq!(
            space(1000 * GIB, 3 * GIB).check(2 * GIB + 1),
            Err(InsufficientStorage::DiskFull)
        );
        assert!(space(100, 4).check(0).is_err());
    }

    #[test]
    fn the_reserve_is_given_up_on_a_full_disk_and_made_again_with_room_to_spare() {
        let action = |held, available| {
            let state = ReserveState {
                size: 64,
                held,
                available,
            };
            state.action()
        };
        assert_eq!(action(true, 31), ReserveAction::GiveUp);
        assert_eq!(action(true, 32), ReserveAction::None);
        // Giving it up does not make it again at once, nor the other way round.
        assert_eq!(action(false, 31 + 64), ReserveAction::None);
        assert_eq!(action(false, 127), ReserveAction::None);
        assert_eq!(action(false, 128), ReserveAction::Hold);
        assert_eq!(action(true, 64), ReserveAction::None);
    }
}
