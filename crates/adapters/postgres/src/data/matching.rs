//! Stored rows that the rows of a step match.

use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::data::{
    read::RowJson,
    write::{KEPT_ROWS, ResolvedColumns, RowMatch, TableStep},
};

use super::{
    context::WriteContext,
    failure::Failure,
    row_images::{rendered_row, row_image},
};
use crate::database::sql::{
    bind_values, ident, key_from_text, primary_key, primary_key_type, sql_type, statement,
};

#[derive(QueryableByName)]
struct MatchRow {
    /// The input row, from 1.
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

/// What the rows of a step match.
pub(super) struct Matches {
    /// A match for each row of the step.
    pub(super) found: Vec<RowMatch>,
    /// The stored rows that the first rows of the step match, by key; without values if they are long.
    pub(super) before: BTreeMap<String, Option<RowJson>>,
}

/// Finds the stored rows that each row of a step matches now, and locks them against other writers.
pub(super) async fn match_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    columns: &ResolvedColumns<'_>,
) -> Result<Matches, Failure> {
    let table = &step.table;
    let mut arrays = Vec::new();
    let mut aliases = Vec::new();
    let mut conditions = Vec::new();
    let mut bound = Vec::new();
    for index in step.key_columns() {
        let (Some(column), Some(values)) = (table.columns.get(*index), columns.get(*index)) else {
            continue;
        };
        bound.push(values);
        let number = bound.len();
        arrays.push(format!("${number}::{}[]", sql_type(column.data_type)));
        aliases.push(format!("k{number}"));
        conditions.push(format!("t.{} = u.k{number}", ident(&column.sql_name())));
    }
    let own_key = primary_key(table);
    // Locks are taken in the order of keys, so that writers of the same rows rarely deadlock.
    let mut query = statement(format!(
        "SELECT u.place, t.{own_key}::text AS key, {} AS stored FROM unnest({}) WITH ORDINALITY AS u({}, place) \
         JOIN {} t ON {} ORDER BY t.{own_key} FOR UPDATE OF t",
        row_image(table, "t", "u.place"),
        arrays.join(", "),
        aliases.join(", "),
        context.schemas.table(&table.name),
        conditions.join(" AND "),
    ));
    for values in bound {
        query = bind_values(query, values);
    }
    let rows: Vec<MatchRow> = query.load(connection).await?;
    let data_type = primary_key_type(table);
    let mut found = vec![RowMatch::None; step.len];
    let mut before = BTreeMap::new();
    for MatchRow { place, key, stored } in rows {
        if place <= i64::from(KEPT_ROWS) {
            let row = stored.and_then(|text| rendered_row(table, &text));
            before.insert(key.clone(), row);
        }
        let index = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let Some(slot) = found.get_mut(index) {
            slot.add(key_from_text(key, data_type));
        }
    }
    Ok(Matches { found, before })
}
