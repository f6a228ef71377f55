//! Upserts and updates.

use std::borrow::Cow;

use diesel::{
    QueryableByName,
    sql_types::{Array, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::{
        history::ChangeAction,
        write::{OnMatch, ResolvedColumns, RowImage, RowsWithKeys, TableOutcome, TableStep},
    },
    scalar::KeyValue,
};

use super::{
    context::WriteContext,
    failure::Failure,
    history::NO_ROW,
    insert::Insertion,
    matching::{Matches, match_rows},
    recreated::require_later_than_deletions,
    row_images::{rendered_row, row_image},
    upsert_locks::lock_keys,
};
use crate::database::{
    names::{ArrayParameter, TableNames, Unnested, column_name},
    row_ranges::row_ranges,
    sql::{gather, statement},
};

/// A step whose rows are updated or created.
pub(super) struct ModifiedStep {
    pub(super) outcome: TableOutcome,
    /// Keys of the rows that count as updated.
    pub(super) changed: Vec<String>,
    /// Values of the first of them.
    pub(super) stored: Vec<RowImage>,
}

/// Updates rows that match and creates the rest.
pub(super) async fn modify_rows(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    step: &TableStep,
    on_match: OnMatch,
    mut columns: ResolvedColumns<'_>,
) -> Result<ModifiedStep, Failure> {
    // An overwrite changes every match; what a fill changes is known after it.
    let recorded = match on_match {
        OnMatch::Overwrite => Some(context.author.update()),
        OnMatch::FillMissing => None,
    };
    lock_keys(connection, context, step, &columns).await?;
    let Matches { found, mut before } =
        match_rows(connection, context, step, &columns, recorded).await?;
    let assigned = step.assign_matches(found).map_err(Failure::Problems)?;
    columns
        .fill_own(&assigned.keys)
        .map_err(Failure::Problems)?;
    // Created before others are updated: an update may refer to a row that this step creates.
    create_rows(connection, context, step, &columns, &assigned.created).await?;
    let matched = &assigned.matched;
    let values = columns.columns.iter().map(|given| &*given.values);
    let mut changed = Vec::new();
    for range in row_ranges(values, matched.rows().iter().copied()) {
        let update = Update {
            names: context.names(&step.table),
            on_match,
            before: range.start,
            rows: matched.rows().get(range.clone()).unwrap_or_default(),
            keys: matched.keys().get(range).unwrap_or_default(),
        };
        changed.extend(update.run(connection, context, &columns).await?);
    }
    let stored = changed
        .iter()
        .filter_map(|row| {
            // Only the first rows of the request were stored when they were matched.
            let before = before.remove(&row.key)?;
            Some(RowImage {
                id: row.key.clone(),
                before,
                after: rendered_row(&step.table, row.stored.as_deref().unwrap_or_default()),
            })
        })
        .collect();
    let changed: Vec<String> = changed.into_iter().map(|row| row.key).collect();
    let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let outcome = TableOutcome {
        table: step.table.name.clone(),
        created: count(assigned.created.rows().len()),
        updated: count(changed.len()),
        ids: assigned.keys,
        ..TableOutcome::default()
    };
    Ok(ModifiedStep {
        outcome,
        changed,
        stored,
    })
}

/// Creates the rows that matched nothing.
async fn create_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    columns: &ResolvedColumns<'_>,
    created: &RowsWithKeys,
) -> Result<(), Failure> {
    if created.rows().is_empty() {
        return Ok(());
    }
    let names = context.names(&step.table);
    let key = step.table.key();
    let others = || columns.iter().filter(|given| given.column() != key);
    let values = others().map(|given| &*given.values);
    for range in row_ranges(values, created.rows().iter().copied()) {
        let rows = created.rows().get(range.clone()).unwrap_or_default();
        let keys = names.key_values(created.keys().get(range).unwrap_or_default());
        let mut insertion = Insertion::of(key, &keys, std::iter::empty());
        for given in others() {
            insertion.add(given.column(), Cow::Owned(gather(&given.values, rows)));
        }
        insertion
            .run(connection, context, &names.name, false)
            .await
            // Another writer may have created the same rows since they were looked for, which matching
            // again tells from a request that is at fault.
            .map_err(|error| Failure::from(error).contended())?;
    }
    require_later_than_deletions(connection, context, step).await?;
    if context.author.restores {
        record_created(connection, context, step, created).await?;
    }
    Ok(())
}

