//! `GET /api/v1/files/{file_id}`

use labdata_application::{Error, files::get_file::get_file};
use labdata_domain::refusal::Resource;

use super::{FilePathId, FileView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_file",
        method: Method::Get,
        path: "/api/v1/files/{file_id}",
        tag: Tag::Files,
        summary: "Shows an uploaded file",
        description: "The item of the list of files; the content is read with `get_file_content`.",
        returns: "The file",
        refusals: &[(400, "The upload of the file is not confirmed yet")],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), FilePathId>) -> Result<FileView, Error> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    Ok(get_file(&call.services, &call.actor, id).await?.into())
}
