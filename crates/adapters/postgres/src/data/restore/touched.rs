//! The rows and chunks that an execution changed.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    mem,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::data::{history::ChangeAction, restore::Touched};
use time::OffsetDateTime;

use super::{KeyRow, Source};
use crate::{
    data::{context::WriteContext, failure::Failure},
    database::sql::{bind_values, sql_type, statement},
};

/// A recorded change.
#[derive(QueryableByName)]
struct ChangeRow {
    #[diesel(sql_type = Text)]
    row_id: String,
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Timestamptz)]
    at: OffsetDateTime,
    #[diesel(sql_type = Text)]
    action: String,
    /// True if the row did not exist before.
    #[diesel(sql_type = Bool)]
    was_absent: bool,
    /// True if the execution had created the row before.
    #[diesel(sql_type = Bool)]
    was_own: bool,
    /// True if the execution is a revert, which gives rows back the execution of their earlier values.
    #[diesel(sql_type = Bool)]
    is_undo: bool,
    /// Of a chunk.
    #[diesel(sql_type = Nullable<Text>)]
    parent: Option<String>,
}

/// Changes of the execution to one row.
struct ChangedRow {
    /// The first change, with the parent by all of them.
    first: ChangeRow,
    last_at: OffsetDateTime,
    last_action: String,
    count: usize,
}

impl ChangedRow {
    fn of(first: ChangeRow) -> Self {
        Self {
            last_at: first.at,
            last_action: first.action.clone(),
            count: 1,
            first,
        }
    }

    fn add(&mut self, change: ChangeRow) {
        self.last_at = self.last_at.max(change.at);
        self.last_action = change.action;
        self.count += 1;
        self.first.is_undo |= change.is_undo;
        self.first.parent = self.first.parent.take().or(change.parent);
    }
}

#[derive(QueryableByName)]
struct CurrentRow {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Bool)]
    own: bool,
    /// True if the execution changed it last.
    #[diesel(sql_type = Bool)]
    changed_last: bool,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    changed_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Text>)]
    parent: Option<String>,
}

/// The first changes of rows by an execution; numbers are 0, and times missing, for rows that it created.
struct Firsts<'r> {
    ids: Vec<&'r str>,
    numbers: Vec<i64>,
    times: Vec<Option<OffsetDateTime>>,
}

/// The rows of a table that the execution changed, those that exist locked, and the moment of their last change.
pub(super) async fn touched(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
) -> Result<(Vec<Touched>, Option<OffsetDateTime>), Failure> {
    let changed = changed_rows(connection, context, source).await?;
    let current: BTreeMap<String, CurrentRow> =
        current_rows(connection, context, source, changed.keys())
            .await?
            .into_iter()
            .map(|row| (row.key.clone(), row))
            .collect();
    let times = current.values().filter_map(|row| row.changed_at);
    let latest = times.chain(changed.values().map(|row| row.last_at)).max();
    let ids: BTreeSet<&String> = changed.keys().chain(current.keys()).collect();
    // Of rows that the execution created, what others changed before its first update counts, too.
    let first = |id: &String| changed.get(id).filter(|row| !row.first.was_own);
    // Each change makes its author the row's last changer: a single change that still is the last has none after it.
    let is_last = |id: &String| {
        source.keyed.is_some()
            && first(id).is_some_and(|row| row.count == 1)
            && current.get(id).is_some_and(|row| row.changed_last)
    };
    let uncertain: Vec<&String> = ids.iter().copied().filter(|id| !is_last(id)).collect();
    let firsts = Firsts {
        ids: uncertain.iter().map(|id| id.as_str()).collect(),
        numbers: uncertain
            .iter()
            .map(|id| first(id).map_or(0, |row| row.first.id))
            .collect(),
        times: uncertain
            .iter()
            .map(|id| first(id).map(|row| row.first.at))
            .collect(),
    };
    let since = changed_since(connection, context, source, firsts).await?;
    let rows = ids.into_iter().map(|id| {
        let change = changed.get(id);
        let was_created = change.is_none_or(|row| row.first.was_own);
        let now = current.get(id);
        let is_own = now.is_some_and(|row| row.own);
        let exists = now.is_some() && (is_own || !was_created);
        // By the row itself as well: another execution's change is not recorded without history, and may be forgotten.
        let changed_last_by_other = source.keyed.is_some()
            && change.is_none_or(|row| !row.first.is_undo)
            && now.is_some_and(|row| !row.changed_last);
        let deleted = change.is_some_and(|row| row.last_action == ChangeAction::Deleted.as_str());
        Touched {
            table: source.table.clone(),
            id: id.clone(),
            parent: change
                .and_then(|row| row.first.parent.clone())
                .or_else(|| now.and_then(|row| row.parent.clone()))
                .filter(|_| source.keyed.is_none()),
            before: change
                .filter(|row| !row.first.was_own && !row.first.was_absent)
                .map(|row| row.first.id),
            exists,
            is_own,
            changed_since: since.contains(id)
                || (exists && changed_last_by_other)
                || (deleted && exists && !is_own),
        }
    });
    Ok((rows.collect(), latest))
}

