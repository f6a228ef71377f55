//! The body of a data write.

use labdata_domain::data::write::{
    Mode, OnMatch, Rows, SeriesValues, SeriesWrite, TableWrite, WriteRequest, cell::Cell,
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::write_stream;
use crate::http::shape::{
    Fields, Kind, Place, Shape,
    readers::{boolean, choice, list, shape, text},
};

/// The body of a data write, as it is documented.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "documents the body, which is read straight into columns"
)]
pub struct DataWriteBody {
    /// Table writes, applied in order; at most 10,000 rows across all of them.
    tables: Option<Vec<TableWriteBody>>,
    /// Series, applied after them; at most 250,000 values across all of them.
    series: Option<Vec<SeriesWriteBody>>,
    /// The execution to record the write under; when omitted one is created, and completed.
    job_execution_id: Option<String>,
    /// The job of a created execution; `Off-Platform Manual Job` unless given.
    job_name: Option<String>,
    /// Do everything, then roll back.
    #[schema(required = false)]
    dry_run: bool,
    /// Answer with the written rows.
    #[schema(required = false)]
    return_rows: bool,
}

/// Rows for one table.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "documents the body, which is read straight into columns"
)]
pub struct TableWriteBody {
    /// One of the organization's tables, or a core table.
    table: String,
    /// Maps from column names to values; `_ref` gives a row a label. A reference is an id, an
    /// `@label` of an earlier row, or a lookup object.
    #[schema(value_type = Vec<Object>)]
    rows: Vec<Map<String, Value>>,
    /// `insert` (unless given), `upsert`, `update` or `delete`.
    #[schema(value_type = Option<String>, example = "insert")]
    mode: Mode,
    /// Columns that identify an existing row; the primary key unless given.
    key: Option<Vec<String>>,
    /// For delete: also delete rows of other tables that reference the deleted ones.
    #[schema(required = false)]
    cascade: bool,
    /// `overwrite` (unless given) or `fill_missing`.
    #[schema(value_type = Option<String>, example = "overwrite")]
    on_match: OnMatch,
}

/// A series for one parent row; it replaces the one that the parent has.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "documents the body, which is read straight into columns"
)]
pub struct SeriesWriteBody {
    /// The raw table.
    table: String,
    /// The parent row: an id, an `@label` or a lookup object.
    #[schema(value_type = Value)]
    parent: Cell,
    /// Lists of values by column, all of one length, one value per point.
    #[schema(value_type = Object)]
    columns: Map<String, Value>,
    /// Which reference points at the parent; required where the table has several.
    parent_column: Option<String>,
}

/// The body of `POST /api/v1/data/write`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteBody {
    /// Rows and series.
    pub request: WriteRequest,
    /// The execution to record the write under.
    pub job_execution_id: Option<String>,
    /// The job of a created execution.
    pub job_name: Option<String>,
}

impl WriteBody {
    /// Reads a body that fits; `None` sends it to the reader that says what does not.
    #[must_use]
    pub fn stream(body: &[u8]) -> Option<Self> {
        write_stream::read(body).ok()
    }
}

impl Shape for WriteBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let tables = fields.nullable("tables", list(shape::<TableBody>()));
        let series = fields.nullable("series", list(shape::<SeriesBody>()));
        let job_execution_id = fields.nullable("job_execution_id", text(..));
        let job_name = fields.nullable("job_name", text(..));
        let dry_run = fields.or("dry_run", false, boolean());
        let return_rows = fields.or("return_rows", false, boolean());
        Some(Self {
            request: WriteRequest {
                tables: tables?
                    .unwrap_or_default()
                    .into_iter()
                    .map(|table| table.0)
                    .collect(),
                series: series?
                    .unwrap_or_default()
                    .into_iter()
                    .map(|series| series.0)
                    .collect(),
                dry_run: dry_run?,
                return_rows: return_rows?,
            },
            job_execution_id: job_execution_id?,
            job_name: job_name?,
        })
    }
}

struct TableBody(TableWrite);

impl Shape for TableBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let table = fields.required("table", text(..));
        let rows = fields.required("rows", list(row));
        let mode = fields.or("mode", Mode::default(), choice(&MODES));
        let key = fields.nullable("key", list(text(..)));
        let cascade = fields.or("cascade", false, boolean());
        let on_match = fields.or("on_match", OnMatch::default(), choice(&ON_MATCH));
        let (table, mode, key, cascade, on_match) = (table?, mode?, key?, cascade?, on_match?);
        Some(Self(TableWrite {
            table,
            rows: columns_of(rows?),
            mode,
            key,
            cascade,
            on_match,
        }))
    }
}

const MODES: [(&str, Mode); 4] = [
    ("insert", Mode::Insert),
    ("upsert", Mode::Upsert),
    ("update", Mode::Update),
    ("delete", Mode::Delete),
];

