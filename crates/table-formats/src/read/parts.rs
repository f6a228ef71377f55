//! Rows as columns of values.

use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Scalar, Values},
};

use super::{PART_BYTES, PART_ROWS, ReadError, TableRow};

/// A table that is read row by row.
pub(super) trait RowReader {
    /// Types of the columns, in order.
    fn types(&self) -> Vec<DataType>;

    /// Reads the next row.
    fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError>;
}

/// Reads the next rows as columns of values: one vector per column, all of one length. `None` at the end.
pub(super) fn next_part(table: &mut impl RowReader) -> Result<Option<Vec<Values>>, ReadError> {
    let types = table.types();
    let mut part: Vec<Values> = types
        .iter()
        .map(|data_type| Values::with_capacity(*data_type, 0))
        .collect();
    let (mut rows, mut bytes) = (0, 0);
    while rows < PART_ROWS && bytes < PART_BYTES {
        let Some(row) = table.next_row()? else {
            break;
        };
        if let Some(problem) = row.problems.first() {
            return Err(ReadError::Row(problem.clone()));
        }
        let line = row.line;
        for ((values, cell), data_type) in part.iter_mut().zip(row.cells).zip(&types) {
            let value = match cell.take() {
                None => None,
                Some(cell) => Some(value_of(cell, *data_type, line)?),
            };
            bytes += match &value {
                Some(Scalar::Text(text)) => text.len() + 8,
                _ => 8,
            };
            values.push_or_null(value);
        }
        rows += 1;
    }
    Ok((rows > 0).then_some(part))
}

/// The value of a cell in a column whose type was found.
fn value_of(cell: FileCell, data_type: DataType, line: u64) -> Result<Scalar, ReadError> {
    match (data_type, cell) {
        (DataType::Text, FileCell::Text(text)) => Ok(Scalar::Text(text)),
        (_, cell) => cell
            .to_scalar(data_type)
            .map_err(|message| ReadError::Row(format!("row {line} {message}"))),
    }
}
