//! Deletes an annotation.

use labdata_domain::{
    ids::{AnnotationId, FileId},
    people::{actor::Actor, scope::Scope},
};

use super::confirmed_file;
use crate::{Error, Services, files::upload_file::remove};

/// Removes an annotation's record, then its mask.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_annotation(
    services: &Services,
    actor: &Actor,
    file: FileId,
    id: AnnotationId,
) -> Result<(), Error> {
    actor.require(Scope::Write)?;
    confirmed_file(services, actor, file).await?;
    let deleted = services
        .annotations
        .delete(actor.organization, file, id)
        .await?;
    // After the record: a failure here only leaves an object for the sweep.
    remove(services, actor, deleted.object).await;
    Ok(())
}
