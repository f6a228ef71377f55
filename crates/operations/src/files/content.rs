//! `GET /api/v1/files/{file_id}/content`

use labdata_application::{
    Error,
    files::get_file_content::{FileContent, get_file_content},
};
use labdata_domain::{
    files::preview::{Preview, Skipped},
    ids::FileId,
    refusal::Resource,
};
use labdata_request_body::{names, output};

use super::FilePathId;
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag, tools::read_file};

names! {
    /// Reason why a file has no preview.
    pub PreviewSkippedReason = Skipped::ALL.map(Skipped::as_str);
}

output! {
    /// A file and how to get at its bytes.
    #[derive(Clone)]
    pub struct FileContentView as "FileContentResult" {
        /// Id of the file.
        file_id: FileId,
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
        preview_skipped_reason: Option<PreviewSkippedReason>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_file_content",
        method: Method::Get,
        path: "/api/v1/files/{file_id}/content",
        tag: Tag::Files,
        summary: "Shows a file: a URL to all of it, and its start as text",
        description: "`download_url` is signed and works for 15 minutes, with ranges. The preview decodes \
            the first 64 KiB; it is skipped for files over 10 MiB and for binary files.",
        returns: "The file",
        refusals: &[(400, "The upload of the file is not confirmed yet")],
    }
    .runs(run)
    .tool_running(read_file::FACTS, read_file::run)
}

async fn run(call: Call<Read, NoBody, (), FilePathId>) -> Result<FileContentView, Error> {
    let id = call.path.file_id.or_not_found(Resource::File)?;
    let FileContent {
        file,
        download_url,
        preview,
    } = get_file_content(&call.services, &call.actor, id).await?;
    let (text_preview, preview_truncated, skipped) = match preview {
        Preview::Text { text, truncated } => (Some(text), truncated, None),
        Preview::Skipped(reason) => (None, false, Some(reason)),
    };
    Ok(FileContentView {
        file_id: file.id,
        file_name: file.path.file_name().to_owned(),
        size_kilobytes: file.size_kilobytes(),
        download_url: call.base_url.localize(download_url),
        text_preview,
        preview_truncated,
        preview_skipped_reason: skipped.map(|reason| reason.as_str().into()),
    })
}
