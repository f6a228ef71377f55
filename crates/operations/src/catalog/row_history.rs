//! `/api/v1/tables/{name}/rows/{id}/history` and `…/restore`

use std::collections::BTreeMap;

use labdata_application::{
    Error,
    data::row_history::{RowName, VersionPage, forget_row_history, restore_row, row_history},
    executions::starters::StartedExecution,
};
use labdata_domain::{
    catalog::Name,
    data::{
        changes::IdCursor,
        history::{RowVersion, VersionOperation},
    },
    ids::ExecutionId,
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use labdata_request_body::{
    Definitions, Reader as _, Schema, Timestamp,
    fields::{optional, or, required},
    names, output,
    readers::{cursor_of, text, unsigned},
    shape,
};
use serde_json::{Map, Value, json};

use crate::{
    About, Admin, Call, Describe, JsonBody, Method, NoBody, NoContent, Operation, Read, Reply,
    Respond, Tag, Write, data::RenderedObject, executions::author::StartedByView,
};

shape! {
    /// The path of a row.
    #[derive(Clone, Debug)]
    pub struct RowPath {
        /// The table's name
        name: String = required(text(..).with("pattern", Name::PATTERN).example("sample")),
        /// The row's key
        id: String = required(text(..)),
    }
}

impl From<RowPath> for RowName {
    fn from(path: RowPath) -> Self {
        Self {
            table: path.name,
            id: path.id,
        }
    }
}

shape! {
    /// A page of versions.
    #[derive(Clone, Debug)]
    pub struct VersionsQuery {
        /// The most versions.
        limit: u32 = or(DEFAULT_LIMIT, unsigned(1..=MAX_LIMIT)),
        /// Start of the page, from the previous page's `Link` header.
        cursor: Option<IdCursor> = optional(cursor_of(IdCursor::decode)),
    }
}

shape! {
    /// The version to restore.
    #[derive(Clone, Debug)]
    pub struct RestoreRowBody {
        /// Its number in the history.
        version: u32 = required(unsigned(1..=u32::MAX)),
        /// The execution to record it under; one is created unless given.
        job_execution_id: Option<String> = optional(text(..)),
    }
    example json!({"version": 3});
}

names! {
    /// Change by which a version came to be.
    pub RowOperation = VersionOperation::NAMES;
}

output! {
    /// A value before and after a change.
    #[derive(Debug)]
    pub struct ChangedValueView as "ChangedValue" {
        /// The value before.
        before: Value,
        /// The value after.
        after: Value,
    }
}

output! {
    /// The execution of a change.
    #[derive(Debug)]
    pub struct ChangingExecutionView as "ChangingExecution" {
        /// Its id.
        id: ExecutionId,
        /// The name of its job.
        job_name: String,
    }
}

output! {
    /// A version of a row.
    #[derive(Debug)]
    pub struct RowVersionView as "RowVersion" {
        /// Its number: 1 for the first version that is stored, one more for each change.
        version: u64,
        /// The change by which it came to be.
        operation: RowOperation,
        /// When.
        at: Option<Timestamp>,
        /// The values that the row then had; of a deletion those that it lost.
        values: Map<String, Value>,
        /// Columns that changed, without those that the server sets.
        changed: BTreeMap<String, ChangedValueView>,
        /// The execution that changed it; null for a revert that restored nothing.
        execution: Option<ChangingExecutionView>,
        /// User and trigger that started that execution.
        started_by: Option<StartedByView>,
    }
}

impl RowVersionView {
    fn of(version: RowVersion, started: Option<&StartedExecution>) -> Self {
        let changed = version.changed.into_iter();
        Self {
            version: version.version,
            operation: version.operation.as_str().into(),
            at: version.at.map(Into::into),
            values: version.values,
            changed: changed
                .map(|(name, (before, after))| (name, ChangedValueView { before, after }))
                .collect(),
            execution: started.map(|started| ChangingExecutionView {
                id: started.execution.id,
                job_name: started.execution.job_name.clone(),
            }),
            started_by: started.map(|started| started.started_by.clone().into()),
        }
    }
}

/// A page of versions.
#[derive(Debug)]
pub struct Versions(VersionPage);

impl Describe for Versions {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        Vec::<RowVersionView>::content(definitions)
    }
}

impl Respond for Versions {
    fn reply(self) -> Result<Reply, Error> {
        let page = self.0;
        let views = page.versions.into_iter().map(|version| {
            let started = version.execution.and_then(|id| page.executions.get(&id));
            RowVersionView::of(version, started)
        });
        let next = page
            .next
            .map(|version| IdCursor(version.to_string()).encode());
        Ok(Reply {
            next,
            ..views.collect::<Vec<_>>().reply()?
        })
    }
}

pub(super) fn history() -> Operation {
    About {
        name: "get_row_history",
        method: Method::Get,
        path: "/api/v1/tables/{name}/rows/{id}/history",
        tag: Tag::Tables,
        summary: "List the versions of a row",
        description: "Newest first, also of a deleted row. A table that is defined with \
            `\"history\": false` has none: `no_history`.",
        returns: "The versions",
        refusals: &[],
    }
    .runs(run_history)
}

async fn run_history(call: Call<Read, NoBody, VersionsQuery, RowPath>) -> Result<Versions, Error> {
    let below = call.query.cursor.and_then(|cursor| cursor.0.parse().ok());
    let limit = usize::try_from(call.query.limit).unwrap_or(usize::MAX);
    let page = row_history(&call.services, &call.actor, &call.path.into(), below, limit).await?;
    Ok(Versions(page))
}

pub(super) fn restore() -> Operation {
    About {
        name: "restore_row",
        method: Method::Post,
        path: "/api/v1/tables/{name}/rows/{id}/restore",
        tag: Tag::Tables,
        summary: "Give a row the values of an earlier version",
        description: "A write of its own; a deleted row is created again. Needs the scopes to read and to write.",
        returns: "The row",
        refusals: &[],
    }
    .runs(run_restore)
}

async fn run_restore(
    call: Call<Write, JsonBody<RestoreRowBody>, (), RowPath>,
) -> Result<RenderedObject, Error> {
    let RestoreRowBody {
        version,
        job_execution_id,
    } = call.body;
    let version = u64::from(version);
    let name = call.path.into();
    let row = restore_row(
        &call.services,
        &call.actor,
        &name,
        version,
        job_execution_id,
    )
    .await?;
    RenderedObject::of(row).ok_or_else(|| Error::Internal("a row is not JSON".to_owned()))
}

pub(super) fn forget() -> Operation {
    About {
        name: "forget_row_history",
        method: Method::Delete,
        path: "/api/v1/tables/{name}/rows/{id}/history",
        tag: Tag::Tables,
        summary: "Delete the earlier versions of a row",
        description: "As where a person's data must go: the row stays as it is, and what changed it before \
            cannot be reverted for this row. Earlier series of the row go, too, and what lists of changes and the trash \
            have of it.",
        returns: "They are deleted",
        refusals: &[],
    }
    .runs(run_forget)
}

async fn run_forget(call: Call<Admin, NoBody, (), RowPath>) -> Result<NoContent, Error> {
    forget_row_history(&call.services, &call.actor, &call.path.into()).await?;
    Ok(NoContent)
}
