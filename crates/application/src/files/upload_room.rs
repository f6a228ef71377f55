//! Room for an upload: the disk's floor and the organization's quota, checked before the first byte
//! and while bytes arrive.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_domain::{
    files::ObjectKey, ids::OrganizationId, people::actor::Actor, storage::InsufficientStorage,
};
use labdata_ports::{
    PortError,
    files::blob::{BodyBroken, ByteStream},
};

use super::{ongoing_uploads::OngoingUpload, quota::quota_of};
use crate::{
    Error, Services,
    maintenance::disk_reserve::require_reserve,
    slots::{Slot, Work},
};

/// Bytes between two checks of the disk.
const DISK_INTERVAL: u64 = 8 << 20;

/// Bytes of an upload of unknown length before usage is read again; from then on whenever the upload
/// has doubled.
const USAGE_INTERVAL: u64 = 1 << 20;

/// Why an upload has no room.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// Disk or quota are used up.
    #[error(transparent)]
    Insufficient(#[from] InsufficientStorage),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<NoRoom> for Error {
    fn from(refusal: NoRoom) -> Self {
        match refusal {
            NoRoom::Insufficient(refusal) => refusal.into(),
            NoRoom::Port(error) => error.into(),
        }
    }
}

/// Checks that the disk has room for `more` bytes.
async fn check_disk(services: &Services, more: u64) -> Result<(), NoRoom> {
    let space = services.blobs.disk_space().await?;
    // Last: space of a reserve that is given up in the meantime is not for files.
    require_reserve(services)?;
    if let Some(space) = space {
        space.check(more)?;
    }
    Ok(())
}

/// Checks that there is room for some upload of the organization.
pub(super) async fn check_room(
    services: &Services,
    organization: OrganizationId,
) -> Result<(), NoRoom> {
    check_disk(services, 0).await?;
    if services.storage_quota.is_limited() {
        let used = services.files.used_bytes(organization).await?;
        // One byte: the size is not known yet, but a full quota refuses every file.
        quota_of(services, organization).await?.check(used, 1)?;
    }
    Ok(())
}

/// Counts `bytes` for the upload, and checks that they fit on the disk and into the quota.
pub(crate) async fn reserve(
    services: &Services,
    upload: &OngoingUpload,
    bytes: u64,
) -> Result<(), NoRoom> {
    check_disk(services, bytes).await?;
    if services.storage_quota.is_limited() {
        Usage::default().check(services, upload, bytes).await?;
    }
    Ok(())
}

/// The reason for which a body was cut off, if it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutOff(Arc<Mutex<Option<NoRoom>>>);

impl CutOff {
    pub(crate) fn reason(&self) -> Option<NoRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, reason: NoRoom) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// Returns a body that breaks off as soon as there is no room for it, and then the reason. With an
/// announced length, which [`reserve`] has counted, only the disk is checked.
pub(crate) fn checked(
    services: &Services,
    upload: &Arc<OngoingUpload>,
    is_announced: bool,
    body: ByteStream,
) -> (ByteStream, CutOff) {
    let cut_off = CutOff::default();
    let checked = CheckedBody {
        services: services.clone(),
        growth: Growth {
            upload: Arc::clone(upload),
            size: 0,
            disk_due: DISK_INTERVAL,
            // An announced length was reserved as a whole before the first byte.
            usage: (!is_announced && services.storage_quota.is_limited()).then(Usage::default),
        },
        body,
        cut_off: cut_off.clone(),
    };
    let stream = stream::unfold(checked, |mut checked| async move {
        let chunk = checked.next().await?;
        Some((chunk, checked))
    });
    (stream.boxed(), cut_off)
}

/// Room on the disk for a file that is read and not stored, such as that of an import. It counts as an
/// upload under way until it is dropped.
#[derive(Debug)]
pub struct SpoolRoom {
    growth: Growth,
    _slot: Slot,
}

