//! `GET /api/v1/files/{file_id}/content`

use actix_web::web::Json;
use labdata_application::files::get_file_content::{FileContent, get_file_content};
use labdata_domain::{
    files::preview::{Preview, Skipped},
    refusal::Resource,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

use super::FilePathId;
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, error::ErrorBody};

names! {
    /// Reason why a file has no preview.
    pub PreviewSkippedReason = Skipped::ALL.map(Skipped::as_str);
}

/// A file and how to get at its bytes.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = FileContentResult)]
pub struct FileContentView {
    /// Id of the file.
    file_id: String,
    /// The last part of the name or path that was recorded.
    file_name: String,
    /// Kilobytes of 1,024 bytes, rounded up.
    size_kilobytes: Option<u64>,
    /// URL of the whole file, valid for 15 minutes without a key.
    download_url: String,
    /// The start of the file as text; null when skipped.
    text_preview: Option<String>,
    /// True if the file is longer than the preview.
    preview_truncated: bool,
    /// Why there is no preview; null if there is one.
    #[schema(value_type = Option<PreviewSkippedReason>)]
    preview_skipped_reason: Option<&'static str>,
}

impl From<FileContent> for FileContentView {
    fn from(content: FileContent) -> Self {
        let FileContent {
            file,
            download_url,
            preview,
        } = content;
        let (text_preview, preview_truncated, preview_skipped_reason) = match preview {
            Preview::Text { text, truncated } => (Some(text), truncated, None),
            Preview::Skipped(reason) => (None, false, Some(reason.as_str())),
        };
        Self {
            file_id: file.id.to_string(),
            file_name: file.path.file_name().to_owned(),
            size_kilobytes: file.size_kilobytes(),
            download_url,
            text_preview,
            preview_truncated,
            preview_skipped_reason,
        }
    }
}

/// Shows a file: a URL to all of it, and its start as text
///
/// `download_url` is signed and works for 15 minutes, with ranges. The preview decodes the first 64
/// KiB; it is skipped for files over 10 MiB and for binary files.
#[utoipa::path(
    get,
    path = "/api/v1/files/{file_id}/content",
    operation_id = "get_file_content",
    tag = "files",
    responses(
        (status = 200, description = "The file", body = FileContentView),
        (status = 400, description = "The upload of the file is not confirmed yet", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, NoBody, (), FilePathId>) -> ApiResult<Json<FileContentView>> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    let mut content = get_file_content(call.ports(), &call.actor, id).await?;
    content.download_url = call.localize(content.download_url);
    Ok(Json(content.into()))
}
