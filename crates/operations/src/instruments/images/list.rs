//! `GET /api/v1/images/{file_id}/annotations`

use labdata_application::{Error, instruments::images::list_annotations::list_annotations};
use labdata_domain::refusal::Resource;

use super::{AnnotationView, ImagePath};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_annotations",
        method: Method::Get,
        path: "/api/v1/images/{file_id}/annotations",
        tag: Tag::Images,
        summary: "Lists the annotations of an image",
        description: "All of them, oldest first. An image has at most 5,000.",
        returns: "The annotations",
        refusals: &[(
            400,
            "The file is no image, or its upload is not confirmed yet",
        )],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), ImagePath>) -> Result<Vec<AnnotationView>, Error> {
    let file = call.path.file_id.or_not_found(Resource::File)?;
    let annotations = list_annotations(&call.services, &call.actor, file).await?;
    let view = |annotation| AnnotationView::reached(annotation, &call.base_url);
    Ok(annotations.into_iter().map(view).collect())
}
