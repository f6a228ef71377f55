//! `DELETE /api/v1/images/{file_id}/annotations/{annotation_id}`

use labdata_application::{Error, instruments::images::delete_annotation::delete_annotation};
use labdata_domain::refusal::Resource;

use super::AnnotationPath;
use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_annotation",
        method: Method::Delete,
        path: "/api/v1/images/{file_id}/annotations/{annotation_id}",
        tag: Tag::Images,
        summary: "Deletes an annotation",
        description: "Datasets that were made of it stay as they are.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), AnnotationPath>) -> Result<NoContent, Error> {
    let file = call.path.file_id.or_not_found(Resource::File)?;
    let id = call.path.annotation_id.or_not_found(Resource::Annotation)?;
    delete_annotation(&call.services, &call.actor, file, id).await?;
    Ok(NoContent)
}
