//! Versions of a row.

use std::collections::BTreeMap;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    catalog::{KeyedTable, SystemColumn},
    conflict::Conflict,
    data::{
        history::{ChangeAction, RowVersion, VersionOperation, versions},
        read::RowJson,
        write::{Mode, Problem, Rows, TableWrite, WriteRequest, cell::Cell},
    },
    ids::ExecutionId,
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, KeyNotFound, Refusal, Resource},
    scalar::KeyValue,
};
use labdata_ports::{PortError, data::RowHistory};

use super::{
    plans::planned_anew,
    write_data::{WriteData, write_data},
};
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::visible::visible_catalog,
    executions::starters::{StartedExecution, with_starter},
};

/// A row of a table.
#[derive(Clone, Debug)]
pub struct RowName {
    /// The table's name.
    pub table: String,
    /// The row's key.
    pub id: String,
}

/// A page of versions, and the executions that made them.
#[derive(Clone, Debug)]
pub struct VersionPage {
    /// Newest first.
    pub versions: Vec<RowVersion>,
    /// The executions that still exist.
    pub executions: BTreeMap<ExecutionId, StartedExecution>,
    /// The next page starts below this version, if more follow.
    pub next: Option<u64>,
}

/// The versions of a row below one of them, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` for an unknown table, and for a row that never existed or
/// is forgotten; `Invalid` if the table has no history.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn row_history(
    services: &Services,
    actor: &Actor,
    name: &RowName,
    below: Option<u64>,
    limit: usize,
) -> Result<VersionPage, Error> {
    actor.require(Scope::Read)?;
    let mut versions = all_versions(services, actor, name).await?;
    versions.retain(|it| below.is_none_or(|below| it.version < below));
    // All versions are there, so the next page is known without reading one more.
    let more = versions.len() > limit;
    versions.truncate(limit);
    let mut executions = BTreeMap::new();
    for id in versions.iter().filter_map(|version| version.execution) {
        if executions.contains_key(&id) {
            continue;
        }
        match services.executions.get(actor.organization, id).await {
            Ok(execution) => {
                executions.insert(id, with_starter(services, actor, execution).await?);
            }
            Err(PortError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let next = versions.last().filter(|_| more).map(|last| last.version);
    Ok(VersionPage {
        versions,
        executions,
        next,
    })
}

/// Gives a row the values of an earlier version, in a separate write that its history shows as restored; a deleted
/// row is created again.
///
/// # Errors
/// `Forbidden` without the write scope and the read scope; those of [`row_history`] and [`write_data`];
/// `NotFound` for an unknown version; `Invalid` for one that is a deletion.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn restore_row(
    services: &Services,
    actor: &Actor,
    name: &RowName,
    version: u64,
    job_execution_id: Option<String>,
) -> Result<RowJson, Error> {
    actor.require(Scope::Read)?;
    actor.require(Scope::Write)?;
    planned_anew!(async {
        let execution = job_execution_id.clone();
        let restored = restore_once(services, actor, name, version, execution).await;
        restored.map_err(|error| match error {
            // The values are read with the current columns, so one has been dropped before they were written.
            Error::Problems(problems) if problems.iter().any(is_of_column) => {
                PortError::Conflict(Conflict::TablesChanged).into()
            }
            other => other,
        })
    })
}

fn is_of_column(problem: &Problem) -> bool {
    problem.code == ErrorCode::UnknownColumn
}

async fn restore_once(
    services: &Services,
    actor: &Actor,
    name: &RowName,
    version: u64,
    job_execution_id: Option<String>,
) -> Result<RowJson, Error> {
    let versions = all_versions(services, actor, name).await?;
    let found = versions.into_iter().find(|it| it.version == version);
    let found = found.ok_or_else(|| {
        Error::refused(KeyNotFound {
            resource: Resource::RowVersion,
            key: version.to_string(),
        })
    })?;
    if found.operation == VersionOperation::Changed(ChangeAction::Deleted) {
        let message = "this version is a deletion; restore the one before it";
        return Err(Refusal::invalid(ErrorCode::InvalidValue, message).into());
    }
    let mut rows = Rows::default();
    rows.begin_row();
    let values = found.values.into_iter();
    // They say when this write changes the row, not when the earlier one did.
    let values = values.filter(|(name, _)| SystemColumn::from_name(name).is_none());
    for (position, (name, value)) in values.enumerate() {
        rows.set(position, &name, Cell::from(value));
    }
    let write = TableWrite {
        table: name.table.clone(),
        rows,
        // The row may be deleted now: then the same write creates it again under its id.
        mode: Mode::Upsert,
        ..TableWrite::default()
    };
    let command = WriteData {
        request: WriteRequest {
            tables: vec![write],
            return_rows: true,
            restores: true,
            ..WriteRequest::default()
        },
        job_execution_id,
        ..WriteData::default()
    };
    let row = audited(services, actor, |within| async move {
        let outcome = write_data(&within, actor, command).await?;
        let execution = outcome.value.execution.map(|id| id.to_string());
        let written = outcome.value.tables.into_iter().next();
        let row = written.and_then(|table| table.rows?.into_iter().next());
        let target = AuditTarget::new(AuditTargetKind::Row, &name.id, &name.table);
        let record = Record::of(AuditAction::RowRestored, target);
        let record = record
            .with("version", version)
            .with("job_execution_id", execution);
        Ok((row, Some(record)))
    });
    let row = row.await?;
    row.ok_or_else(|| Error::Internal("a restored row was not returned".to_owned()))
}

/// Deletes the earlier versions of a row and of its series, and what lists of changes and the trash have of them. They
/// remain in backups, and in files and datasets that were made of them.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound` for an unknown table, and for a row that does not exist and of which
/// nothing is stored.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn forget_row_history(
    services: &Services,
    actor: &Actor,
    name: &RowName,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    let (table, key) = find(services, actor, name).await?;
    audited(services, actor, |within| async move {
        let organization = actor.organization;
        // First, as it finds values of dropped columns by the changes that are forgotten next.
        let in_trash = within.trash.forget_row(organization, &table, &key).await?;
        let forgotten = within.data.forget_history(organization, &table, &key);
        if !forgotten.await? && !in_trash {
            return Err(Error::not_found(Resource::Row));
        }
        let target = AuditTarget::new(AuditTargetKind::Row, &name.id, &name.table);
        Ok(((), Some(Record::of(AuditAction::HistoryForgotten, target))))
    })
    .await
}

async fn all_versions(
    services: &Services,
    actor: &Actor,
    name: &RowName,
) -> Result<Vec<RowVersion>, Error> {
    planned_anew!(read_versions(services, actor, name))
}

async fn read_versions(
    services: &Services,
    actor: &Actor,
    name: &RowName,
) -> Result<Vec<RowVersion>, Error> {
    let (table, key) = find(services, actor, name).await?;
    if !table.history {
        let message = format!(
            "table \"{}\" stores no earlier versions of its rows",
            table.name
        );
        return Err(Refusal::invalid(ErrorCode::NoHistory, message).into());
    }
    let history = services
        .data
        .history(actor.organization, &table, &key)
        .await?;
    let RowHistory {
        deleted,
        changes,
        current,
    } = history;
    let versions = versions(deleted, &changes, current.as_ref());
    // A row that never was and one whose history was forgotten look the same, on purpose.
    if versions.is_empty() {
        return Err(Error::not_found(Resource::Row));
    }
    Ok(versions)
}

async fn find(
    services: &Services,
    actor: &Actor,
    name: &RowName,
) -> Result<(KeyedTable, KeyValue), Error> {
    let catalog = visible_catalog(services, actor).await?;
    let table = catalog.keyed_table(&name.table);
    let table = table.ok_or_else(|| Error::not_found(Resource::Table))?;
    let key = KeyValue::parse(&name.id, table.key().data_type);
    // An id that the type of the key cannot have names no row, so it is not found rather than invalid.
    let key = key.ok_or_else(|| Error::not_found(Resource::Row))?;
    Ok((table, key))
}