const ON_MATCH: [(&str, OnMatch); 2] = [
    ("overwrite", OnMatch::Overwrite),
    ("fill_missing", OnMatch::FillMissing),
];

fn row(value: Value, place: &Place<'_>) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => place.refuse(Kind::dict_type()),
    }
}

fn columns_of(maps: Vec<Map<String, Value>>) -> Rows {
    let mut rows = Rows::default();
    for map in maps {
        rows.begin_row();
        for (position, (name, value)) in map.into_iter().enumerate() {
            rows.set(position, &name, Cell::from(value));
        }
    }
    rows
}

struct SeriesBody(SeriesWrite);

impl Shape for SeriesBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let table = fields.required("table", text(..));
        let parent = fields.required("parent", parent);
        let columns = fields.required("columns", columns);
        let parent_column = fields.nullable("parent_column", text(..));
        Some(Self(SeriesWrite {
            table: table?,
            parent: parent?,
            columns: columns?,
            parent_column: parent_column?,
        }))
    }
}

fn parent(value: Value, place: &Place<'_>) -> Option<Cell> {
    match Cell::from(value) {
        cell @ (Cell::Text(_) | Cell::Integer(_) | Cell::Object(_)) => Some(cell),
        _ => place.refuse(Kind::string_type()),
    }
}

fn columns(value: Value, place: &Place<'_>) -> Option<Vec<(String, SeriesValues)>> {
    let Value::Object(map) = value else {
        return place.refuse(Kind::dict_type());
    };
    let read: Vec<Option<(String, SeriesValues)>> = map
        .into_iter()
        .map(|(name, value)| {
            let Value::Array(values) = value else {
                return place.field(&name).refuse(Kind::list_type());
            };
            let mut column = SeriesValues::default();
            for value in values {
                column.push(Cell::from(value));
            }
            Some((name, column))
        })
        .collect();
    read.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::shape::Problems;

    fn slow(body: &Value) -> Option<WriteBody> {
        let problems = Problems::default();
        WriteBody::read(body.clone(), &Place::root("body", &problems))
    }

    #[test]
    fn both_readers_understand_a_body_alike() {
        for body in [
            json!({}),
            json!({ "tables": null, "series": [], "dry_run": true }),
            json!({ "tables": [{ "table": "sample", "mode": "upsert", "key": ["name"], "rows": [
                { "_ref": "a", "name": "x", "n": 1, "f": 0.5, "b": true, "z": null, "j": { "k": [1] } },
                { "name": "y", "l": [1, "a"], "big": 18_446_744_073_709_551_615_u64 }, {}] }] }),
            json!({ "series": [{ "table": "curve", "parent": { "name": "x" }, "parent_column": "s",
                "columns": { "a": [1, 2, null], "b": [1, 0.5, "x"], "c": [] } }], "return_rows": true }),
        ] {
            let streamed = WriteBody::stream(body.to_string().as_bytes());
            assert!(streamed.is_some(), "{body}");
            assert_eq!(streamed.map(sorted), slow(&body).map(sorted));
        }
    }

    /// One table's columns: their names and cells.
    type Columns = Vec<(String, Vec<Cell>)>;

    /// Maps of JSON values are sorted by key; the stream keeps the body's order.
    fn sorted(mut body: WriteBody) -> (Vec<Columns>, WriteBody) {
        let rows = body
            .request
            .tables
            .iter_mut()
            .map(|table| {
                let mut columns: Vec<(String, Vec<Cell>)> = std::mem::take(&mut table.rows)
                    .columns()
                    .map(|column| (column.name.to_owned(), column.cells().cloned().collect()))
                    .collect();
                columns.sort_by(|a, b| a.0.cmp(&b.0));
                columns
            })
            .collect();
        for series in &mut body.request.series {
            series.columns.sort_by(|a, b| a.0.cmp(&b.0));
        }
        (rows, body)
    }

    #[test]
    fn both_readers_refuse_the_same_shapes() {
        for body in [
            json!([]),
            json!({ "tables": {} }),
            json!({ "tables": [{ "rows": [] }] }),
            json!({ "tables": [{ "table": "x", "rows": [1] }] }),
            json!({ "tables": [{ "table": "x", "rows": [], "mode": "merge" }] }),
            json!({ "tables": [{ "table": "x", "rows": [], "key": [1] }] }),
            json!({ "series": [{ "table": "x", "parent": 1.5, "columns": {} }] }),
            json!({ "series": [{ "table": "x", "parent": "a", "columns": { "v": 1 } }] }),
            json!({ "dry_run": "perhaps" }),
        ] {
            assert_eq!(
                WriteBody::stream(body.to_string().as_bytes()),
                None,
                "{body}"
            );
            assert_eq!(slow(&body), None, "{body}");
        }
    }
}
