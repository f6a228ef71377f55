//! Batches of requests that only create a few rows of one table: those into the same columns of a
//! table become one statement, which is its own transaction.

use std::{borrow::Cow, sync::Arc};

use diesel::{
    result::Error as DieselError,
    sql_types::{Array, BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{CatalogVersion, ColumnRef, KeyedTable},
    data::write::{LedgerEntry, TableOutcome, WriteOutcome, WritePlan},
    ids::OrganizationId,
    jobs::JobName,
    scalar::Values,
};
use labdata_limits::{PATIENCE, waiting};
use labdata_ports::data::Attribution;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    execution::NewExecution,
    insert::Insertion,
    ledger::{LEDGER_PARAMETERS, LedgerInsertion, LedgerRows},
};
use crate::{
    catalog::lock_name,
    database::{
        combine::{BatchOutcome, Combiner},
        errors::{is_refusal, port_error},
        names::column_name,
        pool::Database,
        sql::{CachedStatement, Schemas, literal, statement},
    },
};

/// Maximum number of rows of a request that is batched.
const MAX_ROWS: usize = 32;

/// Maximum size of the texts of a request that is batched, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// Maximum number of concurrent batches of one form. Measured: with a second one batches are smaller, and their statements cost
/// more than is gained while the first is flushed.
const MAX_CONCURRENT_BATCHES: usize = 1;

/// Constraint that `labdata.begin_inserts` reports as violated for a stale plan.
const CATALOG_VERSION: &str = "catalog_version";

/// A request that only creates a few rows of one table, under a new execution.
#[derive(Debug)]
pub(super) struct SmallInsert {
    version: CatalogVersion,
    table: KeyedTable,
    rows: usize,
    /// Columns with a value per row.
    columns: Vec<(ColumnRef, Values)>,
    may_recreate: bool,
    /// The keys of the rows.
    created: TableOutcome,
    entry: LedgerEntry,
    execution: NewExecution,
}

impl SmallInsert {
    /// The plan as a small insert, if it is one.
    pub(super) fn of(plan: &WritePlan, attribution: &Attribution) -> Option<Self> {
        let [step] = plan.tables.as_slice() else {
            return None;
        };
        let keys = step.inserted_keys()?;
        let is_small = (1..=MAX_ROWS).contains(&step.len)
            && plan.series.is_empty()
            && !plan.dry_run
            && !plan.return_rows
            && step.columns.iter().all(|column| column.late.is_empty());
        if !is_small {
            return None;
        }
        let others = step.columns.iter();
        let others = others.map(|given| (&given.column, &*given.values));
        let columns = std::iter::once((step.table.key(), keys)).chain(others);
        let sizes = columns.clone().map(|(_, values)| size(values));
        // Long texts cost more than their transaction, and the other requests of a batch would wait for them.
        if sizes.sum::<Option<usize>>()? > MAX_BYTES {
            return None;
        }
        let created = TableOutcome::inserted(step, keys);
        Some(Self {
            version: plan.version,
            table: step.table.clone(),
            rows: step.len,
            may_recreate: step.may_recreate(),
            columns: columns
                .map(|(column, values)| (column.clone(), values.clone()))
                .collect(),
            entry: LedgerEntry::created(&step.table.name, created.created),
            created,
            execution: NewExecution::of(attribution)?,
        })
    }

    pub(super) const fn job_name(&self) -> &JobName {
        &self.execution.job_name
    }

    /// The values of one of its columns.
    fn values(&self, column: &ColumnRef) -> Option<&Values> {
        let mut columns = self.columns.iter();
        let (_, values) = columns.find(|(own, _)| own == column)?;
        Some(values)
    }

    /// The outcome of the plan once it is written.
    pub(super) fn outcome(&self, plan: &WritePlan) -> WriteOutcome {
        let mut outcome = WriteOutcome {
            execution: Some(self.execution.id),
            tables: vec![self.created.clone()],
            ..WriteOutcome::default()
        };
        outcome.set_refs(plan);
        outcome
    }
}

