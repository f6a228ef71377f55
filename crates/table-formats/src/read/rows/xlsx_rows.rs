//! Rows of a workbook's sheet.

use std::collections::BTreeMap;

use labdata_domain::data::write::FileCell;

use super::RowSink;
use crate::read::{
    MAX_COLUMNS, ReadError, Source,
    xlsx::{CellValue, Place, each_cell, open_sheet},
};

/// Reads the rows of a sheet, of which the first row that is not blank names the columns.
pub(super) fn read_xlsx_rows(
    source: Box<dyn Source>,
    sheet: Option<&str>,
    max_rows: usize,
    sink: &mut dyn RowSink,
) -> Result<(), ReadError> {
    let (mut workbook, sheet) = open_sheet(source, sheet)?;
    let mut rows = SheetRows {
        sink,
        max_rows,
        header: BTreeMap::new(),
        header_row: None,
        table: None,
        rows: 0,
        has_ended: false,
    };
    each_cell(&mut workbook, &sheet, |place, value| rows.add(place, value))?;
    rows.finish()
}

/// The rows of a sheet as its cells come.
struct SheetRows<'s> {
    sink: &'s mut dyn RowSink,
    max_rows: usize,
    header: BTreeMap<u32, String>,
    header_row: Option<u32>,
    /// The table, once its header is complete.
    table: Option<Table>,
    rows: usize,
    has_ended: bool,
}

struct Table {
    /// First column of the header.
    first: u32,
    wanted: Vec<bool>,
    /// The row that is being read.
    row: Option<u32>,
    cells: Vec<Option<FileCell>>,
    /// The first cell of the row that is beside the table.
    beside: Option<u32>,
}

impl SheetRows<'_> {
    fn add(&mut self, place: Place, value: CellValue) -> Result<(), ReadError> {
        if self.has_ended {
            return Ok(());
        }
        // Blank cells are not passed on, so this is the first row that is not blank.
        if *self.header_row.get_or_insert(place.row) == place.row {
            self.header.insert(place.column, value.into_text());
            return Ok(());
        }
        if self.table.is_none() {
            self.begin()?;
        }
        if self
            .table
            .as_ref()
            .is_some_and(|table| table.row != Some(place.row))
        {
            self.end_row();
            if self.has_ended {
                return Ok(());
            }
            if self.rows == self.max_rows {
                return Err(ReadError::TooManyRows(self.max_rows));
            }
            self.rows += 1;
        }
        let Some(table) = &mut self.table else {
            return Ok(());
        };
        table.row = Some(place.row);
        let index = place.column.checked_sub(table.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| Some((table.wanted.get(index)?, table.cells.get_mut(index)?)))
        {
            Some((true, cell)) => *cell = Some(value.into()),
            Some((false, _)) => {}
            None => table.beside = table.beside.or(Some(place.column)),
        }
        Ok(())
    }

    /// Passes the header on.
    fn begin(&mut self) -> Result<(), ReadError> {
        let mut columns = self.header.keys();
        let first = columns.next().copied().ok_or(ReadError::NoHeader)?;
        let last = columns.next_back().copied().unwrap_or(first);
        let count = usize::try_from(last - first).unwrap_or(usize::MAX);
        if count >= MAX_COLUMNS {
            return Err(ReadError::TooManyColumns(count.saturating_add(1)));
        }
        let names: Vec<String> = (first..=last)
            .zip(1..)
            .map(|(column, number)| {
                let name = self.header.get(&column).map(|name| name.trim());
                let name = name.filter(|name| !name.is_empty());
                name.map_or_else(|| format!("column_{number}"), str::to_owned)
            })
            .collect();
        match self.sink.header(&names) {
            Some(wanted) => {
                self.table = Some(Table {
                    first,
                    wanted,
                    row: None,
                    cells: vec![None; names.len()],
                    beside: None,
                });
            }
            None => self.has_ended = true,
        }
        Ok(())
    }

    /// Passes the row on that was read.
    fn end_row(&mut self) {
        let Some(table) = &mut self.table else {
            return;
        };
        let Some(row) = table.row.take() else {
            return;
        };
        let line = u64::from(row) + 1;
        if let Some(column) = table.beside.take() {
            let column = u64::from(column) + 1;
            self.sink
                .refused(line, &ReadError::Unnamed { row: line, column });
        } else if !self.sink.row(line, &mut table.cells) {
            self.has_ended = true;
        }
        // The sink may leave some, and absent cells of the next row must be blank.
        table.cells.fill(None);
    }

    fn finish(mut self) -> Result<(), ReadError> {
        // A sheet with a header only: no cell below it has begun the table.
        if self.table.is_none() && !self.has_ended {
            self.begin()?;
        }
        self.end_row();
        Ok(())
    }
}
