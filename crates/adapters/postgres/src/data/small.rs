//! Requests that do nothing but create a few rows of one table, combined.

use std::{collections::BTreeMap, sync::Arc};

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::future::join_all;
use labdata_domain::{
    catalog::{CatalogVersion, Table},
    data_write::{Action, WritePlan},
    ids::OrganizationId,
    job::JobName,
    scalar::Values,
};
use labdata_ports::data::{Attribution, WriteError};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    apply::{catalog_lock, require_version},
    execution::{NewExecution, create_executions},
    failure::Failure,
    insert::combined_insertion,
    ledger::record_created,
};
use crate::{
    combine::{Combiner, Fate},
    errors::port_error,
    pool::Database,
    sql::{Kept, Schemas},
    transaction,
};

/// The most rows of a request that is combined with others.
const MAX_ROWS: usize = 32;

/// The most text of such a request, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// How long a batch waits for rows, or for definitions that are being changed: the requests in it
/// must not wait for what concerns one of them only. Alone, each waits as long as any other.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '20ms'";

/// A request that does nothing but create a few rows of one table under a new execution.
#[derive(Debug)]
pub(super) struct SmallInsert {
    version: CatalogVersion,
    table: Arc<Table>,
    rows: usize,
    /// Indices in the table, with a value per row.
    columns: Vec<(usize, Values)>,
    execution: NewExecution,
}

impl SmallInsert {
    /// The plan as such a request, if it is one.
    pub(super) fn of(plan: &WritePlan, attribution: &Attribution) -> Option<Self> {
        let [step] = plan.tables.as_slice() else {
            return None;
        };
        let is_small = step.action == Action::Insert
            && (1..=MAX_ROWS).contains(&step.len)
            && plan.series.is_empty()
            && !plan.dry_run
            && !plan.return_rows
            && step.columns.iter().all(|column| column.late.is_empty());
        if !is_small {
            return None;
        }
        let sizes = step.columns.iter().map(|column| size(&column.values));
        if sizes.sum::<Option<usize>>()? > MAX_BYTES {
            return None;
        }
        let columns = step.columns.iter();
        Some(Self {
            version: plan.version,
            table: Arc::clone(&step.table),
            rows: step.len,
            columns: columns
                .map(|column| (column.column, column.values.clone()))
                .collect(),
            execution: NewExecution::of(attribution)?,
        })
    }

    pub(super) const fn job_name(&self) -> &JobName {
        &self.execution.job_name
    }
}

/// The size of a column's texts; `None` where it cannot be told at once.
fn size(values: &Values) -> Option<usize> {
    match values {
        Values::Text(texts) => Some(texts.iter().flatten().map(String::len).sum()),
        Values::Json(_) => None,
        _ => Some(0),
    }
}

/// What became of a batch that was not given up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Yes,
    /// Not a row: the tables have changed since the requests were planned.
    CatalogChanged,
}

/// Small inserts that arrive together become one transaction.
#[derive(Debug)]
pub(super) struct SmallInserts {
    database: Database,
    combiner: Arc<Combiner<(OrganizationId, CatalogVersion), SmallInsert, Written>>,
}

impl SmallInserts {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            combiner: Arc::default(),
        }
    }

    /// Does it, with others of its organization.
    pub(super) async fn write(
        &self,
        organization: OrganizationId,
        insert: SmallInsert,
    ) -> Fate<Written> {
        let key = (organization, insert.version);
        let database = self.database.clone();
        self.combiner
            .submit(key, insert, move |(organization, version), batch| {
                let database = database.clone();
                async move {
                    let fate = write_batch(&database, organization, version, &batch).await;
                    batch.iter().map(|_| fate.clone()).collect()
                }
            })
            .await
    }
}

