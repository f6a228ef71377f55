//! Rows of Parquet files.

use labdata_domain::{
    data::write::FileCell,
    scalar::{Scalar, Values},
};

use super::RowSink;
use crate::read::{ReadError, Source, TableReader as _, parquet::open_parquet};

/// Reads the rows of a Parquet file.
pub(super) fn read_parquet_rows(
    source: Box<dyn Source>,
    max_rows: usize,
    sink: &mut dyn RowSink,
) -> Result<(), ReadError> {
    let mut reader = open_parquet(source, max_rows)?;
    let names: Vec<String> = reader
        .columns()
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    let Some(wanted) = sink.header(&names) else {
        return Ok(());
    };
    let mut cells: Vec<Option<FileCell>> = vec![None; names.len()];
    let mut line = 0;
    while let Some(part) = reader.next_part()? {
        for row in 0..part.first().map_or(0, Values::len) {
            line += 1;
            let values = part.iter().zip(&wanted);
            for (cell, (values, wanted)) in cells.iter_mut().zip(values) {
                let value = wanted.then(|| values.get(row)).flatten();
                *cell = value.and_then(cell_of);
            }
            if !sink.row(line, &mut cells) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The cell for a value; an empty text is blank, as in other files.
fn cell_of(value: Scalar) -> Option<FileCell> {
    match value {
        Scalar::Text(text) => (!text.is_empty()).then_some(FileCell::Text(text)),
        Scalar::Integer(number) => Some(FileCell::Integer(number)),
        Scalar::Float(number) => Some(FileCell::Float(number)),
        Scalar::Boolean(flag) => Some(FileCell::Boolean(flag)),
        Scalar::Datetime(at) => Some(FileCell::Instant(at)),
        Scalar::Date(date) => Some(FileCell::Date(date)),
        Scalar::Uuid(id) => Some(FileCell::Text(id.to_string())),
        Scalar::Json(value) => Some(FileCell::Text(value.to_string())),
    }
}
