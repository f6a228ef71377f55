//! Lists the annotations of an image.

use labdata_domain::{
    files::FileState,
    ids::FileId,
    people::{actor::Actor, scope::Scope},
};

use super::{AnnotationDetails, confirmed_file, image_size::image_size, show};
use crate::{Error, Services};

/// The annotations of an image, oldest first.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a file that is no image.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_annotations(
    services: &Services,
    actor: &Actor,
    file: FileId,
) -> Result<Vec<AnnotationDetails>, Error> {
    actor.require(Scope::Read)?;
    let stored = confirmed_file(services, actor, file).await?;
    let annotations = services.annotations.list(actor.organization, file).await?;
    // What has annotations is an image.
    if annotations.is_empty()
        && let FileState::Confirmed { object, .. } = stored.state
    {
        image_size(services, actor.organization, object).await?;
    }
    show(services, actor.organization, annotations).await
}
