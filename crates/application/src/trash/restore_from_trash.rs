//! Restores from the trash.

use labdata_domain::{
    ids::TrashId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    trash::{TrashEntry, TrashKind},
};
use labdata_ports::trash::RestoreError;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
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
    let entry = services.trash.get(actor.organization, id).await?;
    if entry.kind != TrashKind::File {
        actor.require(Scope::Admin)?;
    }
    audited(services, actor, |within| async move {
        let now = within.clock.now();
        let restored = within.trash.restore(actor.organization, id, now).await;
        let entry = restored.map_err(|error| match error {
            RestoreError::Refused(refusal) => Error::refused(refusal),
            RestoreError::Port(error) => error.into(),
        })?;
        let record = Record::of(entry.kind.restored(), entry.target());
        Ok((entry, Some(record)))
    })
    .await
}
