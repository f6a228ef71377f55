//! Stored rows that the rows of a step match.

use std::{borrow::Cow, collections::BTreeMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::data::{
    history::ChangeAction,
    read::RowJson,
    write::{KEPT_ROWS, MatchedRow, ResolvedColumns, RowMatch, TableStep},
};
use labdata_ports::PortError;
use time::OffsetDateTime;

use super::{
    context::WriteContext,
    failure::Failure,
    row_images::{rendered_row, row_image},
};
use crate::database::{
    names::{Unnested, column_name},
    sql::statement,
};

#[derive(QueryableByName)]
struct MatchRow {
    /// The input row, from 1.
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Timestamptz)]
    updated_at: OffsetDateTime,
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

/// Matches of the rows of a step.
pub(super) struct Matches {
    /// A match for each row of the step.
    pub(super) found: Vec<RowMatch<MatchedRow>>,
    /// The stored rows that the first rows of the step match, by key; without values if they are long.
    pub(super) before: BTreeMap<String, Option<RowJson>>,
}

/// Finds the stored rows that each row of a step matches now, and locks them against other writers. The moment of the write
/// is later than theirs from here on.
///
/// # Arguments
/// `recorded` is the change that follows, if it is one of every match: their values are at hand here, and the statement
/// of an update would have to look for them again.
pub(super) async fn match_rows(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    step: &TableStep,
    columns: &ResolvedColumns<'_>,
    recorded: Option<ChangeAction>,
) -> Result<Matches, Failure> {
    let names = context.names(&step.table);
    let mut wanted = Unnested::default();
    let conditions: Vec<String> = columns
        .key
        .iter()
        .map(|key| {
            let value = wanted.add_values(key.column(), Cow::Borrowed(&key.values));
            // Equality, not IS NOT DISTINCT FROM: it uses the index, and null must match no row.
            format!("t.{} = u.{value}", column_name(key.column()))
        })
        .collect();
    // A row that another writer has just changed is locked, and returned, as it is after that change.
    // Locks are taken in the order of keys, so that writers of the same rows rarely deadlock. The
    // join is inner: rows without a match come back as nothing, and are filled in below.
    let recording = context.recording(&step.table);
    let recorded = recorded.filter(|_| step.table.history);
    let now = wanted.next_parameter();
    let values = recorded.map_or_else(String::new, |_| {
        let row = recording.row("t");
        format!(", {row}")
    });
    let mut query = format!(
        "SELECT u.place, t.{key}::text AS key, t.updated_at, {image} AS stored{values} \
         FROM {rows} WITH ORDINALITY AS u({columns}, place) \
         JOIN {table} t ON {conditions} ORDER BY t.{key} FOR UPDATE OF t",
        key = names.key,
        image = row_image(&step.table, "t", "u.place"),
        rows = wanted.call(),
        columns = wanted.columns(),
        table = names.name,
        conditions = conditions.join(" AND "),
    );
    let rows: Vec<MatchRow> = match recorded {
        None => wanted.bind(statement(query)).load(connection).await?,
        Some(action) => {
            query = format!(
                // The moment that the update gives the rows, which is one for all that the write changes.
                "WITH matched AS ({query}), dated AS (SELECT m.*, greatest(${now}, (SELECT max(updated_at) \
                 + interval '1 microsecond' FROM matched)) AS at FROM matched m){} \
                 SELECT place, key, updated_at, stored FROM matched",
                recording.part(action, "dated", now)
            );
            let query = wanted.bind(statement(query));
            let query = query.bind::<Timestamptz, _>(context.now);
            recording.bind(query).load(connection).await?
        }
    };
    context.later_than(rows.iter().map(|row| row.updated_at).max())?;
    if recorded.is_some() && !rows.is_empty() {
        context.note_stored();
    }
    let mut found = vec![RowMatch::None; step.len];
    let mut before = BTreeMap::new();
    for row in rows {
        let MatchRow {
            place,
            key,
            updated_at,
            stored,
        } = row;
        if place <= i64::from(KEPT_ROWS) {
            let row = stored.and_then(|text| rendered_row(&step.table, &text));
            before.insert(key.clone(), row);
        }
        let matched = usize::try_from(place - 1)
            .ok()
            .and_then(|row| found.get_mut(row));
        matched.ok_or_else(unknown_row)?.add(MatchedRow {
            key: names.read_key(key),
            updated_at,
        });
    }
    Ok(Matches { found, before })
}

/// The failure of a statement that reports a row that it was not given.
pub(super) fn unknown_row() -> PortError {
    PortError::Internal("PostgreSQL numbered a row that was not sent".to_owned())
}
