//! Values of changed rows that the ledger retains.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use labdata_domain::{
    catalog::Table,
    data::{
        read::RowJson,
        write::{KEPT_BYTES, KEPT_ROWS, RowImage},
    },
    scalar::{DataType, write_float},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::database::sql::ident;

/// An expression of a row as PostgreSQL shows it in JSON if it is one of the first rows and short, else
/// null. [`rendered_row`] reads it.
///
/// A subquery that renders each column, as reads do, would double what a small update costs to plan.
///
/// # Arguments
/// `place` is an expression of the row's place in the request, from 1.
pub(super) fn row_image(table: &Table, alias: &str, place: &str) -> String {
    let mut condition = format!("{place} <= {KEPT_ROWS} AND 0::bigint");
    for column in &table.columns {
        let value = format!("{alias}.{}", ident(&column.sql_name()));
        // What has another type is short. Writing to a string does not fail.
        let _ = match column.data_type {
            DataType::String | DataType::Text => {
                write!(condition, " + coalesce(octet_length({value}), 0)")
            }
            DataType::Json => write!(condition, " + coalesce(octet_length({value}::text), 0)"),
            _ => Ok(()),
        };
    }
    format!("CASE WHEN {condition} <= {KEPT_BYTES} THEN row_to_json({alias}.*)::text END")
}

/// A row of that expression as reads show it; `None` if it is too long to be retained.
pub(super) fn rendered_row(table: &Table, text: &str) -> Option<RowJson> {
    rendered(table, text).and_then(RowImage::short)
}

/// A row of `row_to_json` as reads show it; columns that it lacks are null.
pub(super) fn rendered(table: &Table, text: &str) -> Option<RowJson> {
    let own = table
        .columns
        .iter()
        .map(|column| (&*column.name, column.sql_name(), column.data_type));
    let system = table
        .system_columns()
        .iter()
        .map(|column| (column.name, Cow::Borrowed(column.name), column.data_type));
    let displayed = display_stored(own.chain(system), text).ok()?;
    Some(RowJson::from_rendered(displayed))
}

/// A row of `row_to_json` as reads show these columns, each by its name, its name in SQL and its type; columns that it
/// lacks are null.
pub(super) fn display_stored<'c, N: AsRef<str>>(
    columns: impl Iterator<Item = (&'c str, N, DataType)>,
    text: &str,
) -> Result<String, serde_json::Error> {
    let values: StoredValues<'_> = serde_json::from_str(text)?;
    let mut displayed = Vec::with_capacity(text.len());
    for (index, (name, sql_name, data_type)) in columns.enumerate() {
        let value = values.get(index, sql_name.as_ref()).unwrap_or("null");
        displayed.push(if displayed.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut displayed, name)?;
        displayed.push(b':');
        match data_type {
            // Sessions are in UTC.
            DataType::Datetime => match value.strip_suffix("+00:00\"") {
                Some(time) => {
                    displayed.extend_from_slice(time.as_bytes());
                    displayed.extend_from_slice(b"Z\"");
                }
                None => displayed.extend_from_slice(value.as_bytes()),
            },
            // Numbers read back exactly. What JSON has no number for is text here, and null in reads.
            DataType::Float => match value.parse() {
                Ok(number) => write_float(&mut displayed, number),
                Err(_) => displayed.extend_from_slice(b"null"),
            },
            _ => displayed.extend_from_slice(value.as_bytes()),
        }
    }
    displayed.push(b'}');
    String::from_utf8(displayed).map_err(serde::de::Error::custom)
}

/// The values of a row's JSON, in its order.
struct StoredValues<'t>(Vec<(StoredName<'t>, &'t RawValue)>);

/// The name of a value, borrowed unless JSON escapes a part of it.
#[derive(Deserialize)]
struct StoredName<'t>(#[serde(borrow)] Cow<'t, str>);

impl StoredValues<'_> {
    /// The text of a value, which is probably the one at that index.
    fn get(&self, index: usize, name: &str) -> Option<&str> {
        let mut likely = self.0.get(index).into_iter().chain(&self.0);
        likely
            .find(|(known, _)| known.0 == name)
            .map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for StoredValues<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = StoredValues<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::with_capacity(16);
                while let Some(value) = map.next_entry()? {
                    values.push(value);
                }
                Ok(StoredValues(values))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A retained row as the ledger holds it.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    id: String,
    #[serde(borrow)]
    before: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
}

/// Rows as the text of a JSON array; `None` if there are none.
pub(super) fn to_json(rows: &[RowImage]) -> Option<String> {
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
pub(super) fn from_json(text: &str) -> Option<RowImage> {
    let stored: Stored<'_> = serde_json::from_str(text).ok()?;
    let row = |raw: Option<&RawValue>| raw.map(|raw| RowJson::from_rendered(raw.get().to_owned()));
    Some(RowImage {
        before: row(stored.before),
        after: row(stored.after),
        id: stored.id,
    })
}
