//! Shows how much an organization stores.

use labdata_domain::{
    people::{actor::Actor, scope::Scope},
    storage::{BytesByKind, StorageQuota},
};

use crate::{Error, Services};

/// Bytes that an organization stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageUsage {
    /// Bytes in use, by kind.
    pub used: BytesByKind,
    /// Most bytes that it may use.
    pub quota: StorageQuota,
}

/// Counts the bytes that the caller's organization stores.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_storage_usage(services: &Services, actor: &Actor) -> Result<StorageUsage, Error> {
    actor.require(Scope::Read)?;
    Ok(StorageUsage {
        used: services.files.usage(actor.organization).await?,
        quota: services.storage_quota,
    })
}
