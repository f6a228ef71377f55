//! `GET /api/v1/job-executions/{execution_id}/changes`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::LINK};
use labdata_application::data::execution_changes::{
    ChangesReport, IdPage, ListChangedIds, execution_changes, list_changed_ids,
};
use labdata_domain::{
    data::changes::{IdCursor, RowChange, TableChanges},
    page::{DEFAULT_LIMIT, MAX_LIMIT},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind,
    fields::{optional, or},
    readers::{choice, cursor_of, text, unsigned},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ExecutionPath, author::AuthorView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, Timestamp, response::next_page};

shape! {
    /// The ids to list instead of the whole.
    #[derive(Clone, Debug)]
    pub struct ChangesQuery {
        /// List the ids of the rows of this table; together with `action`.
        table: Option<String> = optional(text(..)),
        /// List the ids of rows with this kind of change; together with `table`.
        action: Option<RowChange> = optional(choice(RowChange::ALL)),
        /// The most ids.
        limit: u32 = or(DEFAULT_LIMIT, unsigned(1..=MAX_LIMIT)),
        /// Start of the page, from the previous page's `Link` header.
        cursor: Option<IdCursor> = optional(cursor_of(IdCursor::decode)),
    }
    rules |at| {
        match (table, action) {
            (Some(Some(_)), Some(None)) => at.field("action").report(ProblemKind::missing()),
            (Some(None), Some(Some(_))) => at.field("table").report(ProblemKind::missing()),
            _ => {}
        }
    }
}

/// Ids of changed rows, the first 100 of each kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedIds)]
pub struct ChangedIdsView {
    /// Rows created that still exist.
    created: Vec<String>,
    /// Rows updated.
    updated: Vec<String>,
    /// Rows deleted.
    deleted: Vec<String>,
}

/// What an execution changed in one table.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableChanges)]
pub struct TableChangesView {
    /// The table's name.
    table: String,
    /// Number of rows created.
    created: u64,
    /// Number of different rows updated.
    updated: u64,
    /// Number of rows deleted.
    deleted: u64,
    /// Number of points of series written, of a raw table.
    series_points: u64,
    /// The first 100 of each kind.
    ids: ChangedIdsView,
}

impl TableChangesView {
    fn new(table: String, mut changes: TableChanges) -> Self {
        let mut ids = |change| changes.ids.remove(&change).unwrap_or_default();
        Self {
            table,
            ids: ChangedIdsView {
                created: ids(RowChange::Created),
                updated: ids(RowChange::Updated),
                deleted: ids(RowChange::Deleted),
            },
            created: changes.created,
            updated: changes.updated,
            deleted: changes.deleted,
            series_points: changes.series_points,
        }
    }
}

/// A file that was uploaded under an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionFile)]
pub struct ExecutionFileView {
    /// Its id.
    id: String,
    /// Its name, without folders.
    file_name: String,
}

/// What an execution changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobExecutionChanges)]
pub struct ChangesView {
    /// The tables that it changed, by name.
    tables: Vec<TableChangesView>,
    /// The newest 1,000 files that were uploaded under it; `GET /files` lists them all.
    files: Vec<ExecutionFileView>,
    /// When it was reverted first; null if it was not.
    reverted_at: Option<Timestamp>,
    /// Who reverted it first; null if it was not.
    reverted_by: Option<AuthorView>,
}

impl From<ChangesReport> for ChangesView {
    fn from(report: ChangesReport) -> Self {
        let tables = report.changes.tables.into_iter();
        let files = report.files.into_iter();
        Self {
            tables: tables
                .map(|(table, changes)| TableChangesView::new(table, changes))
                .collect(),
            files: files
                .map(|file| ExecutionFileView {
                    id: file.id.to_string(),
                    file_name: file.path.file_name().to_owned(),
                })
                .collect(),
            reverted_at: report.changes.reverted.map(|reverted| reverted.at.into()),
            reverted_by: report.reverted_by.map(Into::into),
        }
    }
}

/// What an execution changed, or a page of ids.
pub enum Changes {
    /// The whole.
    Whole(ChangesView),
    /// A page of ids.
    Ids(IdPage),
}

impl Responder for Changes {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        match self {
            Self::Whole(changes) => response.json(changes),
            Self::Ids(page) => {
                let next = page.next.as_ref().map(IdCursor::encode);
                if let Some(link) = next.and_then(|next| next_page(request, &next)) {
                    response.insert_header((LINK, link));
                }
                response.json(page.ids)
            }
        }
    }
}

/// Shows what an execution changed
///
/// Rows and points by table, with the first 100 ids of each kind of change, and the files. With
/// `table` and `action`, a bare list of all ids instead, in the order of their bytes, by pages of
/// `limit`; the header `Link` names the next page. The numbers are those of the writes, also after a
/// revert.
#[utoipa::path(
    get,
    path = "/api/v1/job-executions/{execution_id}/changes",
    operation_id = "get_job_execution_changes",
    tag = "job-executions",
    responses((status = 200, description = "What it changed", body = ChangesView))
)]
pub async fn handle(call: Call<Read, NoBody, ChangesQuery, ExecutionPath>) -> ApiResult<Changes> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let query = call.query.clone();
    if let (Some(table), Some(change)) = (query.table, query.action) {
        let list = ListChangedIds {
            table,
            change,
            after: query.cursor,
            limit: query.limit,
        };
        let page = list_changed_ids(call.ports(), &call.actor, id, list).await?;
        return Ok(Changes::Ids(page));
    }
    let report = execution_changes(call.ports(), &call.actor, id).await?;
    Ok(Changes::Whole(report.into()))
}
