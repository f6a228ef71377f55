//! Changes an annotation: its label, and whether a person has checked it.

use labdata_domain::{
    ids::{AnnotationId, FileId},
    instruments::images::{AnnotationChange, AnnotationRefusal, Label},
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
};

use super::{AnnotationDetails, confirmed_file, show};
use crate::{Error, Services};

/// The change to make. Fields that are `None` stay as they are.
#[derive(Clone, Debug)]
pub struct ChangeAnnotation {
    /// Name of what it covers.
    pub label: Option<String>,
    /// True once a person has checked it.
    pub is_human_vetted: Option<bool>,
}

/// Changes an annotation of an image.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` for a label that is not accepted.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn change_annotation(
    services: &Services,
    actor: &Actor,
    file: FileId,
    id: AnnotationId,
    command: ChangeAnnotation,
) -> Result<AnnotationDetails, Error> {
    actor.require(Scope::Write)?;
    let label = command.label.as_deref().map(Label::parse).transpose();
    let label = label.map_err(|reason| Error::refused(AnnotationRefusal::from(reason)))?;
    let change = AnnotationChange {
        label,
        is_human_vetted: command.is_human_vetted,
    };
    confirmed_file(services, actor, file).await?;
    let changed = services
        .annotations
        .update(actor.organization, file, id, &change)
        .await?;
    let mut details = show(services, actor.organization, vec![changed]).await?;
    details
        .pop()
        .ok_or_else(|| Error::not_found(Resource::Annotation))
}
