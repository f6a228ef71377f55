//! Excel workbooks.

mod archive;
mod cell;
mod format;
mod packed;

use std::{
    collections::{BTreeMap, HashSet},
    io::BufReader,
    panic::{AssertUnwindSafe, catch_unwind},
};

use calamine::{
    DataRef, Dimensions, Reader as _, SheetType, SheetVisible, Xlsx, XlsxCellReader, XlsxError,
};

use self::{
    archive::{ArchiveContent, content_of},
    cell::{CellFormat, CellValue},
    packed::PackedCells,
};
use super::{
    ReadError, Source,
    head::Extent,
    open::Sheet,
    raw::{RawCell, RawRow, RowSource},
};

type Workbook = Xlsx<BufReader<Box<dyn Source>>>;

/// Position of a cell; row and column start at 0.
type CellPosition = (u32, u32);

/// The rows of a sheet, its name, and all sheets.
type OpenedSheet = (Box<dyn RowSource>, String, Vec<Sheet>);

/// Opens a workbook. `sheet` is a name or a number; the first visible sheet with values unless given.
pub(super) fn open_sheet_rows(
    source: Box<dyn Source>,
    sheet: Option<&str>,
    extent: Extent,
) -> Result<OpenedSheet, ReadError> {
    // The library may panic over a damaged file.
    let opened = catch_unwind(AssertUnwindSafe(|| open(source, sheet, extent)));
    let (rows, name, sheets) = opened.unwrap_or(Err(ReadError::Damaged))?;
    Ok((Box::new(rows), name, sheets))
}

fn open(
    mut source: Box<dyn Source>,
    sheet: Option<&str>,
    extent: Extent,
) -> Result<(SheetRows, String, Vec<Sheet>), ReadError> {
    let content = content_of(&mut *source)?;
    source.rewind()?;
    let mut workbook: Workbook =
        Xlsx::new(BufReader::new(source)).map_err(|error| match error {
            XlsxError::Io(error) => ReadError::Source(error),
            _ => ReadError::NotWorkbook,
        })?;
    let sheets = workbook.sheets_metadata().iter();
    let names: Vec<(String, bool)> = sheets
        // Sheets of charts have no cells.
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible))
        .collect();
    let mut sheets = Vec::new();
    for (name, is_visible) in &names {
        let (rows, columns) = size_of(&mut workbook, name)?;
        sheets.push(Sheet {
            name: name.clone(),
            is_visible: *is_visible,
            rows,
            columns,
        });
    }
    let found = match sheet {
        None => sheets
            .iter()
            .find(|sheet| sheet.is_visible && sheet.rows > 0),
        Some(wanted) => {
            let by_number = || {
                let number: usize = wanted.parse().ok()?;
                sheets.get(number.checked_sub(1)?)
            };
            let by_name = sheets.iter().find(|sheet| sheet.name == wanted);
            // A sheet may be called `2`.
            by_name.or_else(by_number)
        }
    };
    let name = match (found, sheet) {
        (Some(found), _) => found.name.clone(),
        (None, None) => {
            let hidden = sheets.iter().filter(|sheet| sheet.rows > 0);
            let hidden: Vec<String> = hidden.map(|sheet| sheet.name.clone()).collect();
            return Err(if hidden.is_empty() {
                ReadError::NoHeader
            } else {
                ReadError::OnlyHidden(super::listed(&hidden))
            });
        }
        (None, Some(sheet)) => {
            let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
            return Err(ReadError::unknown_sheet(sheet, &names));
        }
    };
    let rows = match read_sheet(&mut workbook, &name, content, None, extent) {
        // Only a second pass knows where the cell is; books without such cells are spared it.
        Err(SheetError::UnknownError) => {
            let positions = positions(&mut workbook, &name)?;
            read_sheet(&mut workbook, &name, content, Some(&positions), extent)
        }
        read => read,
    };
    let (rows, is_cut) = rows.map_err(|error| match error {
        SheetError::Read(error) => error,
        SheetError::UnknownError => ReadError::Damaged,
    })?;
    let columns = rows.values().filter_map(|row| row.cells.last_column());
    // The declared size may be wrong; that of the sheet that was read is now known.
    if let Some(sheet) = sheets
        .iter_mut()
        .find(|sheet| sheet.name == name && !is_cut)
    {
        let last = rows.keys().next_back().map_or(0, |last| last + 1);
        sheet.rows = last.into();
        sheet.columns = columns.max().map_or(0, |last| last + 1).into();
    }
    let rows = SheetRows {
        rows: rows.into_iter().collect(),
        index: 0,
        is_cut,
    };
    Ok((rows, name, sheets))
}

