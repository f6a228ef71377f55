//! The platform's own tables, as they are read.

use std::cmp::Reverse;

use labdata_domain::{
    catalog::PlatformTable,
    executions::Execution,
    files::File,
    ids::OrganizationId,
    instruments::Instrument,
    jobs::Job,
    models::{Dataset, ModelVersion},
    people::{tenancy::User, visible_tables::VisibleTables},
    scalar::{KeyValue, Scalar},
};
use uuid::Uuid;

use super::tables::Cells;
use crate::memory::{State, owned};

/// The rows of a platform table with their keys, in the order in which they are read.
pub(super) fn platform_rows(
    state: &State,
    organization: OrganizationId,
    table: PlatformTable,
    visible: &VisibleTables,
) -> Vec<(KeyValue, Cells)> {
    let mut rows: Vec<(KeyValue, Vec<Option<Scalar>>)> = match table {
        PlatformTable::Table => tables(state, organization),
        PlatformTable::Job => owned(&state.jobs, organization).map(job).collect(),
        PlatformTable::JobExecution => owned(&state.executions, organization)
            .map(execution)
            .collect(),
        PlatformTable::Instrument => owned(&state.instruments, organization)
            .map(instrument)
            .collect(),
        PlatformTable::OrganizationMember => state
            .users
            .iter()
            .filter(|user| user.organization == organization)
            .map(member)
            .collect(),
        PlatformTable::File => owned(&state.files, organization).filter_map(file).collect(),
        PlatformTable::Dataset => owned(&state.datasets, organization)
            .filter(|dataset| visible.include_all(&dataset.tables))
            .map(dataset)
            .collect(),
        PlatformTable::MlModel => models(state, organization),
    };
    rows.sort_by_key(|(key, _)| Reverse(key.clone()));
    let names = || table.columns().iter().map(|column| column.name.to_owned());
    rows.into_iter()
        .map(|(key, cells)| {
            let cells = names().zip(cells);
            (
                key,
                cells
                    .filter_map(|(name, cell)| Some((name, cell?)))
                    .collect(),
            )
        })
        .collect()
}

fn text(text: &str) -> Scalar {
    Scalar::Text(text.to_owned())
}

fn id(id: Uuid) -> (KeyValue, Option<Scalar>) {
    (KeyValue::Uuid(id), Some(Scalar::Uuid(id)))
}

fn tables(state: &State, organization: OrganizationId) -> Vec<(KeyValue, Vec<Option<Scalar>>)> {
    let defined = state
        .tables
        .get(&organization)
        .map(|tables| tables.defined.as_slice());
    let row = |table: &labdata_domain::catalog::Table| {
        let id = table.id?;
        let cells = vec![
            Some(Scalar::Integer(id)),
            Some(text(&table.name)),
            Some(text(table.category.as_str())),
        ];
        Some((KeyValue::Integer(id), cells))
    };
    defined.unwrap_or_default().iter().filter_map(row).collect()
}

fn job(job: &Job) -> (KeyValue, Vec<Option<Scalar>>) {
    let (key, id) = id(job.id.as_uuid());
    let cells = vec![
        id,
        Some(text(&job.name)),
        job.description.clone().map(Scalar::Text),
        Some(Scalar::Boolean(job.archived)),
        Some(Scalar::Datetime(job.created_at)),
    ];
    (key, cells)
}

fn execution(execution: &Execution) -> (KeyValue, Vec<Option<Scalar>>) {
    let (key, id) = id(execution.id.as_uuid());
    let run = execution.origin.run();
    let cells = vec![
        id,
        Some(Scalar::Uuid(execution.job_id.as_uuid())),
        Some(text(&execution.job_name)),
        Some(text(execution.state.as_str())),
        execution.started_at.map(Scalar::Datetime),
        execution.state.completed_at().map(Scalar::Datetime),
        Some(Scalar::Datetime(execution.created_at)),
        run.map(|run| Scalar::Integer(run.script_version.into())),
        run.and_then(|run| run.trigger_file)
            .map(|file| Scalar::Uuid(file.as_uuid())),
    ];
    (key, cells)
}

fn instrument(instrument: &Instrument) -> (KeyValue, Vec<Option<Scalar>>) {
    let (key, id) = id(instrument.id.as_uuid());
    let cells = vec![
        id,
        Some(text(&instrument.name)),
        instrument.description.clone().map(Scalar::Text),
        instrument.instrument_type.clone().map(Scalar::Text),
        Some(Scalar::Datetime(instrument.created_at)),
    ];
    (key, cells)
}

fn dataset(dataset: &Dataset) -> (KeyValue, Vec<Option<Scalar>>) {
    let (key, id) = id(dataset.id.as_uuid());
    let cells = vec![
        id,
        Some(text(&dataset.name)),
        dataset.description.clone().map(Scalar::Text),
        i64::try_from(dataset.row_count).ok().map(Scalar::Integer),
        Some(Scalar::Datetime(dataset.created_at)),
    ];
    (key, cells)
}

fn models(state: &State, organization: OrganizationId) -> Vec<(KeyValue, Vec<Option<Scalar>>)> {
    let versions: Vec<&ModelVersion> = owned(&state.model_versions, organization)
        .map(|row| &row.version)
        .collect();
    let first = versions.iter().filter(|version| version.number == 1);
    let row = |first: &&ModelVersion| {
        let of_model = || versions.iter().filter(|it| it.model == first.model);
        let newest = of_model().max_by_key(|it| it.number)?;
        let active = of_model().find(|it| it.is_active);
        let number = |version: &&ModelVersion| Scalar::Integer(version.number.into());
        let (key, id) = id(first.model.as_uuid());
        let cells = vec![
            id,
            Some(text(&newest.name)),
            Some(text(newest.plan.task.as_str())),
            Some(text(newest.plan.problem.as_str())),
            Some(text(&newest.plan.target)),
            Some(Scalar::Uuid(newest.dataset.as_uuid())),
            Some(number(newest)),
            active.map(number),
            Some(text(newest.state.as_str())),
            Some(Scalar::Boolean(newest.archived)),
            Some(Scalar::Datetime(first.requested_at)),
        ];
        Some((key, cells))
    };
    first.filter_map(row).collect()
}

fn member(user: &User) -> (KeyValue, Vec<Option<Scalar>>) {
    let (key, id) = id(user.id.as_uuid());
    (
        key,
        vec![id, Some(text(&user.email)), Some(text(&user.name))],
    )
}

/// A file that is confirmed; others are not displayed.
fn file(file: &File) -> Option<(KeyValue, Vec<Option<Scalar>>)> {
    let bytes = file.state.bytes()?;
    let (key, id) = id(file.id.as_uuid());
    let size = file
        .size_kilobytes()
        .and_then(|size| i64::try_from(size).ok());
    let cells = vec![
        id,
        Some(text(file.path.file_name())),
        Some(text(file.path.as_str())),
        Some(text(file.content_type.as_str())),
        Some(text(file.source_type.as_str())),
        file.attribution
            .instrument()
            .map(|instrument| Scalar::Uuid(instrument.as_uuid())),
        file.attribution
            .execution()
            .map(|execution| Scalar::Uuid(execution.as_uuid())),
        size.map(Scalar::Integer),
        Some(text(&bytes.crc32c.to_base64())),
        file.state.uploaded_at().map(Scalar::Datetime),
    ];
    Some((key, cells))
}
