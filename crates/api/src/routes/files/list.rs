//! `GET /api/v1/files`

use std::str::FromStr;

use labdata_application::files::list_files::list_files;
use labdata_application::slots::Work;
use labdata_domain::{
    files::{ExtensionFilter, FileFilter, NameQuery},
    page::{DEFAULT_LIMIT, Page, PageRequest},
};
use labdata_request_body::{
    fields::{optional, page},
    readers::text,
    shape,
};

use super::FileView;
use crate::http::{ApiResult, Call, Listing, NoBody, Read};

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
        let instrument = wanted(self.instrument_id.as_deref()).ok()?;
        let execution = wanted(self.job_execution_id.as_deref()).ok()?;
        let query = NameQuery::parse(self.query.as_deref().unwrap_or_default()).ok()?;
        let extensions = self.extensions.as_deref().and_then(ExtensionFilter::parse);
        Some(FileFilter {
            instrument,
            execution,
            extensions,
            query,
        })
    }
}

/// Reads the id of a filter; an empty text asks for nothing.
fn wanted<T: FromStr>(id: Option<&str>) -> Result<Option<T>, T::Err> {
    id.filter(|id| !id.is_empty()).map(str::parse).transpose()
}

/// Lists uploaded files, newest first
///
/// Confirmed files that match all filters given. By pages of `limit`; the header `Link` names the
/// next page.
#[utoipa::path(
    get,
    path = "/api/v1/files",
    operation_id = "list_files",
    tag = "files",
    responses((status = 200, description = "The files", body = Vec<FileView>))
)]
pub async fn handle(call: Call<Read, NoBody, ListFilesQuery>) -> ApiResult<Listing<FileView>> {
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = match call.query.filter() {
        Some(filter) => list_files(call.ports(), &call.actor, &filter, call.query.page).await?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    Ok(Listing::of(page, Into::into).counted(slot))
}