/// Writes a batch; its requests share one fate.
async fn write_batch(
    database: &Database,
    organization: OrganizationId,
    version: CatalogVersion,
    batch: &[SmallInsert],
) -> Fate<Written> {
    let Ok(mut connection) = database.connection().await else {
        return Fate::Alone;
    };
    let opening = format!("{LOCK_TIMEOUT}; {}", catalog_lock(organization));
    if let Err(error) = transaction::begin_with(&mut connection, &opening).await {
        tracing::debug!(%error, "small writes go on alone");
        return Fate::Alone;
    }
    let (is_current, inserted, noted) = futures::join!(
        require_version(&connection, organization, version),
        insert(&connection, organization, batch),
        note(&connection, organization, batch),
    );
    if let Err(failure) = is_current.and(inserted).and(noted) {
        transaction::rollback(&mut connection).await;
        if matches!(failure, Failure::Refused(WriteError::CatalogChanged)) {
            return Fate::Done(Written::CatalogChanged);
        }
        tracing::debug!(?failure, size = batch.len(), "small writes go on alone");
        return Fate::Alone;
    }
    match transaction::commit(&mut connection).await {
        Ok(()) => Fate::Done(Written::Yes),
        Err(error) => Fate::Unknown(port_error(error).to_string()),
    }
}

/// Creates the rows: a statement for each table and choice of its columns.
async fn insert(
    connection: &AsyncPgConnection,
    organization: OrganizationId,
    batch: &[SmallInsert],
) -> Result<(), Failure> {
    let schemas = Schemas::of(organization);
    let mut groups: BTreeMap<(&str, Vec<usize>), Rows<'_>> = BTreeMap::new();
    for insert in batch {
        let indices = insert.columns.iter().map(|(index, _)| *index).collect();
        groups
            .entry((&insert.table.name, indices))
            .or_insert_with(|| Rows::like(insert))
            .extend(insert);
    }
    let statements = groups.values().map(async |rows| {
        let columns = rows.columns.iter().map(|(index, values)| (*index, values));
        let query =
            combined_insertion(&schemas, rows.table, columns, &rows.executions, &rows.times);
        let mut connection = connection;
        Kept(query).execute(&mut connection).await?;
        Ok::<(), Failure>(())
    });
    join_all(statements).await.into_iter().collect()
}

/// Rows of several requests.
struct Rows<'b> {
    table: &'b Table,
    columns: Vec<(usize, Values)>,
    executions: Vec<Uuid>,
    times: Vec<OffsetDateTime>,
}

impl<'b> Rows<'b> {
    /// None yet, of the same columns.
    fn like(insert: &'b SmallInsert) -> Self {
        let columns = insert.columns.iter().filter_map(|(index, _)| {
            let column = insert.table.columns.get(*index)?;
            Some((*index, Values::with_capacity(column.data_type, insert.rows)))
        });
        Self {
            table: &insert.table,
            columns: columns.collect(),
            executions: Vec::new(),
            times: Vec::new(),
        }
    }

    fn extend(&mut self, insert: &SmallInsert) {
        for ((_, rows), (_, more)) in self.columns.iter_mut().zip(&insert.columns) {
            rows.extend(more);
        }
        let execution = &insert.execution;
        let len = self.executions.len() + insert.rows;
        self.executions.resize(len, execution.id.as_uuid());
        self.times.resize(len, execution.at);
    }
}

/// The new executions and the ledger.
async fn note(
    connection: &AsyncPgConnection,
    organization: OrganizationId,
    batch: &[SmallInsert],
) -> Result<(), Failure> {
    let lines: Vec<_> = batch
        .iter()
        .map(|insert| {
            let rows = u64::try_from(insert.rows).unwrap_or(u64::MAX);
            let NewExecution { id, at, .. } = insert.execution;
            (id, at, insert.table.name.as_str(), rows)
        })
        .collect();
    let (created, recorded) = futures::join!(
        create_executions(
            connection,
            organization,
            batch.iter().map(|insert| &insert.execution)
        ),
        record_created(connection, organization, &lines),
    );
    created.and(recorded)
}
