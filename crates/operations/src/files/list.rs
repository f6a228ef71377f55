//! `GET /api/v1/files`

use std::str::FromStr;

use labdata_application::{Error, files::list_files::list_files};
use labdata_domain::{
    files::{ExtensionFilter, FileFilter, NameQuery},
    page::{DEFAULT_LIMIT, PageRequest},
};
use labdata_request_body::{
    fields::{optional, page},
    readers::text,
    shape,
};

use super::FileView;
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag, tools::ToolFacts};

shape! {
    /// Filters of the list of files.
    #[derive(Clone, Debug)]
    pub struct ListFilesQuery {
        /// Only files of this instrument.
        instrument_id: Option<String> = optional(text(..)),
        /// Only files of this execution.
        job_execution_id: Option<String> = optional(text(..)),
        /// Only files with one of these extensions, such as `csv,.TXT`: without regard to case, the
        /// dot optional.
        extensions: Option<String> = optional(text(..)),
        /// Only files whose path contains this, without regard to case.
        query: Option<String> = optional(text(..)),
        page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}

impl ListFilesQuery {
    /// The filter; `None` when nothing can match. An empty value asks for nothing.
    fn filter(&self) -> Option<FileFilter> {
        let query = NameQuery::parse(self.query.as_deref().unwrap_or_default()).ok()?;
        Some(FileFilter {
            instrument: wanted(self.instrument_id.as_deref()).ok()?,
            execution: wanted(self.job_execution_id.as_deref()).ok()?,
            extensions: self.extensions.as_deref().and_then(ExtensionFilter::parse),
            query,
        })
    }
}

/// Reads the id of a filter; an empty text asks for nothing.
fn wanted<T: FromStr>(id: Option<&str>) -> Result<Option<T>, T::Err> {
    id.filter(|id| !id.is_empty()).map(str::parse).transpose()
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_files",
        method: Method::Get,
        path: "/api/v1/files",
        tag: Tag::Files,
        summary: "Lists uploaded files, newest first",
        description: "Confirmed files that match all filters given. By pages of `limit`; the header `Link` \
            names the next page.",
        returns: "The files",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of("Lists uploaded files, newest first."))
}

async fn run(call: Call<Read, NoBody, ListFilesQuery>) -> Result<Listing<FileView>, Error> {
    let Some(filter) = call.query.filter() else {
        return Ok(Listing::empty());
    };
    let page = list_files(&call.services, &call.actor, &filter, call.query.page).await?;
    Ok(page.into())
}
