//! `GET /api/v1/files`

use labdata_application::files::list_files::list_files;
use labdata_domain::{
    files::{ExtensionFilter, FileFilter, NameQuery},
    ids::InstrumentId,
    page::{DEFAULT_LIMIT, Page, PageRequest},
};
use serde_json::Value;
use utoipa::IntoParams;

use super::FileView;
use crate::http::{
    Answer, Call, Listing, NoBody, PageQuery, Read,
    shape::{Fields, Place, Shape, readers::text},
};

/// Which files are wanted.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListFilesQuery {
    /// Only files of this instrument.
    instrument_id: Option<String>,
    /// Only files with one of these extensions, such as `csv,.TXT`: without regard to case, the
    /// dot optional.
    extensions: Option<String>,
    /// Only files whose path contains this, without regard to case.
    query: Option<String>,
    #[param(ignore)]
    page: PageRequest,
}

impl Shape for ListFilesQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let instrument_id = fields.nullable("instrument_id", text(..));
        let extensions = fields.nullable("extensions", text(..));
        let query = fields.nullable("query", text(..));
        let page = PageQuery::from_fields(&mut fields, Some(DEFAULT_LIMIT));
        Some(Self {
            instrument_id: instrument_id?,
            extensions: extensions?,
            query: query?,
            page: page?,
        })
    }
}

impl ListFilesQuery {
    /// The filter; `None` when nothing can match. An empty value asks for nothing.
    fn filter(&self) -> Option<FileFilter> {
        let instrument = match self.instrument_id.as_deref() {
            None | Some("") => None,
            Some(id) => Some(id.parse::<InstrumentId>().ok()?),
        };
        let query = NameQuery::parse(self.query.as_deref().unwrap_or_default()).ok()?;
        let extensions = self.extensions.as_deref().and_then(ExtensionFilter::parse);
        Some(FileFilter {
            instrument,
            extensions,
            query,
        })
    }
}

/// Lists uploaded files, newest first
#[utoipa::path(
    get,
    path = "/api/v1/files",
    operation_id = "list_files",
    tag = "files",
    params(ListFilesQuery, PageQuery),
    responses((status = 200, description = "The files", body = Vec<FileView>))
)]
pub async fn handle(call: Call<Read, NoBody, ListFilesQuery>) -> Answer<Listing<FileView>> {
    let page = match call.query.filter() {
        Some(filter) => list_files(call.ports(), &call.actor, &filter, call.query.page).await?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    Ok(Listing::of(page, Into::into))
}
