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
};

/// Removes a file's record, then its bytes; URLs to them find nothing from then on.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_file(services: &Services, actor: &Actor, id: FileId) -> Result<(), Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::DeleteFile)?;
    let file = audited(services, actor, |within| async move {
        let now = within.clock.now();
        let file = within.files.delete(actor.organization, id, now).await?;
        let target = AuditTarget::new(AuditTargetKind::File, id, file.path.as_str());
        Ok((file, Some(Record::of(AuditAction::FileDeleted, target))))
    })
    .await?;
    // After the record: a failure here only leaves an object for the sweep.
    remove(services, actor, file.state.object()).await;
    Ok(())
}
