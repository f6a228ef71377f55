//! Excel workbooks: the table on the first sheet.

mod archive;
mod cell;

use std::{collections::BTreeMap, io::BufReader, vec};

use calamine::{DataRef, Reader, SheetType, Xlsx, XlsxError};
use labdata_domain::scalar::{DataType, Values};

use self::{
    archive::{LIMITS, check_archive},
    cell::SheetColumn,
};
use super::{MAX_COLUMNS, ReadError, Source, TableReader};

pub(super) use self::cell::CellValue;

/// Maximum number of cells of a sheet. They are in memory while they are read.
const MAX_CELLS: usize = 5_000_000;

/// Maximum size of the texts of a sheet in bytes.
const MAX_TEXTS: usize = 128 << 20;

/// Number of rows of a part.
const PART_ROWS: usize = 8_192;

pub(super) type Workbook = Xlsx<BufReader<Box<dyn Source>>>;

/// Begins to read the table on a workbook's first sheet. Its first row that is not blank names the
/// columns.
///
/// Cells have types: a column of numbers is integer or float, one of dates date. Dates with a time
/// are texts, as they have no time zone. Texts stay texts unless all of a column are ISO 8601 dates.
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows.
pub(super) fn open_xlsx(
    source: Box<dyn Source>,
    max_rows: usize,
) -> Result<impl TableReader + use<>, ReadError> {
    let (mut workbook, sheet) = open_sheet(source, None)?;
    let mut survey = Survey::default();
    each_cell(&mut workbook, &sheet, |place, value| {
        survey.add(place, value)?;
        if survey.rows > max_rows {
            return Err(ReadError::TooManyRows(max_rows));
        }
        Ok(())
    })?;
    let table = survey.table()?;
    let types: Vec<DataType> = table.iter().map(|(_, data_type)| *data_type).collect();
    // The sheet is read twice, as types are known only after its last row.
    let mut parts = Parts::new(types, survey.first, survey.header_row);
    each_cell(&mut workbook, &sheet, |place, value| {
        parts.add(place, value)
    })?;
    Ok(SheetReader {
        columns: table,
        parts: parts.finish().into_iter(),
    })
}

/// Opens a workbook; returns it with the name of a sheet, the first one unless given.
pub(super) fn open_sheet(
    mut source: Box<dyn Source>,
    sheet: Option<&str>,
) -> Result<(Workbook, String), ReadError> {
    check_archive(&mut *source, LIMITS)?;
    source.rewind()?;
    let workbook: Workbook = Xlsx::new(BufReader::new(source)).map_err(|error| match error {
        XlsxError::Io(error) => ReadError::Source(error),
        _ => ReadError::NotWorkbook,
    })?;
    let sheets = workbook.sheets_metadata().iter();
    let names = sheets
        // Sheets of charts have no cells.
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| sheet.name.clone());
    let names: Vec<String> = names.collect();
    let found = match sheet {
        None => names.first(),
        Some(sheet) => names.iter().find(|name| *name == sheet),
    };
    match (found.cloned(), sheet) {
        (Some(found), _) => Ok((workbook, found)),
        (None, None) => Err(ReadError::NoHeader),
        (None, Some(sheet)) => Err(ReadError::unknown_sheet(sheet, &names)),
    }
}

struct SheetReader {
    columns: Vec<(String, DataType)>,
    parts: vec::IntoIter<Vec<Values>>,
}

impl TableReader for SheetReader {
    fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        Ok(self.parts.next())
    }
}

/// Position of a cell; row and column start at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) row: u32,
    pub(super) column: u32,
}

/// Calls a function for each cell of a sheet that has a value, in their order.
pub(super) fn each_cell(
    workbook: &mut Workbook,
    sheet: &str,
    mut work: impl FnMut(Place, CellValue) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(damaged)?;
    let (mut last, mut count, mut texts) = (None, 0, 0);
    while let Some(cell) = cells.next_cell().map_err(damaged)? {
        let (row, column) = cell.get_position();
        let place = Place { row, column };
        // Rows are built in order, so cells out of order, or repeated, are damage.
        if last.is_some_and(|last| last >= place) {
            return Err(ReadError::Damaged);
        }
        last = Some(place);
        count += 1;
        if let DataRef::String(text) = cell.get_value() {
            texts += text.len();
        } else if let DataRef::SharedString(text) = cell.get_value() {
            texts += text.len();
        }
        // A shared text counts for each cell, as it is copied into each.
        if count > MAX_CELLS || texts > MAX_TEXTS {
            return Err(ReadError::TooLarge);
        }
        if let Some(value) = CellValue::of(cell.get_value()) {
            work(place, value)?;
        }
    }
    Ok(())
}

