//! Shows what an execution changed.

use std::collections::BTreeMap;

use labdata_domain::{
    data::{
        changes::{ExecutionChanges, IdCursor, RowChange, SHOWN_FILES},
        write::RowImage,
    },
    files::{File, FileFilter},
    ids::ExecutionId,
    page::PageRequest,
    people::{actor::Actor, author::Author, scope::Scope},
};
use labdata_ports::{PortError, data::ChangedRows};

use crate::{
    Error, Services,
    catalog::visible::{is_visible, visible_catalog},
};

/// Changes of an execution, with the names of those concerned.
#[derive(Clone, Debug)]
pub struct ChangesReport {
    /// Rows, series, and the revert.
    pub changes: ExecutionChanges,
    /// The newest files uploaded under the execution.
    pub files: Vec<File>,
    /// Author of the revert.
    pub reverted_by: Option<Author>,
}

/// A page of ids.
#[derive(Clone, Debug)]
pub struct IdPage {
    /// The ids, in the order of their bytes.
    pub ids: Vec<String>,
    /// Start of the next page, if more follow.
    pub next: Option<IdCursor>,
}

/// The ids to list.
#[derive(Clone, Debug)]
pub struct ListChangedIds {
    /// The table.
    pub table: String,
    /// Kind of change.
    pub change: RowChange,
    /// The page starts after this id.
    pub after: Option<IdCursor>,
    /// Maximum number of ids.
    pub limit: u32,
}

/// Rows, points and files of an execution, by table.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` when the execution is not the
/// organization's.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn execution_changes(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<ChangesReport, Error> {
    actor.require(Scope::Read)?;
    let organization = actor.organization;
    // For its refusal: an unknown execution would look like one that changed nothing.
    services.executions.get(organization, id).await?;
    let mut changes = services.data.changes(organization, id).await?;
    let catalog = visible_catalog(services, actor).await?;
    let tables = &mut changes.tables;
    tables.retain(|table, _| is_visible(actor, &catalog, table));
    let of_execution = FileFilter {
        execution: Some(id),
        ..FileFilter::default()
    };
    let first = PageRequest {
        limit: Some(SHOWN_FILES),
        after: None,
    };
    let files = services
        .files
        .list(organization, &of_execution, first)
        .await?;
    let reverted_by = match &changes.reverted {
        Some(reverted) => {
            let user = services.tenancy.user(organization, reverted.user).await?;
            let api_key = match reverted.api_key {
                Some(id) => match services.api_keys.get(organization, id).await {
                    Ok(found) => Some(found.key),
                    // Keys of runs go with their runs; what they have reverted stays.
                    Err(PortError::NotFound(_)) => None,
                    Err(error) => return Err(error.into()),
                },
                None => None,
            };
            Some(Author::of(&user, api_key.as_ref()))
        }
        None => None,
    };
    Ok(ChangesReport {
        changes,
        files: files.items,
        reverted_by,
    })
}

/// The rows of one table that an execution changed, with their values before and after: the first ones of
/// each kind of change. None of a table that does not exist.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` when the execution is not the
/// organization's.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn changed_rows(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
    table: &str,
) -> Result<BTreeMap<RowChange, Vec<RowImage>>, Error> {
    actor.require(Scope::Read)?;
    let organization = actor.organization;
    services.executions.get(organization, id).await?;
    let catalog = visible_catalog(services, actor).await?;
    // As a table that the execution did not change.
    if !is_visible(actor, &catalog, table) {
        return Ok(BTreeMap::new());
    }
    Ok(services.data.changed_rows(organization, id, table).await?)
}

/// A page of the ids of one kind of change to one table.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` when the execution is not the
/// organization's.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_changed_ids(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
    query: ListChangedIds,
) -> Result<IdPage, Error> {
    actor.require(Scope::Read)?;
    services.executions.get(actor.organization, id).await?;
    let catalog = visible_catalog(services, actor).await?;
    if !is_visible(actor, &catalog, &query.table) {
        return Ok(IdPage {
            ids: Vec::new(),
            next: None,
        });
    }
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let rows = ChangedRows {
        execution: id,
        table: query.table,
        change: query.change,
        after: query.after.map(|cursor| cursor.0),
        // One more tells whether a page follows.
        limit: query.limit.saturating_add(1),
    };
    let mut ids = services.data.changed_ids(actor.organization, &rows).await?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let next = ids.last().filter(|_| more).cloned().map(IdCursor);
    Ok(IdPage { ids, next })
}
