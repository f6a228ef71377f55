//! The tools `list_files` and `read_file`.

use async_trait::async_trait;
use labdata_domain::{
    agent::AgentLimits,
    files::{ExtensionFilter, FileFilter, NameQuery, preview::Preview},
    ids::{FileId, InstrumentId},
    page::PageRequest,
    refusal::Resource,
    timestamp,
};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{MaybeId, id, text, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool};
use crate::{
    Error,
    files::{get_file_content::get_file_content, list_files::list_files},
};

shape! {
    /// Arguments of `list_files`.
    pub(super) struct ListFilesInput {
        /// Only files whose path contains this, without regard to case.
        query: Option<String> = optional(text(..)),
        /// Only files with one of these extensions, such as csv,txt.
        extensions: Option<String> = optional(text(..)),
        /// Only files of this instrument.
        instrument_id: Option<MaybeId<InstrumentId>> = optional(id()),
        /// Maximum number of files.
        limit: u32 = or(50, unsigned(1..=200)),
    }
}

/// Files, newest first.
pub(super) struct ListFiles;

#[async_trait]
impl TypedTool for ListFiles {
    type Input = ListFilesInput;
    const NAME: &'static str = "list_files";
    const DESCRIPTION: &'static str = "Lists uploaded files, newest first.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: ListFilesInput) -> Result<String, Error> {
        let none = || Ok(json!({ "files": [] }).to_string());
        let instrument = match input.instrument_id.map(MaybeId::known) {
            // A malformed id belongs to no instrument, so no file matches.
            Some(None) => return none(),
            instrument => instrument.flatten(),
        };
        let Ok(query) = NameQuery::parse(input.query.as_deref().unwrap_or_default()) else {
            return none();
        };
        let filter = FileFilter {
            instrument,
            execution: None,
            extensions: input.extensions.as_deref().and_then(ExtensionFilter::parse),
            query,
        };
        let page = PageRequest {
            limit: Some(input.limit),
            after: None,
        };
        let page = list_files(context.ports, context.actor, &filter, page).await?;
        let files = page.items.iter().map(|file| {
            json!({
                "id": file.id.to_string(),
                "path": file.path.as_str(),
                "size_kilobytes": file.size_kilobytes(),
                "uploaded_at": file.state.uploaded_at().map(timestamp::render),
                "instrument_id": file.attribution.instrument().map(|id| id.to_string()),
                "job_execution_id": file.attribution.execution().map(|id| id.to_string()),
            })
        });
        let files: Vec<Value> = files.collect();
        Ok(json!({ "files": files, "more": page.next.is_some() }).to_string())
    }
}

shape! {
    /// Arguments of `read_file`.
    pub(super) struct ReadFileInput {
        /// Id of the file.
        file_id: MaybeId<FileId> = required(id()),
        /// First character to return, counted from 0.
        offset: u32 = or(0, unsigned(0..=u32::MAX)),
    }
}

/// The start of a file as text.
pub(super) struct ReadFile;

#[async_trait]
impl TypedTool for ReadFile {
    type Input = ReadFileInput;
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Reads a text file: 64 KiB of its start, in parts. Other files and \
        large ones have no text.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: ReadFileInput) -> Result<String, Error> {
        let id = input
            .file_id
            .known()
            .ok_or_else(|| Error::not_found(Resource::File))?;
        let found = get_file_content(context.ports, context.actor, id).await?;
        let path = found.file.path.as_str();
        let json = match &found.preview {
            Preview::Skipped(reason) => {
                json!({ "path": path, "text": null, "reason": reason.as_str() })
            }
            Preview::Text { text, truncated } => {
                let offset = usize::try_from(input.offset).unwrap_or(usize::MAX);
                let part: String = text.chars().skip(offset).take(part_length()).collect();
                let end = offset.saturating_add(part.chars().count());
                let is_end = text.chars().nth(end).is_none();
                json!({
                    "path": path,
                    "text": part,
                    "next_offset": if is_end { None } else { Some(end) },
                    "is_longer_than_readable": truncated,
                })
            }
        };
        Ok(json.to_string())
    }
}

/// Number of characters of one part: what a model gets, with room for escapes.
fn part_length() -> usize {
    AgentLimits::default().model_output_bytes / 2
}
