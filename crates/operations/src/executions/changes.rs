//! `GET /api/v1/job-executions/{execution_id}/changes`

use labdata_application::{
    Error,
    data::execution_changes::{
        ChangesReport, IdPage, ListChangedIds, execution_changes, list_changed_ids,
    },
};
use labdata_domain::{
    data::changes::{IdCursor, RowChange, TableChanges},
    files::File,
    ids::FileId,
    page::{DEFAULT_LIMIT, MAX_LIMIT},
    refusal::Resource,
};
use labdata_request_body::{
    Definitions, Output as _, ProblemKind, Schema, Timestamp,
    fields::{optional, or},
    output,
    readers::{choice, cursor_of, text, unsigned},
    shape,
};

use super::{ExecutionPath, author::AuthorView};
use crate::{
    About, Call, Describe, Method, NoBody, Operation, OrNotFound, Read, Reply, Respond, Tag,
};

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

output! {
    /// Ids of changed rows, the first 100 of each kind.
    #[derive(Debug)]
    pub struct ChangedIdsView as "ChangedIds" {
        /// Rows created that still exist.
        created: Vec<String>,
        /// Rows updated.
        updated: Vec<String>,
        /// Rows deleted.
        deleted: Vec<String>,
    }
}

output! {
    /// Changes of an execution to one table.
    #[derive(Debug)]
    pub struct TableChangesView as "TableChanges" {
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
}

impl From<(String, TableChanges)> for TableChangesView {
    fn from((table, mut changes): (String, TableChanges)) -> Self {
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

output! {
    /// A file that was uploaded under an execution.
    #[derive(Debug)]
    pub struct ExecutionFileView as "ExecutionFile" from file: File {
        /// Its id.
        id: FileId = file.id,
        /// Its name, without folders.
        file_name: String = file.path.file_name().to_owned(),
    }
}

output! {
    /// Changes of an execution.
    #[derive(Debug)]
    pub struct ChangesView as "JobExecutionChanges" from report: ChangesReport {
        /// The tables that it changed, by name.
        tables: Vec<TableChangesView> =
            report.changes.tables.into_iter().map(Into::into).collect(),
        /// The newest 1,000 files that were uploaded under it; `GET /files` lists them all.
        files: Vec<ExecutionFileView> = report.files.into_iter().map(Into::into).collect(),
        /// When it was reverted first; null if it was not.
        reverted_at: Option<Timestamp> = report.changes.reverted.map(|reverted| reverted.at.into()),
        /// Author of its first revert; null if it was not reverted.
        reverted_by: Option<AuthorView> = report.reverted_by.map(Into::into),
    }
}

/// Changes of an execution, or a page of ids.
#[derive(Debug)]
pub enum Changes {
    /// The whole.
    Whole(ChangesView),
    /// A page of ids.
    Ids(IdPage),
}

impl Describe for Changes {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let ids = Vec::<String>::schema(definitions);
        let whole = ChangesView::content(definitions).into_iter();
        let with_ids = |(media_type, whole)| (media_type, Schema::one_of([whole, ids.clone()]));
        whole.map(with_ids).collect()
    }
}

impl Respond for Changes {
    fn reply(self) -> Result<Reply, Error> {
        match self {
            Self::Whole(changes) => changes.reply(),
            Self::Ids(page) => Ok(Reply {
                next: page.next.as_ref().map(IdCursor::encode),
                ..page.ids.reply()?
            }),
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_job_execution_changes",
        method: Method::Get,
        path: "/api/v1/job-executions/{execution_id}/changes",
        tag: Tag::JobExecutions,
        summary: "Shows what an execution changed",
        description: "Rows and points by table, with the first 100 ids of each kind of change, and the \
            files. With `table` and `action`, a bare list of all ids instead, in the order of their \
            bytes, by pages of `limit`; the header `Link` names the next page. The numbers are those \
            of the writes, also after a revert.",
        returns: "What it changed",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, ChangesQuery, ExecutionPath>) -> Result<Changes, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let query = call.query;
    if let (Some(table), Some(change)) = (query.table, query.action) {
        let list = ListChangedIds {
            table,
            change,
            after: query.cursor,
            limit: query.limit,
        };
        let page = list_changed_ids(&call.services, &call.actor, id, list).await?;
        return Ok(Changes::Ids(page));
    }
    let report = execution_changes(&call.services, &call.actor, id).await?;
    Ok(Changes::Whole(report.into()))
}
