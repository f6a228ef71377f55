//! `GET /api/v1/files/{file_id}`

use actix_web::web::Json;
use labdata_application::files::get_file::get_file;
use labdata_domain::refusal::Resource;

use super::{FilePathId, FileView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, error::ErrorBody};

/// Shows an uploaded file
///
/// The item of the list of files; the content is read with `get_file_content`.
#[utoipa::path(
    get,
    path = "/api/v1/files/{file_id}",
    operation_id = "get_file",
    tag = "files",
    responses(
        (status = 200, description = "The file", body = FileView),
        (status = 400, description = "The upload of the file is not confirmed yet", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, NoBody, (), FilePathId>) -> ApiResult<Json<FileView>> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    let file = get_file(call.ports(), &call.actor, id).await?;
    Ok(Json(file.into()))
}