fn damaged(error: XlsxError) -> ReadError {
    match error {
        XlsxError::Io(error) => error.into(),
        _ => ReadError::Damaged,
    }
}

/// What the first reading of a sheet finds.
#[derive(Default)]
struct Survey {
    header_row: Option<u32>,
    header: BTreeMap<u32, String>,
    /// First column of the header.
    first: u32,
    columns: Vec<SheetColumn>,
    last_row: Option<u32>,
    rows: usize,
}

impl Survey {
    fn add(&mut self, place: Place, value: CellValue) -> Result<(), ReadError> {
        let header_row = *self.header_row.get_or_insert(place.row);
        if place.row == header_row {
            self.header.insert(place.column, value.into_text());
            self.first = self.header.keys().next().copied().unwrap_or(0);
            return Ok(());
        }
        if self.columns.is_empty() {
            let last = self.header.keys().next_back().copied().unwrap_or(0);
            let count = usize::try_from(last - self.first).unwrap_or(usize::MAX);
            if count >= MAX_COLUMNS {
                return Err(ReadError::TooManyColumns(count.saturating_add(1)));
            }
            self.columns.resize_with(count + 1, SheetColumn::default);
        }
        if self.last_row.replace(place.row) != Some(place.row) {
            self.rows += 1;
        }
        let column = index_of(place, self.first).and_then(|index| self.columns.get_mut(index));
        let Some(column) = column else {
            return Err(ReadError::Unnamed {
                row: u64::from(place.row) + 1,
                column: u64::from(place.column) + 1,
            });
        };
        column.add(&value);
        Ok(())
    }

    /// Names and types of the columns.
    fn table(&self) -> Result<Vec<(String, DataType)>, ReadError> {
        let last = self.header.keys().next_back().ok_or(ReadError::NoHeader)?;
        let count = usize::try_from(last - self.first).unwrap_or(usize::MAX);
        if count >= MAX_COLUMNS {
            return Err(ReadError::TooManyColumns(count.saturating_add(1)));
        }
        let columns = (self.first..=*last).zip(1..);
        let columns = columns.map(|(column, number)| {
            let name = self.header.get(&column).map(|name| name.trim().to_owned());
            let name = name.filter(|name| !name.is_empty());
            let found = self.columns.get(number - 1);
            let data_type = found.map_or(DataType::Text, SheetColumn::data_type);
            (
                name.unwrap_or_else(|| format!("column_{number}")),
                data_type,
            )
        });
        Ok(columns.collect())
    }
}

fn index_of(place: Place, first: u32) -> Option<usize> {
    usize::try_from(place.column.checked_sub(first)?).ok()
}

/// Rows of the second reading.
struct Parts {
    types: Vec<DataType>,
    first: u32,
    header_row: Option<u32>,
    done: Vec<Vec<Values>>,
    part: Vec<Values>,
    rows: usize,
    last_row: Option<u32>,
}

impl Parts {
    fn new(types: Vec<DataType>, first: u32, header_row: Option<u32>) -> Self {
        Self {
            part: empty(&types),
            types,
            first,
            header_row,
            done: Vec::new(),
            rows: 0,
            last_row: None,
        }
    }

    fn add(&mut self, place: Place, value: CellValue) -> Result<(), ReadError> {
        if Some(place.row) == self.header_row {
            return Ok(());
        }
        if self.last_row.replace(place.row) != Some(place.row) {
            self.end_row();
            if self.rows == PART_ROWS {
                let part = std::mem::replace(&mut self.part, empty(&self.types));
                self.done.push(part);
                self.rows = 0;
            }
            self.rows += 1;
        }
        let index = index_of(place, self.first);
        let column = index.and_then(|index| self.part.get_mut(index));
        let values = column.ok_or(ReadError::Damaged)?;
        // Blank cells are not passed on, so their places in the column are filled here.
        while values.len() + 1 < self.rows {
            values.push_null();
        }
        value.push_to(values);
        Ok(())
    }

    /// Fills the row up with nulls.
    fn end_row(&mut self) {
        for values in &mut self.part {
            while values.len() < self.rows {
                values.push_null();
            }
        }
    }

    fn finish(mut self) -> Vec<Vec<Values>> {
        self.end_row();
        if self.rows > 0 {
            self.done.push(self.part);
        }
        self.done
    }
}

fn empty(types: &[DataType]) -> Vec<Values> {
    let types = types.iter();
    types
        .map(|data_type| Values::with_capacity(*data_type, 0))
        .collect()
}

#[cfg(test)]
mod tests;