/// Records rows that are created again, which rows that are created otherwise are not.
async fn record_created(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    created: &RowsWithKeys,
) -> Result<(), Failure> {
    let recording = context.recording(&step.table);
    let recorded = recording.part(ChangeAction::Restored, "created", 2);
    if recorded.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = created.keys().iter().map(ToString::to_string).collect();
    let query = statement(format!(
        "WITH created AS (SELECT key, $2 AS at, {NO_ROW} FROM unnest($1::text[]) AS u(key)){recorded} \
         SELECT 1"
    ))
    .bind::<Array<Text>, _>(keys)
    .bind::<Timestamptz, _>(context.now);
    recording.bind(query).execute(connection).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct ChangedRow {
    #[diesel(sql_type = Text)]
    key: String,
    /// The row's new values, if they are stored in the ledger.
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

/// An update of matched rows, as many as a statement takes.
struct Update<'u> {
    names: TableNames<'u>,
    on_match: OnMatch,
    /// Number of matched rows before these.
    before: usize,
    rows: &'u [usize],
    keys: &'u [KeyValue],
}

impl Update<'_> {
    /// Sets the provided columns; returns the rows that count as updated.
    async fn run(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        columns: &ResolvedColumns<'_>,
    ) -> Result<Vec<ChangedRow>, Failure> {
        let TableNames {
            table, name, key, ..
        } = &self.names;
        let mut given = Unnested::default();
        let keys = Cow::Owned(self.names.key_values(self.keys));
        let own_key = given.add_values(table.key(), keys);
        let (mut assignments, fills) = self.assignments(columns, &mut given);
        // Overwriting nothing still counts as an update, which the row's time shows; filling
        // nothing does not.
        let filter = match self.on_match {
            OnMatch::Overwrite => String::new(),
            OnMatch::FillMissing if fills.is_empty() => return Ok(Vec::new()),
            OnMatch::FillMissing => format!(" AND ({})", fills.join(" OR ")),
        };
        let now = given.next_parameter();
        // Always later than before, even if servers' clocks differ: reverts recognize rows that
        // changed since they were created by it.
        assignments.push(format!(
            "updated_at = greatest(${now}, t.updated_at + interval '1 microsecond')"
        ));
        assignments.push(format!("updated_by_execution_id = ${}", now + 1));
        let recording = context.recording(table);
        let is_recorded = table.history && self.on_match == OnMatch::FillMissing;
        // The row before the update: locked when it was matched, so the snapshot has it as it is.
        let (old, before, recorded) = if is_recorded {
            (
                format!(" JOIN {name} old ON old.{key} = u.{own_key}"),
                format!(", t.updated_at AS at, {}", recording.row("old")),
                recording.part(context.author.update(), "changed", now + 1),
            )
        } else {
            Default::default()
        };
        let query = statement(format!(
            "WITH changed AS (UPDATE {name} t SET {assignments} FROM {rows} WITH ORDINALITY AS u({columns}, place){old} \
             WHERE t.{key} = u.{own_key}{filter} RETURNING t.{key}::text AS key, {image} AS stored{before}){recorded} \
             SELECT key, stored FROM changed",
            assignments = assignments.join(", "),
            rows = given.call(),
            columns = given.columns(),
            image = row_image(table, "t", &format!("{} + u.place", self.before)),
        ));
        let changed = given
            .bind(query)
            .bind::<Timestamptz, _>(context.now)
            .bind::<SqlUuid, _>(context.execution.as_uuid());
        let changed = if is_recorded {
            recording.bind(changed)
        } else {
            changed
        };
        Ok(changed.load(connection).await?)
    }

    /// The assignments of the provided columns, and for each the condition that it fills a null.
    fn assignments(
        &self,
        columns: &ResolvedColumns<'_>,
        given: &mut Unnested<'_>,
    ) -> (Vec<String>, Vec<String>) {
        let rows = self.rows;
        let (mut assignments, mut fills) = (Vec::new(), Vec::new());
        // Key columns have the stored values already, and the primary key never changes.
        let others = columns.columns.iter();
        for column in others.filter(|given| given.column() != self.names.table.key()) {
            let provided: Vec<bool> = rows.iter().map(|row| column.is_provided(*row)).collect();
            if !provided.contains(&true) {
                continue;
            }
            let name = column_name(column.column());
            let value = given.add_values(column.column(), Cow::Owned(gather(&column.values, rows)));
            // Rows may give different columns: one statement serves all, with a flag per row.
            let condition = provided.contains(&false).then(|| {
                let flag = given.add("boolean", ArrayParameter::Flags(provided));
                format!("u.{flag}")
            });
            let wanted = match self.on_match {
                OnMatch::Overwrite => format!("u.{value}"),
                OnMatch::FillMissing => format!("coalesce(t.{name}, u.{value})"),
            };
            let fill = format!("t.{name} IS NULL AND u.{value} IS NOT NULL");
            match condition {
                None => {
                    assignments.push(format!("{name} = {wanted}"));
                    fills.push(format!("({fill})"));
                }
                Some(condition) => {
                    assignments.push(format!(
                        "{name} = CASE WHEN {condition} THEN {wanted} ELSE t.{name} END"
                    ));
                    fills.push(format!("({fill} AND {condition})"));
                }
            }
        }
        (assignments, fills)
    }
}
