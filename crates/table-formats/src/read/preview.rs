//! The first rows of a table, and counts of its rows, or of those in the head of a large file.

use labdata_domain::{data::write::FileCell, models::preview_cell};
use serde_json::{Value, json};

use super::{Doubt, ReadColumn, ReadError, ReadTable, Reading, Sheet};

/// Number of examples of a column.
const EXAMPLES: usize = 3;

/// A table with its first rows. Of a large file only the head is read.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// Reading of the table.
    pub reading: Reading,
    /// The columns, in order.
    pub columns: Vec<PreviewedColumn>,
    /// Number of rows of the whole table, if it is known.
    pub row_count: Option<usize>,
    /// Number of rows that were read: doubts, types and counts of nulls are those of these rows.
    pub rows_read: usize,
    /// The first rows, each with one value per column. Long texts are cut.
    pub rows: Vec<Vec<Value>>,
    /// The sheets of a workbook.
    pub sheets: Option<Vec<Sheet>>,
    /// Points that an import would have to guess, or refuses.
    pub doubts: Vec<Doubt>,
}

/// Column of a table.
#[derive(Clone, Debug)]
pub struct PreviewedColumn {
    /// Header, name, type and unit.
    pub column: ReadColumn,
    /// Number of its nulls.
    pub nulls: u64,
    /// Its first different values.
    pub examples: Vec<Value>,
}

/// Reads a table, or its head.
pub(super) fn summarize(
    table: &mut ReadTable,
    displayed_rows: usize,
) -> Result<TableSummary, ReadError> {
    let mut columns: Vec<PreviewedColumn> = table
        .columns()
        .iter()
        .map(|column| PreviewedColumn {
            column: column.clone(),
            nulls: 0,
            examples: Vec::new(),
        })
        .collect();
    let mut rows = Vec::new();
    let (extent, width) = (table.extent(), table.columns().len());
    let mut rows_read = 0;
    // A file that types its columns has a head only here: it is not surveyed.
    while !extent.ends_at(rows_read * width, 0) {
        let Some(row) = table.next_row()? else {
            break;
        };
        rows_read += 1;
        let is_displayed = rows.len() < displayed_rows;
        let mut displayed = Vec::new();
        for (cell, column) in row.cells.iter().zip(&mut columns) {
            column.nulls += u64::from(cell.is_none());
            let needs_example = column.examples.len() < EXAMPLES && cell.is_some();
            if !is_displayed && !needs_example {
                continue;
            }
            let value = cell.as_ref().map_or(Value::Null, value_of);
            let value = preview_cell(value, column.column.data_type);
            if needs_example && !column.examples.contains(&value) {
                column.examples.push(value.clone());
            }
            displayed.push(value);
        }
        if is_displayed {
            rows.push(displayed);
        }
    }
    Ok(TableSummary {
        reading: table.reading().clone(),
        columns,
        row_count: (!table.is_cut()).then(|| table.row_count()),
        rows_read,
        rows,
        sheets: table.sheets().map(<[Sheet]>::to_vec),
        doubts: table.doubts().to_vec(),
    })
}

/// The value of a cell as JSON.
fn value_of(cell: &FileCell) -> Value {
    match cell {
        FileCell::Boolean(flag) => json!(flag),
        FileCell::Integer(number) => json!(number),
        FileCell::Float(number) => json!(number),
        FileCell::Text(text) => json!(text),
        FileCell::Date(_)
        | FileCell::LocalTime(_)
        | FileCell::Instant(_)
        | FileCell::UnreadDate(_)
        | FileCell::InexactNumber(_) => {
            json!(cell.to_string())
        }
    }
}