/// Returns the number of rows and columns that a sheet declares, or has up to its first value; zero
/// for a sheet without values.
fn size_of(workbook: &mut Workbook, sheet: &str) -> Result<(u64, u64), ReadError> {
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(damaged)?;
    let declared = cells.dimensions().end;
    loop {
        let cell = match cells.next_cell() {
            Ok(Some(cell)) => cell,
            Ok(None) => return Ok((0, 0)),
            // An error that the library does not know is a value.
            Err(XlsxError::CellError(_)) => {
                return Ok((u64::from(declared.0) + 1, u64::from(declared.1) + 1));
            }
            Err(error) => return Err(damaged(error)),
        };
        if CellValue::of(cell.get_value(), &CellFormat::default()).is_some() {
            let (row, column) = cell.get_position();
            let rows = declared.0.max(row);
            let columns = declared.1.max(column);
            return Ok((u64::from(rows) + 1, u64::from(columns) + 1));
        }
    }
}

/// Why a sheet is not read.
enum SheetError {
    Read(ReadError),
    /// A cell has an error that the library does not know, such as `#SPILL!`: it does not return the
    /// position of that cell, nor those behind it.
    UnknownError,
}

impl From<ReadError> for SheetError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Positions of all cells of a sheet, in its order.
fn positions(workbook: &mut Workbook, sheet: &str) -> Result<Vec<CellPosition>, ReadError> {
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(damaged)?;
    let mut found = Vec::new();
    // Every cell, with its formula if it has one; values are not read.
    while let Some(cell) = cells.next_formula().map_err(damaged)? {
        found.push(cell.get_position());
    }
    Ok(found)
}

/// Row of a sheet.
#[derive(Debug, Default)]
struct SheetRow {
    cells: PackedCells,
    is_title: bool,
}

type Rows = BTreeMap<u32, SheetRow>;

fn read_sheet(
    workbook: &mut Workbook,
    sheet: &str,
    content: ArchiveContent,
    positions: Option<&[CellPosition]>,
    extent: Extent,
) -> Result<(Rows, bool), SheetError> {
    // Each of both reads the sheet once more.
    let formulas = if content.has_formulas {
        formulas_without_value(workbook, sheet, positions, extent)?
    } else {
        HashSet::new()
    };
    let merged = if content.has_merged_cells {
        workbook.merge_cells_by_sheet_name(sheet).map_err(damaged)?
    } else {
        Vec::new()
    };
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(damaged)?;
    let formats: Vec<CellFormat> = cells
        .styles()
        .iter()
        .map(|style| match style.number_format.as_ref() {
            Some(format) => CellFormat::of(&format.format_code),
            None => CellFormat::default(),
        })
        .collect();
    let mut rows = Rows::new();
    let mut last: Option<CellPosition> = None;
    let mut is_cut = false;
    for index in 0.. {
        let known = positions
            .and_then(|positions| positions.get(index))
            .copied();
        let Some((position, value)) = next_cell(&mut cells, known, &formats)? else {
            break;
        };
        // Between two rows, so that the last one is whole.
        if extent.ends_at_workbook_cell(index) && last.is_some_and(|(row, _)| row < position.0) {
            is_cut = true;
            break;
        }
        let value = match value {
            None if formulas.contains(&position) => CellValue::Formula,
            // Formatted blank cells do not count.
            None => continue,
            Some(value) => value,
        };
        // Cells out of order, or repeated, are damage.
        if last.is_some_and(|last| last >= position) {
            return Err(ReadError::Damaged.into());
        }
        let (row, column) = position;
        // The sheet is in memory as a whole, so a complete row holds no more than it has.
        if let Some((before, _)) = last.filter(|(before, _)| *before < row)
            && let Some(complete) = rows.get_mut(&before)
        {
            complete.cells.shrink_to_fit();
        }
        last = Some(position);
        rows.entry(row).or_default().cells.push(column, &value);
    }
    for region in merged {
        merge(&mut rows, region);
    }
    Ok((rows, is_cut))
}

