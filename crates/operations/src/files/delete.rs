//! `DELETE /api/v1/files/{file_id}`

use labdata_application::{Error, files::delete_file::delete_file};
use labdata_domain::refusal::Resource;

use super::FilePathId;
use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_file",
        method: Method::Delete,
        path: "/api/v1/files/{file_id}",
        tag: Tag::Files,
        summary: "Deletes a file",
        description: "It moves into the trash, where it can be restored for `LABDATA_TRASH_DAYS`. Elsewhere it does not exist \
            from then on, and its path is free.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), FilePathId>) -> Result<NoContent, Error> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    delete_file(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
