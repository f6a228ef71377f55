//! Deletes a file.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::FileId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    files::upload_file::remove,
    trash::deletion,
};

/// Moves a file into the trash; one that is not confirmed is removed with its bytes.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_file(services: &Services, actor: &Actor, id: FileId) -> Result<(), Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::DeleteFile)?;
    let (file, is_stored) = audited(services, actor, |within| async move {
        let organization = actor.organization;
        let deletion = deletion(&within, actor);
        let file = if let Some(deletion) = &deletion {
            within.trash.delete_file(organization, id, deletion).await?
        } else {
            let now = within.clock.now();
            within.files.delete(organization, id, now).await?
        };
        // What was never confirmed is no file yet, and is not retained.
        let is_stored = deletion.is_some() && file.place().is_some();
        let target = AuditTarget::new(AuditTargetKind::File, id, file.path.as_str());
        let record = Record::of(AuditAction::FileDeleted, target);
        Ok(((file, is_stored), Some(record)))
    })
    .await?;
    if !is_stored {
        // After the record: a failure here only leaves an object for the sweep.
        remove(services, actor, file.state.object()).await;
    }
    Ok(())
}
