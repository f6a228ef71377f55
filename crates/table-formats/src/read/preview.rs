//! The first rows of a table, and counts of its rows, or of those in the head of a large file.

use labdata_domain::{data::write::FileCell, models::preview_cell, scalar::DataType};
use serde_json::Value;

use super::{
    Doubt, DoubtScope, ReadColumn, ReadError, ReadTable, Reading, Sheet,
    doubt::{MAX_ROW_DOUBTS, RowProblem},
};

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

impl PreviewedColumn {
    /// Counts the cell of a row, and returns its value if the row is displayed.
    fn add(&mut self, cell: Option<&FileCell>, is_displayed: bool) -> Option<Value> {
        self.nulls += u64::from(cell.is_none());
        let needs_example = self.examples.len() < EXAMPLES && cell.is_some();
        if !is_displayed && !needs_example {
            return None;
        }
        let data_type = self.column.data_type;
        let value = cell.map_or(Value::Null, |cell| value_of(cell, data_type));
        let value = preview_cell(value, data_type);
        if needs_example && !self.examples.contains(&value) {
            self.examples.push(value.clone());
        }
        Some(value)
    }
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
    let mut doubts = RowDoubts::new(table.doubts());
    let (extent, width) = (table.extent(), table.columns().len());
    let mut rows_read = 0;
    // A file that types its columns has a head only here: it is not surveyed.
    while !extent.ends_at(rows_read * width, 0) {
        let Some(row) = table.next_row()? else {
            break;
        };
        rows_read += 1;
        let (line, is_displayed) = (row.line, rows.len() < displayed_rows);
        let mut displayed = Vec::new();
        let mut unfit = Vec::new();
        for (cell, column) in row.cells.iter().zip(&mut columns) {
            unfit.extend(unfit_cell(line, cell.as_ref(), column));
            displayed.extend(column.add(cell.as_ref(), is_displayed));
        }
        if is_displayed {
            rows.push(displayed);
        }
        for problem in table.row_problems().iter().chain(&unfit) {
            doubts.add(line, problem);
        }
    }
    Ok(TableSummary {
        reading: table.reading().clone(),
        columns,
        row_count: (!table.is_cut()).then(|| table.row_count()),
        rows_read,
        rows,
        sheets: table.sheets().map(<[Sheet]>::to_vec),
        doubts: doubts.doubts,
    })
}

/// The doubts about a table, and those about its rows, which show when their cells are read.
struct RowDoubts {
    doubts: Vec<Doubt>,
    rows: usize,
}

impl RowDoubts {
    fn new(doubts: &[Doubt]) -> Self {
        let rows = doubts.iter().filter(|doubt| doubt.scope == DoubtScope::Row);
        Self {
            rows: rows.count(),
            doubts: doubts.to_vec(),
        }
    }

    fn add(&mut self, line: u64, problem: &RowProblem) {
        if self.rows >= MAX_ROW_DOUBTS {
            return;
        }
        let doubt = Doubt::row(line, problem.clone());
        // The first reading of the rows found some of them.
        let is_known = |known: &Doubt| known.path == doubt.path && known.code == doubt.code;
        if !self.doubts.iter().any(is_known) {
            self.rows += 1;
            self.doubts.push(doubt);
        }
    }
}

/// The problem of a cell that is no value of its column.
fn unfit_cell(line: u64, cell: Option<&FileCell>, column: &PreviewedColumn) -> Option<RowProblem> {
    let message = unfit_message(cell?, column.column.data_type)?;
    Some(RowProblem::unfit_cell(
        line,
        &column.column.header,
        &message,
    ))
}

/// Why a cell is no value of its column.
fn unfit_message(cell: &FileCell, data_type: DataType) -> Option<String> {
    match (cell, data_type) {
        (FileCell::Text(text), DataType::Text | DataType::String) if !text.contains('\0') => None,
        (FileCell::Integer(_), DataType::Integer) | (FileCell::Date(_), DataType::Date) => None,
        _ => cell.to_scalar(data_type).err(),
    }
}

/// The value of a cell as its column stores it; as the file has it, if it is none.
fn value_of(cell: &FileCell, data_type: DataType) -> Value {
    match cell.to_scalar(data_type) {
        Ok(scalar) => scalar.to_json(),
        Err(_) => Value::from(cell.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::json;

    use super::*;
    use crate::read::{ReadOptions, open_table};

    fn preview(text: &str, options: &Value) -> TableSummary {
        let options = ReadOptions::from_json(options.as_object().unwrap()).unwrap();
        let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
        summarize(&mut open_table(source, &options, 1_000).unwrap(), 50).unwrap()
    }

    fn codes(summary: &TableSummary) -> Vec<(&str, &str)> {
        let doubts = summary.doubts.iter();
        doubts
            .map(|doubt| (&*doubt.code, doubt.path.as_str()))
            .collect()
    }

    #[test]
    fn a_cell_that_an_import_refuses_is_a_doubt() {
        let zone = json!({"timezone": "Europe/Berlin"});
        let gap = preview("a,b\n2024-03-31 02:30,1\n2024-03-31 04:30,2\n", &zone);
        assert_eq!(codes(&gap), [("clock_change", "rows[2]")]);
        let fold = preview("a,b\n2024-10-27 04:30,1\n2024-10-27 02:30,2\n", &zone);
        assert_eq!(codes(&fold), [("clock_change", "rows[3]")]);
        assert_eq!(fold.rows[0][0], json!("2024-10-27T03:30:00Z"));
        // Found by the survey, so not twice.
        let long = preview("a,b\n1,2\n3,4,5\n", &json!({}));
        assert_eq!(codes(&long), [("long_row", "rows[3]")]);
        let many = format!("a,b\n{}", "2024-03-31 02:30,1\n".repeat(40));
        assert_eq!(codes(&preview(&many, &zone)).len(), MAX_ROW_DOUBTS);
    }

    #[test]
    fn values_are_those_that_a_table_stores() {
        let found = preview(
            "ok,n,x,d,t\ntrue,1,1.5,2024-01-01,a\nFALSE,2,2,2024-01-02,\"\"\n",
            &json!({}),
        );
        assert_eq!(
            found.rows[0],
            [
                json!(true),
                json!(1),
                json!(1.5),
                json!("2024-01-01"),
                json!("a")
            ]
        );
        assert_eq!(
            found.rows[1],
            [
                json!(false),
                json!(2),
                json!(2),
                json!("2024-01-02"),
                json!("")
            ]
        );
        assert_eq!(found.columns[0].examples, [true, false]);
        assert_eq!(codes(&found), []);
    }

    #[test]
    fn a_preview_has_its_rows_and_three_examples_of_each_column() {
        let text = "a,b\n1,x\n1,\n2,x\n3,\n4,y\n5,z\n";
        let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut table = open_table(source, &ReadOptions::default(), 1_000).unwrap();
        let found = summarize(&mut table, 2).unwrap();
        assert_eq!(
            found.rows,
            [[json!(1), json!("x")], [json!(1), Value::Null]]
        );
        assert_eq!((found.row_count, found.rows_read), (Some(6), 6));
        assert_eq!(found.columns[0].examples, [json!(1), json!(2), json!(3)]);
        assert_eq!(
            found.columns[1].examples,
            [json!("x"), json!("y"), json!("z")]
        );
        let nulls = found.columns.iter().map(|column| column.nulls);
        assert_eq!(nulls.collect::<Vec<_>>(), [0, 2]);
    }
}
