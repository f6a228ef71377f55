//! Shows how much an organization stores.

use labdata_domain::{
    people::{actor::Actor, scope::Scope},
    storage::StorageQuota,
};

use crate::{Error, Services};

/// What the files and datasets of an organization take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageUsage {
    /// Bytes in use, with those of uploads that are not confirmed yet.
    pub used_bytes: u64,
    /// Most bytes that it may use.
    pub quota: StorageQuota,
}

/// What the files and datasets of the caller's organization take.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_storage_usage(ports: &Services, actor: &Actor) -> Result<StorageUsage, Error> {
    actor.require(Scope::Read)?;
    Ok(StorageUsage {
        used_bytes: ports.files.used_bytes(actor.organization).await?,
        quota: ports.storage_quota,
    })
}