impl SpoolRoom {
    /// Waits for a slot of the caller, and checks that there is room for some file.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s; `InsufficientStorage`.
    pub async fn enter(services: &Services, actor: &Actor) -> Result<Self, Error> {
        let organization = actor.organization;
        let slot = services.slots.enter(Work::SpooledFile, actor).await?;
        check_room(services, organization).await?;
        let object = ObjectKey::new(services.ids.next_id());
        let upload = services.ongoing_uploads.begin(organization, object);
        let taken = || Error::Internal("an id was made twice".to_owned());
        Ok(Self {
            growth: Growth {
                upload: Arc::new(upload.ok_or_else(taken)?),
                size: 0,
                disk_due: DISK_INTERVAL,
                usage: services.storage_quota.is_limited().then(Usage::default),
            },
            _slot: slot,
        })
    }

    /// Counts bytes that are written next.
    ///
    /// # Errors
    /// `InsufficientStorage` if they do not fit on the disk or into the quota.
    pub async fn grow(&mut self, services: &Services, bytes: usize) -> Result<(), Error> {
        Ok(self.growth.grow(services, bytes).await?)
    }
}

/// Size of an upload that grows, and the checks that are due.
#[derive(Debug)]
struct Growth {
    upload: Arc<OngoingUpload>,
    size: u64,
    /// Size from which the disk is checked again.
    disk_due: u64,
    /// Present if the quota is checked.
    usage: Option<Usage>,
}

impl Growth {
    async fn grow(&mut self, services: &Services, bytes: usize) -> Result<(), NoRoom> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.size = self.size.saturating_add(bytes);
        if self.size >= self.disk_due {
            self.disk_due = self.size.saturating_add(DISK_INTERVAL);
            check_disk(services, 0).await?;
        }
        if let Some(usage) = &mut self.usage {
            usage.check(services, &self.upload, self.size).await?;
        }
        Ok(())
    }
}

struct CheckedBody {
    services: Services,
    growth: Growth,
    body: ByteStream,
    cut_off: CutOff,
}

/// Bytes that were stored when they were last counted.
#[derive(Debug, Default)]
struct Usage {
    stored: u64,
    /// Number of uploads that had ended by then; `None` before the first count.
    ended: Option<u64>,
    /// Size of the upload from which they are counted again.
    due: u64,
}

impl Usage {
    /// Counts the upload as that many bytes, and checks them beside those stored and under way. An
    /// upload that ends at the same time may count twice, so a refusal is checked again.
    async fn check(
        &mut self,
        services: &Services,
        upload: &OngoingUpload,
        bytes: u64,
    ) -> Result<(), NoRoom> {
        if self.fits(services, upload, bytes).await?.is_ok() {
            return Ok(());
        }
        // A refusal is decided with fresh numbers, because the cached ones may be outdated.
        self.ended = None;
        Ok(self.fits(services, upload, bytes).await??)
    }

    async fn fits(
        &mut self,
        services: &Services,
        upload: &OngoingUpload,
        bytes: u64,
    ) -> Result<Result<(), InsufficientStorage>, PortError> {
        // First the uploads under way, then the stored bytes: one that ends in between is in both.
        let ongoing = upload.grow_to(bytes);
        if self.ended != Some(ongoing.ended) || bytes >= self.due {
            self.stored = services.files.used_bytes(upload.organization()).await?;
            self.ended = Some(ongoing.ended);
            // Doubling limits the queries of an upload to the logarithm of its size.
            self.due = bytes.saturating_mul(2).max(USAGE_INTERVAL);
        }
        let others = ongoing.bytes.saturating_sub(bytes);
        let quota = quota_of(services, upload.organization()).await?;
        Ok(quota.check(self.stored.saturating_add(others), bytes))
    }
}

impl CheckedBody {
    async fn next(&mut self) -> Option<Result<Bytes, BodyBroken>> {
        let chunk = match self.body.next().await? {
            Ok(chunk) => chunk,
            broken @ Err(_) => return Some(broken),
        };
        Some(match self.growth.grow(&self.services, chunk.len()).await {
            Ok(()) => Ok(chunk),
            Err(reason) => {
                let text = reason.to_string();
                self.cut_off.set(reason);
                Err(BodyBroken(text))
            }
        })
    }
}
