//! `POST /api/v1/files`

use actix_web::web::Json;
use labdata_application::files::upload_file::{UploadFile, upload_file};

use super::{FileUploadView, upload_form::UploadForm};
use crate::http::{ApiResult, Call, Write, error::ErrorBody};

/// Uploads a file in one request
///
/// At least one of `job_execution_id` and `instrument_id` is required. Types that a browser could
/// render as a page are stored as `application/octet-stream`. Larger files take the way over
/// `POST /api/v1/files/upload-url`.
#[utoipa::path(
    post,
    path = "/api/v1/files",
    operation_id = "upload_file",
    tag = "files",
    responses(
        (status = 200, description = "The file", body = FileUploadView),
        (status = 400, description = "The execution is closed, or the file is a native executable", body = ErrorBody),
        (status = 409, description = "The instrument has a file of this name", body = ErrorBody),
        (status = 507, description = "The disk is full, or the quota of the organization; nothing was stored", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, UploadForm>) -> ApiResult<Json<FileUploadView>> {
    let (call, body) = call.take_body();
    let command = UploadFile {
        path: body.path,
        content_type: body.content_type,
        execution: body.execution,
        instrument: body.instrument,
        source: body.source,
        bytes: body.bytes,
    };
    let file = upload_file(call.begin().await?, &call.actor, command).await?;
    Ok(Json(file.into()))
}
