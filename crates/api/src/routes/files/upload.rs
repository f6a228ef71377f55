//! `POST /api/v1/files`

use actix_web::web::Json;
use labdata_application::files::upload_file::{UploadFile, upload_file};
use labdata_operations::files::FileUploadView;

use super::upload_form::UploadForm;
use crate::http::{ApiResult, Call, Write};

/// Uploads a file.
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
