//! Purges what has been in the trash for its time.

use labdata_domain::ids::{OrganizationId, TrashId};
use labdata_ports::{PortError, trash::PurgedEntry};

use crate::{
    Error, Services, audit::record::Record, idempotency::unit_of_work::UnitOfWork,
    maintenance::freeing_space::freeing_space,
};

/// Number of entries that are looked up at a time.
const BATCH: u32 = 100;

/// Purges every entry whose time has come, each with its entry in the audit log as one transaction; returns
/// their number. Several servers may do it at once: each entry is purged by one.
///
/// # Errors
/// Errors of the ports. While a backup reads tables, those in the trash stay for the next pass.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_trash(services: &Services) -> Result<u64, Error> {
    let now = services.clock.now();
    let mut purged = 0;
    loop {
        let due = services.trash.due(now, BATCH).await?;
        let before = purged;
        for (organization, id) in due {
            match purge(services, organization, id).await {
                Ok(objects) => {
                    purged += 1;
                    remove_objects(services, organization, &objects).await?;
                }
                // Another server was faster, somebody has restored it, or a backup holds its table.
                Err(Error::Refused(_) | Error::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // What could not be purged is found by the next pass.
        if purged == before {
            return Ok(purged);
        }
    }
}

async fn purge(
    services: &Services,
    organization: OrganizationId,
    id: TrashId,
) -> Result<PurgedEntry, Error> {
    let begin = || UnitOfWork::begin(services, organization);
    // On a full disk this is what frees space.
    let unit = freeing_space(services, begin).await?;
    let within = unit.services();
    let outcome = async {
        let purged = within.trash.purge(organization, id).await?;
        let record = Record::of(purged.entry.kind.purged(), purged.entry.target());
        let entry = record.entry(within, None);
        within.audit.append(organization, entry).await?;
        Ok(purged)
    };
    let outcome = outcome.await;
    unit.conclude(outcome).await
}

async fn remove_objects(
    services: &Services,
    organization: OrganizationId,
    purged: &PurgedEntry,
) -> Result<(), PortError> {
    // The sweep of unreferenced objects finds them after the backup.
    if purged.objects.is_empty() || services.files.are_objects_retained().await? {
        return Ok(());
    }
    for object in &purged.objects {
        services.blobs.delete(organization, *object).await?;
    }
    Ok(())
}
