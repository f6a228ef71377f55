//! Carries out the plan of a restore.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::data::{
    history::ChangeAction,
    restore::{RestoreFacts, RestorePlan},
    write::{LedgerEntry, RowKeys},
};

use super::{KeyRow, SELECTED, Source};
use crate::{
    data::{context::WriteContext, delete::delete_all, failure::Failure, history::NO_ROW},
    database::{
        names::column_name,
        sql::{bind_values, ident, key_from_text, statement},
    },
};

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// The changes of a plan.
pub(super) struct Work<'w, 'c> {
    pub(super) connection: &'w mut AsyncPgConnection,
    pub(super) context: &'w mut WriteContext<'c>,
    pub(super) plan: &'w RestorePlan,
    pub(super) facts: RestoreFacts,
    pub(super) entries: Vec<LedgerEntry>,
}

impl Work<'_, '_> {
    pub(super) async fn run(&mut self, sources: &[Source<'_>]) -> Result<(), Failure> {
        // Values that must be unique, and references between rows, are checked once all rows are restored.
        self.connection
            .batch_execute("SET CONSTRAINTS ALL DEFERRED")
            .await?;
        for source in sources.iter().filter(|source| source.keyed.is_some()) {
            self.restore_rows(source).await?;
        }
        // Before the rows, with which only series of others are deleted then.
        for source in sources.iter().filter(|source| source.keyed.is_none()) {
            self.delete_chunks(source).await?;
        }
        self.delete_rows(sources).await?;
        for source in sources.iter().filter(|source| source.keyed.is_none()) {
            self.restore_chunks(source).await?;
        }
        Ok(())
    }

    /// Gives rows their earlier values, and creates deleted ones with them.
    async fn restore_rows(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let Source {
            table, name, key, ..
        } = source;
        let own = table.columns.iter().map(|column| column_name(column));
        let system = table.system_columns().iter();
        let columns: Vec<String> = own.chain(system.map(|it| ident(it.name))).collect();
        let from = format!(
            "labdata.row_change c CROSS JOIN LATERAL json_populate_record(NULL::{name}, c.before) s"
        );
        let recording = self.context.recording(table);
        let mut ids = Vec::new();
        for deleted in [false, true] {
            let values = self.plan.values(&table.name, deleted);
            if values.is_empty() {
                continue;
            }
            let given = columns.iter().map(|column| format!("s.{column}"));
            let given = given.collect::<Vec<_>>().join(", ");
            let names = columns.join(", ");
            let change = if deleted {
                format!(
                    "INSERT INTO {name} ({names}) SELECT {given} FROM {from} WHERE {SELECTED} \
                     RETURNING {key}::text AS key, $3 AS at, {NO_ROW}"
                )
            } else {
                format!(
                    // The time of the change is later than the row's last one even if servers' clocks differ, as in
                    // every update.
                    "UPDATE {name} t SET ({names}) = ROW({given}) FROM {from} JOIN {name} old ON old.{key} = s.{key} \
                     WHERE {SELECTED} AND t.{key} = s.{key} RETURNING t.{key}::text AS key, \
                     greatest($3, old.updated_at + interval '1 microsecond') AS at, {}",
                    recording.row("old")
                )
            };
            let query = statement(format!(
                "WITH changed AS ({change}){recorded} SELECT key FROM changed",
                recorded = recording.part(ChangeAction::Restored, "changed", 3),
            ))
            .bind::<SqlUuid, _>(self.context.execution.as_uuid())
            .bind::<Array<BigInt>, _>(values)
            .bind::<Timestamptz, _>(self.context.now);
            let rows: Vec<KeyRow> = recording.bind(query).load(self.connection).await?;
            ids.extend(rows.into_iter().map(|row| row.key));
        }
        self.facts.restored += u64::try_from(ids.len()).unwrap_or(u64::MAX);
        self.entries
            .push(LedgerEntry::updated(&table.name, ids, Vec::new()));
        Ok(())
    }

    async fn delete_rows(&mut self, sources: &[Source<'_>]) -> Result<(), Failure> {
        let mut rows = RowKeys::new();
        for source in sources {
            let Some(keyed) = &source.keyed else { continue };
            let keys = self.plan.deleted(&source.table.name).into_iter();
            let keys: BTreeSet<_> = keys.map(|id| key_from_text(id, source.data_type)).collect();
            if !keys.is_empty() {
                rows.insert(keyed.clone(), keys);
            }
        }
        let (series, stored) = delete_all(self.connection, self.context, &rows).await?;
        let count = rows.values().map(BTreeSet::len).sum::<usize>();
        self.facts.deleted = u64::try_from(count).unwrap_or(u64::MAX);
        self.entries
            .extend(LedgerEntry::deleted(&rows, &series, stored));
        self.facts.series = series;
        Ok(())
    }

    /// Deletes chunks that the execution wrote.
    async fn delete_chunks(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let ids = self.plan.deleted(&source.table.name);
        if ids.is_empty() {
            return Ok(());
        }
        let recording = self.context.recording(source.table);
        let query = statement(format!(
            "WITH changed AS (DELETE FROM {name} c WHERE c._chunk = ANY($1::bigint[]) \
             RETURNING c._chunk::text AS key, c._points AS points, $2 AS at, {before}){recorded} \
             SELECT coalesce(sum(points), 0)::bigint AS count FROM changed",
            name = source.name,
            before = recording.row("c"),
            recorded = recording.part(ChangeAction::Deleted, "changed", 2),
        ));
        let keys = source.keys(&ids);
        let query = bind_values(query, &keys).bind::<Timestamptz, _>(self.context.now);
        let deleted: CountRow = recording.bind(query).get_result(self.connection).await?;
        let points = u64::try_from(deleted.count).unwrap_or_default();
        self.facts.points_deleted += points;
        self.entries
            .push(LedgerEntry::points_deleted(&source.table.name, points));
        Ok(())
    }

    async fn restore_chunks(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let values = self.plan.values(&source.table.name, true);
        if values.is_empty() {
            return Ok(());
        }
        let recording = self.context.recording(source.table);
        let query = statement(format!(
            // A chunk returns under its number, by which its recorded changes name it.
            "WITH changed AS (INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT s.* FROM labdata.row_change c \
             CROSS JOIN LATERAL json_populate_record(NULL::{name}, c.before) s WHERE {SELECTED} \
             RETURNING _chunk::text AS key, _points AS points, $3 AS at, {NO_ROW}){recorded} \
             SELECT coalesce(sum(points), 0)::bigint AS count FROM changed",
            name = source.name,
            recorded = recording.part(ChangeAction::Restored, "changed", 3),
        ))
        .bind::<SqlUuid, _>(self.context.execution.as_uuid())
        .bind::<Array<BigInt>, _>(values)
        .bind::<Timestamptz, _>(self.context.now);
        let created: CountRow = recording.bind(query).get_result(self.connection).await?;
        let points = u64::try_from(created.count).unwrap_or_default();
        self.facts.points_restored += points;
        self.entries
            .push(LedgerEntry::points_restored(&source.table.name, points));
        Ok(())
    }
}
