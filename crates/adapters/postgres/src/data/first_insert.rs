//! The first round trip of a write.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::CatalogVersion,
    data::write::{LedgerEntry, TableStep, WritePlan},
    scalar::Values,
};
use labdata_ports::data::{Attribution, WriteError};

use super::{
    context::WriteContext,
    execution::{NewExecution, create_execution, require_open},
    failure::Failure,
    insert::Insertion,
    ledger::record,
    recreated::require_later_than_deletions,
};
use crate::database::sql::CachedStatement;

/// Maximum number of table writes of a request whose first insert stays prepared.
const MAX_PREPARED: usize = 4;

#[derive(QueryableByName)]
struct VersionRow {
    #[diesel(sql_type = BigInt)]
    catalog_version: i64,
}

/// Statements sent in the first round trip, beside the checks whether the write may be done at all.
/// If a check fails, everything is rolled back. Most writes insert something first, and many do
/// nothing else.
#[derive(Clone, Copy)]
pub(super) struct FirstInsert {
    /// The first table write is sent.
    pub(super) inserts: bool,
    /// Execution and ledger are sent as well, because the write consists of that insert.
    pub(super) records: bool,
}

impl FirstInsert {
    pub(super) fn of(plan: &WritePlan, has_job: bool) -> Self {
        let inserts = first_insert(plan).is_some();
        let is_all = plan.tables.len() == 1 && plan.series.is_empty() && !plan.dry_run;
        Self {
            inserts,
            records: inserts && is_all && has_job,
        }
    }

    pub(super) async fn run(
        self,
        connection: &AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        let step = first_insert(plan);
        let insert = async {
            match step {
                Some((step, keys)) => {
                    insert(connection, context, step, keys, plan.tables.len()).await
                }
                None => Ok(()),
            }
        };
        let recorded = async {
            match step.filter(|_| self.records) {
                Some((step, _)) => {
                    let created = u64::try_from(step.len).unwrap_or(u64::MAX);
                    let entry = LedgerEntry::created(&step.table.name, created);
                    record_write(connection, context, attribution, &[entry]).await
                }
                None => Ok(()),
            }
        };
        // The driver pipelines statements whose futures are polled together.
        let dated = async {
            match step {
                Some((step, _)) => require_later_than_deletions(connection, context, step).await,
                None => Ok(()),
            }
        };
        let (version, open, inserted, dated, recorded) = futures::join!(
            require_version(connection, context, plan.version),
            require_open(connection, context, &attribution.target),
            insert,
            dated,
            recorded,
        );
        // In this order: an insert into a table that no longer exists fails because of it.
        version.and(open).and(inserted).and(dated).and(recorded)
    }
}

/// The first table write with the keys of its rows, if it inserts any.
fn first_insert(plan: &WritePlan) -> Option<(&TableStep, &Values)> {
    let step = plan.tables.as_slice().first().filter(|step| step.len > 0)?;
    Some((step, step.inserted_keys()?))
}

async fn insert(
    connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    keys: &Values,
    table_writes: usize,
) -> Result<(), Failure> {
    let others = step.columns.iter();
    let others = others.map(|given| (&given.column, &*given.values));
    let insertion = Insertion::of(step.table.key(), keys, others);
    let table = context.schemas.table(&step.table.name);
    // A request of many table writes would leave as many prepared statements behind.
    let stays_prepared = table_writes <= MAX_PREPARED;
    Ok(insertion
        .run(connection, context, &table, stays_prepared)
        .await?)
}

/// Checks the version of the organization's definitions. It is read after the lock, with a new
/// snapshot, so that it cannot be stale.
async fn require_version(
    mut connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    planned: CatalogVersion,
) -> Result<(), Failure> {
    let query = diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
        .bind::<SqlUuid, _>(context.organization.as_uuid());
    let current: VersionRow = CachedStatement(query).get_result(&mut connection).await?;
    if current.catalog_version == planned.0 {
        Ok(())
    } else {
        Err(WriteError::CatalogChanged.into())
    }
}

/// Creates the new execution and writes the ledger, in one round trip.
pub(super) async fn record_write(
    connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    attribution: &Attribution,
    entries: &[LedgerEntry],
) -> Result<(), Failure> {
    let new = NewExecution::of(attribution);
    let (executions, recorded) = futures::join!(
        create_execution(connection, context.organization, new.as_ref()),
        record(connection, context, entries),
    );
    executions.and(recorded)
}
