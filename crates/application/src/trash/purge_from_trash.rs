//! Purges an entry of the trash.

use labdata_domain::{
    ids::TrashId,
    people::{actor::Actor, scope::Scope},
};

use super::visible_entry;
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    files::upload_file::remove,
};

/// Removes a deleted file, table or column for good.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn purge_from_trash(
    services: &Services,
    actor: &Actor,
    id: TrashId,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    visible_entry(services, actor, id).await?;
    let purged = audited(services, actor, |within| async move {
        let purged = within.trash.purge(actor.organization, id).await?;
        let record = Record::of(purged.entry.kind.purged(), purged.entry.target());
        Ok((purged, Some(record)))
    })
    .await?;
    for object in purged.objects {
        // After the record: a failure here only leaves an object for the sweep.
        remove(services, actor, object).await;
    }
    Ok(())
}
