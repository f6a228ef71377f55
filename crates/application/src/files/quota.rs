//! Quota of an organization beside what it stores.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use labdata_domain::{ids::OrganizationId, storage::StorageQuota};
use labdata_ports::PortError;

use crate::Services;

/// Time for which the bytes of kinds that are not recorded count as they were: summing them reads a row
/// per log, response and change.
const TIME_TO_LIVE: Duration = Duration::from_mins(1);

/// Bytes of kinds that are not recorded, as they were a short time ago.
#[derive(Debug, Default)]
pub struct UnrecordedBytes(Mutex<HashMap<OrganizationId, (Instant, u64)>>);

impl UnrecordedBytes {
    fn recent(&self, organization: OrganizationId) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (counted_at, _)| counted_at.elapsed() < TIME_TO_LIVE);
        all.get(&organization).map(|(_, bytes)| *bytes)
    }

    fn insert(&self, organization: OrganizationId, bytes: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(organization, (Instant::now(), bytes));
    }
}

/// Returns the quota of an organization, which knows the bytes of kinds that are not recorded.
pub(crate) async fn quota_of(
    services: &Services,
    organization: OrganizationId,
) -> Result<StorageQuota, PortError> {
    let quota = services.storage_quota;
    if !quota.is_limited() {
        return Ok(quota);
    }
    if let Some(bytes) = services.unrecorded_bytes.recent(organization) {
        return Ok(quota.beside(bytes));
    }
    let bytes = services.files.usage(organization).await?.unrecorded();
    services.unrecorded_bytes.insert(organization, bytes);
    Ok(quota.beside(bytes))
}
