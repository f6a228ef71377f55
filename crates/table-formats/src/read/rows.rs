//! Reading of tables row by row, each with its line in the file, cells as the file has them.

mod delimited_rows;
mod parquet_rows;
mod xlsx_rows;

use labdata_domain::{data::write::FileCell, files::TableFormat};

use self::{
    delimited_rows::read_delimited_rows, parquet_rows::read_parquet_rows, xlsx_rows::read_xlsx_rows,
};
use super::{ReadError, Source, delimited::Delimiter, guarded::guarded};

/// Receiver of a table's rows.
pub trait RowSink {
    /// Takes the header; returns for each field whether its cells are wanted. `None` ends the reading.
    fn header(&mut self, names: &[String]) -> Option<Vec<bool>>;

    /// Takes a row: its line, and a cell per field of the header. Cells that are blank or not wanted are
    /// `None`. The sink may take the cells. Returns false to end the reading.
    fn row(&mut self, line: u64, cells: &mut [Option<FileCell>]) -> bool;

    /// Takes a line that is no row of the table, and why.
    fn refused(&mut self, line: u64, reason: &ReadError);
}

/// Reads the table of a file.
///
/// The line of a row is that on which it begins in a file of delimited fields, the row of the sheet in a
/// workbook, and the number of the row, starting at 1, in Parquet. `sheet` names the sheet of a
/// workbook, the first one unless given.
///
/// # Errors
/// [`ReadError`] if it is no table of that format, or has more than `max_rows` rows.
pub fn read_rows(
    source: Box<dyn Source>,
    format: TableFormat,
    sheet: Option<&str>,
    max_rows: usize,
    sink: &mut dyn RowSink,
) -> Result<(), ReadError> {
    if sheet.is_some() && format != TableFormat::Xlsx {
        return Err(ReadError::NoSheets);
    }
    match format {
        TableFormat::Csv => read_delimited_rows(source, Delimiter::Sniffed, max_rows, sink),
        TableFormat::Tsv => read_delimited_rows(source, Delimiter::Tab, max_rows, sink),
        TableFormat::Xlsx => guarded(|| read_xlsx_rows(source, sheet, max_rows, sink)),
        TableFormat::Parquet => guarded(|| read_parquet_rows(source, max_rows, sink)),
    }
}

#[cfg(test)]
mod tests;
