//! Restores from the trash.

use labdata_domain::{
    ids::TrashId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    trash::{TrashEntry, TrashKind},
};
use labdata_ports::trash::RestoreError;

use super::visible_entry;
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::visible::visible_catalog,
    data::write_data::redacted,
};

/// Restores a deleted file, table or column as it was; returns its entry, which is no longer in the trash.
///
/// # Errors
/// `Forbidden` without the write scope, for tables and columns also without the admin scope; `NotFound`;
/// `Conflict` if its name is taken; `Invalid` if what it refers to was deleted.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn restore_from_trash(
    services: &Services,
    actor: &Actor,
    id: TrashId,
) -> Result<TrashEntry, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::RestoreFromTrash)?;
    let entry = visible_entry(services, actor, id).await?;
    if entry.kind != TrashKind::File {
        actor.require(Scope::Admin)?;
    }
    audited(services, actor, |within| async move {
        let now = within.clock.now();
        let restored = within.trash.restore(actor.organization, id, now).await;
        let entry = match restored {
            Ok(entry) => entry,
            Err(RestoreError::Refused(refusal)) => {
                // It may name tables that are hidden from the caller.
                let catalog = visible_catalog(&within, actor).await?;
                return Err(redacted(&catalog, Error::refused(refusal)));
            }
            Err(RestoreError::Port(error)) => return Err(error.into()),
        };
        let record = Record::of(entry.kind.restored(), entry.target());
        Ok((entry, Some(record)))
    })
    .await
}
