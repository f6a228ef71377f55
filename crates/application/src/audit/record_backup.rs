//! Records a backup.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind, NewAuditEntry},
    ids::AuditEntryId,
};
use labdata_ports::{Clock, IdSource, Repositories};
use serde_json::Map;

use crate::Error;

/// Records in the audit log of every organization that the operator makes a backup of the platform, with which
/// its data leave the platform. No endpoint may call it.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn record_backup(
    repositories: &Repositories,
    clock: &dyn Clock,
    ids: &dyn IdSource,
) -> Result<(), Error> {
    for organization in repositories.tenancy.organizations().await? {
        let entry = NewAuditEntry {
            id: AuditEntryId::new(ids.next_id()),
            at: clock.now(),
            action: AuditAction::BackupCreated,
            user: None,
            api_key: None,
            target: AuditTarget::named(AuditTargetKind::Platform, "labdata"),
            details: Map::new(),
        };
        repositories.audit.append(organization.id, entry).await?;
    }
    Ok(())
}
