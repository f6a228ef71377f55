//! Rows of a Parquet file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use labdata_domain::scalar::{DataType, Scalar, Values};

use super::{ParquetReader, column::Kind, open_parquet, pages::SharedFile};
use crate::read::{
    ReadError, Source,
    exact::is_exact_float,
    open::{TypedColumn, TypedTable},
    raw::{RawCell, RawRow, RowSource},
};

/// Opens a Parquet file; returns its rows, and the names and types of its columns.
pub(in crate::read) fn open_parquet_rows(
    source: Box<dyn Source>,
) -> Result<(Box<dyn RowSource>, TypedTable), ReadError> {
    guarded(|| {
        let mut reader = open_parquet(SharedFile::new(source)?)?;
        let names = reader.columns.iter().zip(&reader.kinds).zip(&reader.units);
        let mut columns: Vec<TypedColumn> = names
            .map(|(((name, data_type), kind), unit)| {
                let is_duration = matches!(kind, Kind::Duration(_));
                TypedColumn {
                    name: name.clone(),
                    data_type: *data_type,
                    is_local_time: matches!(kind, Kind::LocalTime(_) | Kind::LocalTime96),
                    is_duration,
                    // A duration is read as seconds, also with a note of another unit.
                    noted_unit: unit.clone().filter(|_| !is_duration),
                }
            })
            .collect();
        if reader
            .kinds
            .iter()
            .any(|kind| matches!(kind, Kind::WideDecimal(_)))
        {
            find_floats(&mut reader, &mut columns)?;
        }
        let rows = reader.rows;
        let rows_of = ParquetRows {
            reader: Some(reader),
            part: Vec::new(),
            index: 0,
            line: 0,
        };
        let source: Box<dyn RowSource> = Box::new(rows_of);
        Ok((source, TypedTable { columns, rows }))
    })
}

/// Makes columns of decimals floats if a float holds every number of theirs, for which it reads the
/// file: some writers declare the most digits there can be for any column.
fn find_floats(reader: &mut ParquetReader, columns: &mut [TypedColumn]) -> Result<(), ReadError> {
    let kinds = reader.kinds.clone();
    let mut are_floats: Vec<bool> = kinds
        .iter()
        .map(|kind| matches!(kind, Kind::WideDecimal(_)))
        .collect();
    while are_floats.contains(&true)
        && let Some(part) = reader.next_part()?
    {
        for (is_float, values) in are_floats.iter_mut().zip(&part) {
            if let (true, Values::Text(texts)) = (*is_float, values) {
                *is_float = texts.iter().flatten().all(|text| is_exact_float(text));
            }
        }
    }
    for (column, is_float) in columns.iter_mut().zip(are_floats) {
        if is_float {
            column.data_type = DataType::Float;
        }
    }
    reader.rewind();
    Ok(())
}

/// Does work in which a library may panic over a damaged file.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ReadError::Damaged))
}

struct ParquetRows {
    /// `None` once it has panicked.
    reader: Option<ParquetReader>,
    part: Vec<Values>,
    index: usize,
    line: u64,
}

impl RowSource for ParquetRows {
    fn next(&mut self, row: &mut RawRow) -> Result<bool, ReadError> {
        row.clear();
        while self
            .part
            .first()
            .is_none_or(|values| self.index >= values.len())
        {
            // A reader that panicked may be in any state, so it is put back after a success only.
            let mut reader = self.reader.take().ok_or(ReadError::Damaged)?;
            let part = guarded(|| reader.next_part())?;
            self.reader = Some(reader);
            let Some(part) = part else {
                return Ok(false);
            };
            self.part = part;
            self.index = 0;
        }
        self.line += 1;
        row.line = self.line;
        for values in &self.part {
            let cell = match values.get(self.index) {
                None => RawCell::Blank,
                Some(Scalar::Text(text)) => RawCell::Quoted(row.push_text(&text)),
                Some(Scalar::Integer(number)) => RawCell::Integer(number),
                Some(Scalar::Float(number)) => RawCell::Float(number),
                Some(Scalar::Boolean(flag)) => RawCell::Boolean(flag),
                Some(Scalar::Datetime(at)) => RawCell::Instant(at),
                Some(Scalar::Date(day)) => RawCell::Date(day),
                Some(Scalar::Uuid(id)) => RawCell::Quoted(row.push_text(&id.to_string())),
                Some(Scalar::Json(value)) => RawCell::Quoted(row.push_text(&value.to_string())),
            };
            row.cells.push(cell);
        }
        self.index += 1;
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        if let Some(reader) = &mut self.reader {
            reader.rewind();
        }
        self.part.clear();
        self.index = 0;
        self.line = 0;
        Ok(())
    }

    fn has_field_counts(&self) -> bool {
        true
    }
}