/// The size of a column's texts; `None` if it is not known without rendering.
fn size(values: &Values) -> Option<usize> {
    match values {
        Values::Text(texts) => Some(texts.iter().flatten().map(|text| text.as_str().len()).sum()),
        Values::Json(_) => None,
        _ => Some(0),
    }
}

/// Result of a batch that was not given up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Yes,
    /// No row was written: the tables have changed since the requests were planned.
    CatalogChanged,
}

/// Properties that the inserts of a batch share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Form {
    organization: OrganizationId,
    version: CatalogVersion,
    /// The table's name, which tells tables of one version apart.
    table: String,
    columns: Vec<ColumnRef>,
    /// True if keys may be those of deleted rows.
    may_recreate: bool,
}

/// An insert, and the end of the time that its request waits for a connection.
#[derive(Debug)]
struct WaitingInsert {
    insert: SmallInsert,
    deadline: Instant,
}

/// Small inserts that arrive together become one transaction.
#[derive(Clone, Debug)]
pub(super) struct SmallInserts {
    database: Database,
    combiner: Arc<Combiner<Form, WaitingInsert, Written>>,
}

impl SmallInserts {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            combiner: Arc::new(Combiner::new(MAX_CONCURRENT_BATCHES)),
        }
    }

    /// Writes it in a batch.
    pub(super) async fn write(
        &self,
        organization: OrganizationId,
        insert: SmallInsert,
    ) -> BatchOutcome<Written> {
        let form = Form {
            organization,
            version: insert.version,
            table: insert.table.name.clone(),
            columns: insert.columns.iter().map(|(it, _)| it.clone()).collect(),
            may_recreate: insert.may_recreate,
        };
        let database = self.database.clone();
        let waiting = WaitingInsert {
            insert,
            deadline: Instant::now() + waiting::left(PATIENCE),
        };
        self.combiner
            .submit(form, waiting, move |form, batch| {
                let database = database.clone();
                async move {
                    // Of the request that waits longest: it has waited for earlier batches as well.
                    let deadline = batch.iter().map(|waiting| waiting.deadline).min();
                    let budget = deadline.map_or(PATIENCE, |it| it.duration_since(Instant::now()));
                    let batch: Vec<_> = batch.into_iter().map(|waiting| waiting.insert).collect();
                    let outcome = write_batch(&database, &form, &batch);
                    let outcome = waiting::with_budget(budget, outcome).await;
                    batch.iter().map(|_| outcome.clone()).collect()
                }
            })
            .await
    }
}

/// Writes a batch; its requests share one outcome.
async fn write_batch(
    database: &Database,
    form: &Form,
    batch: &[SmallInsert],
) -> BatchOutcome<Written> {
    let mut connection = match database.of(form.organization).connection().await {
        Ok(connection) => connection,
        Err(error) => return BatchOutcome::without_connection(error),
    };
    let Some(gathered) = Batch::of(form, batch) else {
        return BatchOutcome::RunSeparately;
    };
    match gathered.write(&mut connection, form).await {
        Ok(_) => BatchOutcome::Done(Written::Yes),
        // The form contains the version, so this holds for every request of the batch.
        Err(DieselError::DatabaseError(_, reported))
            if reported.constraint_name() == Some(CATALOG_VERSION) =>
        {
            BatchOutcome::Done(Written::CatalogChanged)
        }
        Err(error) if is_refusal(&error) => {
            tracing::debug!(%error, size = batch.len(), "small writes go on alone");
            BatchOutcome::RunSeparately
        }
        // The commit may have succeeded before the connection broke: a second try could repeat the rows.
        Err(error) => BatchOutcome::Unknown(port_error(error).to_string()),
    }
}

/// The parts of several requests, side by side.
struct Batch<'b> {
    table: &'b KeyedTable,
    /// A value for each row.
    columns: Vec<(&'b ColumnRef, Values)>,
    row_executions: Vec<Uuid>,
    row_times: Vec<OffsetDateTime>,
    /// A value for each request.
    executions: Vec<Uuid>,
    jobs: Vec<&'b str>,
    users: Vec<Uuid>,
    keys: Vec<Uuid>,
    times: Vec<OffsetDateTime>,
    ledger: LedgerRows<'b>,
}