/// Reads the next cell of a sheet: its position, which may be known, and its value if it has one.
fn next_cell(
    cells: &mut XlsxCellReader<'_, BufReader<Box<dyn Source>>>,
    known: Option<CellPosition>,
    formats: &[CellFormat],
) -> Result<Option<(CellPosition, Option<CellValue>)>, SheetError> {
    match cells.next_cell_with_style_id() {
        Ok(None) => Ok(None),
        Ok(Some((cell, style))) => {
            let plain = CellFormat::default();
            let value = CellValue::of(cell.get_value(), formats.get(style).unwrap_or(&plain));
            Ok(Some((known.unwrap_or(cell.get_position()), value)))
        }
        Err(XlsxError::CellError(text)) => {
            let position = known.ok_or(SheetError::UnknownError)?;
            Ok(Some((position, Some(CellValue::Error(text.into())))))
        }
        Err(error) => Err(damaged(error).into()),
    }
}

/// Positions of formulas whose value the file does not have, as of programs that do not calculate.
fn formulas_without_value(
    workbook: &mut Workbook,
    sheet: &str,
    positions: Option<&[CellPosition]>,
    extent: Extent,
) -> Result<HashSet<CellPosition>, SheetError> {
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(damaged)?;
    let mut found = HashSet::new();
    let mut last_row = None;
    for index in 0.. {
        let known = positions
            .and_then(|positions| positions.get(index))
            .copied();
        match cells.next_cell_with_formula_metadata() {
            Ok(None) => break,
            // The row in which the reading of the values ends.
            Ok(Some(cell))
                if extent.ends_at_workbook_cell(index) && last_row < Some(cell.pos.0) =>
            {
                break;
            }
            Ok(Some(cell)) => {
                last_row = Some(cell.pos.0);
                if cell.formula.is_some() && matches!(cell.value, DataRef::Empty) {
                    found.insert(known.unwrap_or(cell.pos));
                }
            }
            // A cell with a value; without positions the reading of the values meets it as well.
            Err(XlsxError::CellError(_)) => {}
            Err(error) => return Err(damaged(error).into()),
        }
    }
    Ok(found)
}

/// Gives all cells of a merged region the value that it shows, also in place of values that lie hidden under it. A row
/// of nothing but a cell over several columns is a title.
fn merge(rows: &mut Rows, region: Dimensions) {
    let ((first_row, first_column), (last_row, last_column)) = (region.start, region.end);
    let is_inside = |column: u32| (first_column..=last_column).contains(&column);
    let mut value = None;
    if let Some(row) = rows.get_mut(&first_row) {
        let cells = row.cells.unpacked();
        let first = cells.iter().find(|(column, _)| *column == first_column);
        value = first.map(|(_, value)| value.clone());
        row.is_title |= value.is_some()
            && last_column > first_column
            && cells.iter().all(|(column, _)| is_inside(*column));
    }
    let is_title = rows.get(&first_row).is_some_and(|row| row.is_title);
    // A region may reach to the end of the sheet; the table ends with the last value.
    let end = rows.keys().next_back().copied().unwrap_or(first_row);
    for number in first_row..=last_row.min(end) {
        let columns = match &value {
            Some(_) if !is_title => first_column..last_column.saturating_add(1),
            Some(_) if number == first_row => first_column..first_column.saturating_add(1),
            _ => 0..0,
        };
        if columns.is_empty() && !rows.contains_key(&number) {
            continue;
        }
        let row = rows.entry(number).or_default();
        let cells = row.cells.unpacked();
        let shown = columns.filter_map(|column| Some((column, value.clone()?)));
        let before = cells.iter().filter(|(column, _)| *column < first_column);
        let after = cells.iter().filter(|(column, _)| *column > last_column);
        row.cells = before.cloned().chain(shown).chain(after.cloned()).collect();
        if row.cells.last_column().is_none() {
            rows.remove(&number);
        }
    }
}

fn damaged(error: XlsxError) -> ReadError {
    match error {
        XlsxError::Io(error) => error.into(),
        _ => ReadError::Damaged,
    }
}

/// Rows of a sheet, in memory.
struct SheetRows {
    rows: Vec<(u32, SheetRow)>,
    index: usize,
    is_cut: bool,
}

impl RowSource for SheetRows {
    fn next(&mut self, row: &mut RawRow) -> Result<bool, ReadError> {
        row.clear();
        let Some((number, found)) = self.rows.get(self.index) else {
            return Ok(false);
        };
        self.index += 1;
        row.line = u64::from(*number) + 1;
        row.is_title = found.is_title;
        for (column, value) in found.cells.iter() {
            let column = usize::try_from(column).unwrap_or(usize::MAX);
            // Workbooks leave blank cells out.
            row.cells.resize(column, RawCell::Blank);
            let cell = value.push_to(row);
            row.cells.push(cell);
        }
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.index = 0;
        Ok(())
    }

    fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn has_field_counts(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) mod tests;