async fn changed_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
) -> Result<BTreeMap<String, ChangedRow>, Failure> {
    let changes: Vec<ChangeRow> = diesel::sql_query(format!(
        // Along the index of executions alone: other changes of the rows may be many.
        "SELECT row_id, id, at, action, before IS NULL AS was_absent, is_undo, \
         coalesce((before ->> $4)::uuid = $1, false) AS was_own, {parent} AS parent \
         FROM labdata.row_change c WHERE execution_id = $1 AND organization_id = $2 AND table_name = $3 \
         AND NOT is_undone ORDER BY id",
        parent = source.former_parent("c"),
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(&source.table.name)
    .bind::<Text, _>(source.creator)
    .load(connection)
    .await?;
    let mut rows: BTreeMap<String, ChangedRow> = BTreeMap::new();
    for mut change in changes {
        match rows.entry(mem::take(&mut change.row_id)) {
            Entry::Vacant(entry) => {
                entry.insert(ChangedRow::of(change));
            }
            Entry::Occupied(mut entry) => entry.get_mut().add(change),
        }
    }
    Ok(rows)
}

/// The rows that the execution created, and those of these keys, locked.
async fn current_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
    ids: impl IntoIterator<Item = &String>,
) -> Result<Vec<CurrentRow>, Failure> {
    let keys = source.keys(ids);
    let query = statement(format!(
        // Locked in the order of keys, as every other writer does.
        "SELECT t.{key}::text AS key, t.{creator} IS NOT DISTINCT FROM $1 AS own, \
         t.{updater} IS NOT DISTINCT FROM $1 AS changed_last, t.{changed_at} AS changed_at, {parent} AS parent FROM {name} t \
         WHERE t.{creator} = $1 OR t.{key} = ANY($2::{data_type}[]) ORDER BY t.{key} FOR UPDATE",
        key = source.key,
        creator = source.creator,
        updater = source.updater,
        changed_at = source.changed_at,
        parent = source.parent("t"),
        name = source.name,
        data_type = sql_type(source.data_type),
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid());
    Ok(bind_values(query, &keys).load(connection).await?)
}

/// The rows that another execution changed after those changes. Reverts and what they undid do not count:
/// together they changed nothing.
async fn changed_since(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
    firsts: Firsts<'_>,
) -> Result<BTreeSet<String>, Failure> {
    let rows: Vec<KeyRow> = diesel::sql_query(
        // A look at the index for each row, which LATERAL and LIMIT demand: PostgreSQL would rather read all changes of the
        // table. Numbers decide; times only bound the look, with a margin for servers whose clocks differ.
        "SELECT u.id AS key FROM unnest($4::text[], $5::bigint[], $7::timestamptz[]) AS u(id, first, at) \
         CROSS JOIN LATERAL (SELECT FROM labdata.row_change o \
             WHERE o.organization_id = $2 AND o.table_name = $3 AND o.row_id = u.id COLLATE \"C\" AND o.id > u.first \
             AND o.at >= coalesce(u.at - interval '1 minute', '-infinity') \
             AND o.execution_id IS DISTINCT FROM $1 AND NOT o.is_undone AND NOT o.is_undo \
             AND (u.first > 0 OR (o.before ->> $6)::uuid = $1) LIMIT 1) o",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(&source.table.name)
    .bind::<Array<Text>, _>(firsts.ids)
    .bind::<Array<BigInt>, _>(firsts.numbers)
    .bind::<Text, _>(source.creator)
    .bind::<Array<Nullable<Timestamptz>>, _>(firsts.times)
    .load(connection)
    .await?;
    Ok(rows.into_iter().map(|row| row.key).collect())
}
