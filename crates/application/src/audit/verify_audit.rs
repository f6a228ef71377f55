//! Checks the audit logs of all organizations.

use labdata_domain::{
    audit::{AuditFilter, BrokenChain, ChainCheck},
    people::tenancy::Organization,
};

use crate::{Error, Services};

/// Number of entries that are in memory at a time.
const BATCH: u32 = 10_000;

/// An organization's audit log, checked.
#[derive(Clone, Debug)]
pub struct CheckedLog {
    /// The organization.
    pub organization: Organization,
    /// The number of entries; or why they do not form one chain.
    pub entries: Result<u64, BrokenChain>,
}

/// Checks each organization's chain from its first entry to its recorded end. For operators: no endpoint may
/// call it.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn verify_audit(services: &Services) -> Result<Vec<CheckedLog>, Error> {
    let mut checked = Vec::new();
    for organization in services.tenancy.organizations().await? {
        let entries = check(services, &organization).await?;
        checked.push(CheckedLog {
            organization,
            entries,
        });
    }
    Ok(checked)
}

async fn check(
    services: &Services,
    organization: &Organization,
) -> Result<Result<u64, BrokenChain>, Error> {
    let (audit, all) = (&services.audit, AuditFilter::default());
    // Read first: entries that servers append during the check come behind this end.
    let end = audit.end(organization.id).await?;
    let (mut check, mut after) = (ChainCheck::default(), None);
    loop {
        let entries = audit
            .list_after(organization.id, &all, after, BATCH)
            .await?;
        let Some(last) = entries.last() else {
            return Ok(check.finish(end));
        };
        after = Some(last.at);
        for entry in &entries {
            if let Err(broken) = check.next(entry) {
                return Ok(Err(broken));
            }
            if Some(entry.chain_end()) == end {
                return Ok(check.finish(end));
            }
        }
    }
}
