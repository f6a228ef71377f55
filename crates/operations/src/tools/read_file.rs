//! The tool `read_file`.

use labdata_application::{Error, files::get_file_content::get_file_content};
use labdata_domain::{
    agent::AgentLimits,
    files::preview::{Preview, Skipped},
    ids::FileId,
    refusal::Resource,
};
use labdata_request_body::{
    fields::{or, required},
    output,
    readers::{MaybeId, id, unsigned},
    shape,
};

use super::ToolFacts;
use crate::{Call, JsonBody, OrNotFound, Read};

shape! {
    /// Arguments of `read_file`.
    pub(crate) struct ReadFileInput {
        /// Id of the file.
        file_id: MaybeId<FileId> = required(id()),
        /// First character to return, counted from 0.
        offset: u32 = or(0, unsigned(0..=u32::MAX)),
    }
}

output! {
    /// A part of a file.
    pub(crate) struct FilePartView {
        /// Its path.
        original_path: String,
        /// The part; null if the file has no text.
        text: Option<String>,
        /// The first character of the next part; null at the end.
        next_offset: Option<usize>,
        /// True if the file is longer than what can be read of it.
        preview_truncated: bool,
        /// Why the file has no text.
        preview_skipped_reason: Option<&'static str>,
    }
}

/// Facts of the tool.
pub(crate) const FACTS: ToolFacts = ToolFacts {
    name: Some("read_file"),
    ..ToolFacts::of(
        "Reads a text file: 64 KiB of its start, in parts. Other files and \
        large ones have no text.",
    )
};

/// The start of a file as text.
pub(crate) async fn run(call: Call<Read, JsonBody<ReadFileInput>>) -> Result<FilePartView, Error> {
    let id = call.body.file_id.or_not_found(Resource::File)?;
    let found = get_file_content(&call.services, &call.actor, id).await?;
    let part = FilePartView {
        original_path: found.file.path.as_str().to_owned(),
        text: None,
        next_offset: None,
        preview_truncated: false,
        preview_skipped_reason: None,
    };
    Ok(match found.preview {
        Preview::Skipped(reason) => FilePartView {
            preview_skipped_reason: Some(Skipped::as_str(reason)),
            ..part
        },
        Preview::Text { text, truncated } => {
            let offset = usize::try_from(call.body.offset).unwrap_or(usize::MAX);
            let displayed: String = text.chars().skip(offset).take(part_length()).collect();
            let end = offset.saturating_add(displayed.chars().count());
            FilePartView {
                next_offset: text.chars().nth(end).map(|_| end),
                text: Some(displayed),
                preview_truncated: truncated,
                ..part
            }
        }
    })
}

/// Number of characters of one part: what a model gets, with room for escapes.
fn part_length() -> usize {
    AgentLimits::default().model_output_bytes / 2
}
