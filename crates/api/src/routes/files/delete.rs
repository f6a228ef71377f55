//! `DELETE /api/v1/files/{file_id}`

use labdata_application::files::delete_file::delete_file;
use labdata_domain::refusal::Resource;

use super::FilePathId;
use crate::http::{ApiResult, Call, NoBody, NoContent, OrNotFound, Write};

/// Deletes a file
///
/// Its record and its bytes; URLs to it find nothing from then on.
#[utoipa::path(
    delete,
    path = "/api/v1/files/{file_id}",
    operation_id = "delete_file",
    tag = "files",
    responses((status = 204, description = "It is gone"))
)]
pub async fn handle(call: Call<Write, NoBody, (), FilePathId>) -> ApiResult<NoContent> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    delete_file(call.ports(), &call.actor, id).await?;
    Ok(NoContent)
}