impl<'b> Batch<'b> {
    /// `None` without requests, and if one lacks a column of the form.
    fn of(form: &'b Form, batch: &'b [SmallInsert]) -> Option<Self> {
        let mut columns = Vec::with_capacity(form.columns.len());
        for column in &form.columns {
            let mut values = Values::with_capacity(column.data_type, batch.len());
            for insert in batch {
                values.extend(insert.values(column)?);
            }
            columns.push((column, values));
        }
        let mut gathered = Self {
            table: &batch.first()?.table,
            columns,
            row_executions: Vec::new(),
            row_times: Vec::new(),
            executions: Vec::new(),
            jobs: Vec::new(),
            users: Vec::new(),
            keys: Vec::new(),
            times: Vec::new(),
            ledger: LedgerRows::default(),
        };
        for insert in batch {
            gathered.add(insert);
        }
        Some(gathered)
    }

    fn add(&mut self, insert: &'b SmallInsert) {
        let execution = &insert.execution;
        let rows = self.row_executions.len() + insert.rows;
        self.row_executions.resize(rows, execution.id.as_uuid());
        self.row_times.resize(rows, execution.at);
        self.executions.push(execution.id.as_uuid());
        self.jobs.push(execution.job_name.as_str());
        self.users.push(execution.started_by.as_uuid());
        self.keys.push(execution.api_key.as_uuid());
        self.times.push(execution.at);
        self.ledger.add(execution.id, execution.at, &insert.entry);
    }

    /// The insert's `RETURNING`, and the check that the rows are of a later moment than the deletions of their keys. A
    /// function reads with its own snapshot, which has deletions that the insert has waited for. As an expression of
    /// the insert it would make PostgreSQL plan every batch again.
    fn moments(&self, form: &Form) -> (String, String) {
        if !form.may_recreate {
            return (String::new(), String::new());
        }
        let returning = format!(
            " RETURNING {}::text AS id, created_at",
            column_name(self.table.key())
        );
        let check = format!(
            " UNION ALL SELECT labdata.require_later_than_deletions($1, {}, array_agg(id), array_agg(created_at)) \
             FROM created",
            literal(&self.table.name)
        );
        (returning, check)
    }

    /// Writes the batch in one round trip: a statement is its own transaction.
    async fn write(
        &self,
        connection: &mut AsyncPgConnection,
        form: &Form,
    ) -> Result<usize, DieselError> {
        const OWN_PARAMETERS: usize = 8;
        let mut insertion = Insertion::after(OWN_PARAMETERS + LEDGER_PARAMETERS);
        for (column, values) in &self.columns {
            insertion.add(column, Cow::Borrowed(values));
        }
        let table = Schemas::of(form.organization).table(&form.table);
        let insert = insertion.text_per_row(&table, &self.row_executions, &self.row_times);
        let LedgerInsertion { ledger, event } = LedgerRows::insertion(OWN_PARAMETERS);
        let (returning, check) = self.moments(form);
        // PostgreSQL runs the SELECT before parts of WITH that it does not read yet: the lock precedes the rows.
        let text = format!(
            "WITH created AS ({insert}{returning}), {ledger}, recorded AS ({event}) \
             SELECT labdata.begin_inserts($1, $2, $3, $4, $5, $6, $7, $8){check}"
        );
        let query = statement(text)
            .bind::<SqlUuid, _>(form.organization.as_uuid())
            .bind::<Text, _>(lock_name(form.organization))
            .bind::<BigInt, _>(form.version.0)
            .bind::<Array<SqlUuid>, _>(&self.executions)
            .bind::<Array<Text>, _>(&self.jobs)
            .bind::<Array<SqlUuid>, _>(&self.users)
            .bind::<Array<SqlUuid>, _>(&self.keys)
            .bind::<Array<Timestamptz>, _>(&self.times);
        // Arrays make the text the same for every batch of a form, so it is prepared once.
        CachedStatement(insertion.bind(self.ledger.bind(query)))
            .execute(connection)
            .await
    }
}
