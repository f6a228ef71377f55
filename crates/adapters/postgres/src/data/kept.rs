//! Values of changed rows that the ledger keeps.

use labdata_domain::{
    catalog::Table,
    data::{
        read::RowJson,
        write::{KEPT_BYTES, KEPT_ROWS, KeptRow},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::database::sql::rendered_columns;

/// An expression of a row's text if it is one of the first rows and short, else null.
///
/// # Arguments
/// `place` is an expression of the row's place in the request, from 1.
pub(super) fn kept_row(table: &Table, alias: &str, place: &str) -> String {
    format!(
        "CASE WHEN {place} <= {KEPT_ROWS} THEN (SELECT j.kept FROM \
         (SELECT row_to_json(r)::text AS kept FROM (SELECT {}) r) j \
         WHERE octet_length(j.kept) <= {KEPT_BYTES}) END",
        rendered_columns(table, alias)
    )
}

/// A kept row as the ledger holds it.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    id: String,
    #[serde(borrow)]
    before: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
}

/// Rows as the text of a JSON array; `None` if there are none.
pub(super) fn to_json(rows: &[KeptRow]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let raw = |row: &'_ Option<RowJson>| -> Option<Box<RawValue>> {
        RawValue::from_string(row.as_ref()?.as_str().to_owned()).ok()
    };
    let values: Vec<_> = rows
        .iter()
        .map(|row| (row.id.clone(), raw(&row.before), raw(&row.after)))
        .collect();
    let stored: Vec<Stored<'_>> = values
        .iter()
        .map(|(id, before, after)| Stored {
            id: id.clone(),
            before: before.as_deref(),
            after: after.as_deref(),
        })
        .collect();
    serde_json::to_string(&stored).ok()
}

/// A row of such an array.
pub(super) fn from_json(text: &str) -> Option<KeptRow> {
    let stored: Stored<'_> = serde_json::from_str(text).ok()?;
    let row = |raw: Option<&RawValue>| raw.map(|raw| RowJson::from_rendered(raw.get().to_owned()));
    Some(KeptRow {
        before: row(stored.before),
        after: row(stored.after),
        id: stored.id,
    })
}
