//! The body of `POST /api/v1/data/write`.

use labdata_domain::{
    data::write::{self as domain, Mode, OnMatch, Rows, SeriesValues, WriteRequest, cell::Cell},
    jobs::MAX_NAME_LENGTH,
    patterns,
};
use serde_json::json;

use self::columns::{ParentReader, SeriesColumnsReader};
use crate::{
    fields::{optional, or, required},
    readers::{Reader as _, boolean, choice_of, list, rows, shape, text},
    shape,
};

mod columns;

shape! {
    /// Rows and series to write in one transaction.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DataWriteBody {
        /// Table writes, applied in order; at most 10,000 rows across all of them.
        pub tables: Vec<domain::TableWrite> =
            or(json!([]), list(shape::<TableWrite>().map(domain::TableWrite::from))),
        /// Series, applied after the tables; at most 250,000 values across all of them.
        pub series: Vec<domain::SeriesWrite> =
            or(json!([]), list(shape::<SeriesWrite>().map(domain::SeriesWrite::from))),
        /// The execution to record the write under; when omitted one is created, and completed.
        pub job_execution_id: Option<String> = optional(text(..)),
        /// The job of a created execution; `Off-Platform Manual Job` unless given.
        pub job_name: Option<String> =
            optional(text(..).with("maxLength", MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE).example("Plate import")),
        /// Check and write everything, then roll back.
        pub dry_run: bool = or(false, boolean()),
        /// Return the written rows.
        pub return_rows: bool = or(false, boolean()),
    }
    example json!({
        "tables": [{
            "table": "sample",
            "rows": [
                {"_ref": "a1", "name": "A1", "strain": {"name": "BY4741"}, "volume": 150.0},
                {"_ref": "a2", "name": "A2", "strain": {"name": "BY4741"}, "volume": 150.0},
            ],
            "mode": "upsert",
            "key": ["name"],
        }],
        "series": [{
            "table": "growth_curve",
            "parent": "@a1",
            "columns": {"time": [0.0, 600.0, 1200.0], "od600": [0.08, 0.09, 0.12]},
        }],
        "job_name": "Plate import",
        "dry_run": true,
    });
    // The body, `tables`, a table, `rows`, a row, and a value that is a list or an object; in series likewise.
    json_values_at 6;
}

impl From<DataWriteBody> for WriteRequest {
    fn from(body: DataWriteBody) -> Self {
        Self {
            tables: body.tables,
            series: body.series,
            dry_run: body.dry_run,
            return_rows: body.return_rows,
            ..Self::default()
        }
    }
}

shape! {
    /// Rows for one table.
    pub struct TableWrite {
        /// One of the organization's tables, or a core table.
        table: String = required(text(..).example("sample")),
        /// Maps from column names to values; `_ref` gives a row a label. A row with `_if_updated_at`
        /// is refused unless the row that it matches was last changed then. A reference is an id, an
        /// `@label` of an earlier row, or a lookup object.
        rows: Rows = required(rows().with("maxItems", domain::MAX_ROWS)),
        /// Treatment of rows that exist and of rows that do not.
        mode: Mode = or(Mode::default().as_str(), choice_of(Mode::ALL, Mode::as_str)),
        /// Columns that identify an existing row; the primary key unless given.
        key: Option<Vec<String>> = optional(list(text(..))),
        /// For delete: also delete rows of other tables that reference the deleted ones.
        cascade: bool = or(false, boolean()),
        /// Treatment of the columns of a row that matches.
        on_match: OnMatch =
            or(OnMatch::default().as_str(), choice_of(OnMatch::ALL, OnMatch::as_str)),
    }
}

impl From<TableWrite> for domain::TableWrite {
    fn from(body: TableWrite) -> Self {
        Self {
            table: body.table,
            rows: body.rows,
            mode: body.mode,
            key: body.key,
            cascade: body.cascade,
            on_match: body.on_match,
            ..Self::default()
        }
    }
}

shape! {
    /// A series for one parent row; it replaces the one that the parent has.
    pub struct SeriesWrite {
        /// The raw table.
        table: String = required(text(..).example("growth_curve")),
        /// The parent row: an id, an `@label` or a lookup object.
        parent: Cell = required(ParentReader),
        /// Lists of values by column, all of one length, one value per point.
        columns: Vec<(String, SeriesValues)> = required(SeriesColumnsReader),
        /// The reference that points at the parent; required where the table has several.
        parent_column: Option<String> = optional(text(..)),
    }
}

impl From<SeriesWrite> for domain::SeriesWrite {
    fn from(body: SeriesWrite) -> Self {
        Self {
            table: body.table,
            parent: body.parent,
            columns: body.columns,
            parent_column: body.parent_column,
        }
    }
}

#[cfg(test)]
mod tests;
