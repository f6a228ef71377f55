//! `POST /api/v1/files/{file_id}/confirm-upload`

use actix_web::web::Json;
use labdata_application::files::confirm_upload::confirm_upload;
use labdata_domain::ids::FileId;
use labdata_request_body::{fields::required, readers::uuid, shape};

use super::FileUploadView;
use crate::http::{ApiResult, Call, NoBody, Write, error::ErrorBody};

shape! {
    /// The path of a file.
    #[derive(Clone, Copy, Debug)]
    pub struct ConfirmPath {
        /// The file's id
        file_id: FileId = required(uuid()),
    }
}

/// Confirms that the bytes were sent to the upload URL
///
/// The file is listed from then on. One that is confirmed already is returned as it is.
#[utoipa::path(
    post,
    path = "/api/v1/files/{file_id}/confirm-upload",
    operation_id = "confirm_upload",
    tag = "files",
    responses(
        (status = 200, description = "The file", body = FileUploadView),
        (
            status = 400,
            description = "The bytes are not there yet; the execution is closed; another upload of \
                the path came first; or they are too many or a native executable, and the file was \
                discarded",
            body = ErrorBody
        ),
        (
            status = 507,
            description = "The disk is full; or other files have used up the quota of the organization, and \
                the file was discarded",
            body = ErrorBody
        ),
    )
)]
pub async fn handle(call: Call<Write, NoBody, (), ConfirmPath>) -> ApiResult<Json<FileUploadView>> {
    let file = confirm_upload(call.ports(), &call.actor, call.path.file_id).await?;
    Ok(Json(file.into()))
}
