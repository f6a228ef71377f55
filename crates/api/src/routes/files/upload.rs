//! `POST /api/v1/files`

use actix_web::web::Json;
use labdata_application::files::upload_file::{UploadFile, record_upload, store_upload};
use labdata_operations::files::FileUploadView;

use super::upload_form::UploadForm;
use crate::http::{ApiResult, Call, Write};

/// Uploads a file. Its bytes are stored before the effect begins, so that a slow storage holds no
/// connection to the database.
pub async fn handle(call: Call<Write, UploadForm>) -> ApiResult<Json<FileUploadView>> {
    call.refuse_repeated().await?;
    let (call, body) = call.take_body();
    let command = UploadFile {
        path: body.path,
        content_type: body.content_type,
        execution: body.execution,
        instrument: body.instrument,
        source: body.source,
        bytes: body.bytes,
    };
    let stored = store_upload(call.services(), &call.actor, command).await?;
    let file = record_upload(call.begin().await?, &call.actor, stored).await?;
    Ok(Json(file.into()))
}
