//! Locks of keys under which upserts may create rows.

use std::collections::BTreeSet;

use diesel::sql_types::{Array, Bool, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::data::write::{ResolvedColumn, ResolvedColumns, TableStep};

use super::{context::WriteContext, failure::Failure};

/// Maximum number of keys that are locked one by one: all locks of a server share one table of limited size.
const MAX_LOCKED_KEYS: usize = 64;

/// Makes other upserts of these keys wait until the transaction ends, where no constraint keeps two of them from creating
/// the same row. MUST come before the rows are matched, in a statement that begins after it: it sees the rows of those
/// that this one has waited for.
pub(super) async fn lock_keys(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    columns: &ResolvedColumns<'_>,
) -> Result<(), Failure> {
    if !step.may_create_twice() {
        return Ok(());
    }
    let names: Vec<&str> = columns.key.iter().map(|it| &*it.column().name).collect();
    let of_table = format!(
        "upserts {} {} {names:?}",
        context.organization, step.table.name
    );
    let key = |row: usize| {
        let values = columns.key.iter();
        let values: Vec<_> = values
            .map(|it: &ResolvedColumn<'_>| it.values.comparable(row))
            .collect();
        format!("{of_table} {values:?}")
    };
    let mut keys: BTreeSet<String> = (0..step.len).map(key).collect();
    let is_whole = keys.len() > MAX_LOCKED_KEYS;
    if is_whole {
        keys.clear();
    }
    let keys: Vec<String> = keys.into_iter().collect();
    // In the order of the locks' numbers, so that upserts of the same keys wait for each other instead of deadlocking.
    diesel::sql_query(
        "SELECT CASE WHEN $2 THEN pg_advisory_xact_lock(t.key) ELSE pg_advisory_xact_lock_shared(t.key) END, \
         (SELECT count(pg_advisory_xact_lock(s.key)) FROM (SELECT DISTINCT labdata.lock_key(name) AS key \
             FROM unnest($3::text[]) AS u(name) ORDER BY 1) s) \
         FROM (SELECT labdata.lock_key($1) AS key) t",
    )
    .bind::<Text, _>(of_table)
    .bind::<Bool, _>(is_whole)
    .bind::<Array<Text>, _>(keys)
    .execute(connection)
    .await?;
    Ok(())
}
