//! Header of a table.

use serde_json::json;

use super::{Layout, opening::Opening};
use crate::read::{
    ReadError,
    above::table_above,
    cell_kind::{CellKind, kind_of},
    date::render_clock,
    doubt::{Doubt, RowProblem},
    exact::render_padded,
    header::{Header, duplicates, number_duplicates},
    layout::{HeadRow, find_header},
    open::TypedTable,
    raw::{RawCell, RawRow},
    target::ImportTarget,
    units::{is_unit, is_units_above, is_units_row},
};
use labdata_domain::data::write::FileCell;

/// Number of rows in which the header is looked for.
const HEAD_ROWS: usize = 200;

/// Size of these rows in bytes.
const HEAD_BYTES: usize = 4 << 20;

/// First rows of a file, or those from a given header on.
pub(super) struct Head {
    rows: Vec<HeadRow>,
    /// The last row with values above them.
    above: Option<RawRow>,
}

/// Header of a table, with the rows that were looked at.
pub(super) struct FoundHeader {
    pub(super) headers: Vec<Header>,
    pub(super) layout: Layout,
    /// Kinds of the cells of most of the first rows.
    pub(super) kinds: Vec<CellKind>,
}

impl Opening<'_> {
    /// Reads the first rows that are not blank, up to and behind the header.
    pub(super) fn head(&mut self) -> Result<Head, ReadError> {
        let (mut rows, mut bytes, mut follows_blank) = (Vec::new(), 0, false);
        let mut above = None;
        let mut row = RawRow::default();
        // Rows above a header that is given are no header.
        let from = self.given.header_row.unwrap_or(0);
        let mut last_line = None;
        while rows.len() < HEAD_ROWS && bytes < HEAD_BYTES && self.file.source.next(&mut row)? {
            if row.line < from {
                // They may have units, as where the header was found without being given.
                if !row.is_all_blank() {
                    above = Some(row.clone());
                }
                continue;
            }
            // A sheet does not have its blank rows.
            let is_behind_gap = !self.file.source.has_field_counts()
                && last_line.is_some_and(|last: u64| row.line > last + 1);
            if row.is_all_blank() {
                follows_blank = true;
                continue;
            }
            last_line = Some(row.line);
            bytes += row.text.len();
            rows.push(HeadRow {
                row: row.clone(),
                follows_blank: std::mem::take(&mut follows_blank) || is_behind_gap,
            });
        }
        self.file.source.rewind()?;
        Ok(Head { rows, above })
    }

    pub(super) fn header(
        &mut self,
        head: &Head,
        target: Option<&ImportTarget>,
    ) -> Result<FoundHeader, ReadError> {
        let rows = head.rows.as_slice();
        let index = match self.given.header_row {
            Some(0) => return self.no_header(rows),
            Some(line) => {
                // `head` begins at the given line, so another first row means that none begins there.
                let found = rows.first().filter(|row| row.row.line == line);
                found.map(|_| 0).ok_or(ReadError::NoSuchRow(line))?
            }
            None => self.find_header(rows, target)?,
        };
        let row = &rows.get(index).ok_or(ReadError::NoHeader)?.row;
        // The survey checks the rows below the header only.
        if let Some(fault) = row.fault {
            let problem = RowProblem::of_fault(fault, self.encoding());
            self.doubts.push(Doubt::row(row.line, problem));
        }
        let (first, width) = self.extent(row);
        let mut headers: Vec<Header> = (first..first + width)
            .map(|column| Header::of(&header_text(row, row.cell(column))))
            .collect();
        self.reading.options.header_row = Some(row.line);
        self.reading.lines_above = row.line.saturating_sub(1);
        let above = self.units(head, index, &mut headers, first);
        Ok(FoundHeader {
            kinds: usual_kinds(rows.get(index + 1..).unwrap_or_default(), first + width),
            headers,
            layout: Layout {
                above: above.unwrap_or(row.line),
                first,
                width,
                ..Layout::default()
            },
        })
    }

    /// Adds the units beside a header to it. Returns the line of those below it, which is no row.
    fn units(
        &mut self,
        head: &Head,
        header: usize,
        headers: &mut [Header],
        first: usize,
    ) -> Option<u64> {
        let rows = head.rows.as_slice();
        let above = match header.checked_sub(1) {
            Some(above) => rows.get(above).map(|above| &above.row),
            None => head.above.as_ref(),
        };
        if let Some(units) = above.filter(|above| is_units_above(above)) {
            self.read_units(units, headers, first);
        }
        let below = rows.get(header + 1)?;
        is_units_row(rows, header).then(|| {
            self.read_units(&below.row, headers, first);
            below.row.line
        })
    }

    /// Adds the units of a line above or below the header to it.
    fn read_units(&mut self, units: &RawRow, headers: &mut [Header], first: usize) {
        self.reading.units_row = Some(units.line);
        for (header, column) in headers.iter_mut().zip(first..) {
            let text = units.text_of(units.cell(column)).unwrap_or_default();
            let unit = text.trim().trim_matches(['(', ')', '[', ']']);
            if !unit.is_empty() && is_unit(text) {
                header.note_unit(unit);
            }
        }
    }

    fn find_header(
        &mut self,
        rows: &[HeadRow],
        target: Option<&ImportTarget>,
    ) -> Result<usize, ReadError> {
        let choice = find_header(rows);
        let index = choice.index.ok_or(ReadError::NoHeader)?;
        let mut may_be_header = choice.alternatives.clone();
        may_be_header.push(index);
        let line = |index: &usize| rows.get(*index).map(|row| row.row.line);
        if let Some(found) = target.and_then(|target| target.header(rows, &may_be_header)) {
            // The columns decide between two lines, but not that a whole table is left out.
            if let Some(above) = table_above(rows, found) {
                let above = line(&above.index).unwrap_or(0);
                self.doubt_header(line(&found).unwrap_or(0), &[above]);
            }
            return Ok(found);
        }
        let mut lines: Vec<u64> = choice.alternatives.iter().filter_map(line).collect();
        if choice.may_have_none {
            lines.push(0);
        }
        if !lines.is_empty() {
            self.doubt_header(line(&index).unwrap_or(0), &lines);
        }
        Ok(index)
    }

    /// The first column and the number of columns of a header.
    fn extent(&self, row: &RawRow) -> (usize, usize) {
        // A delimited line has a field for each column; the table of a sheet may begin in any column.
        if self.file.source.has_field_counts() {
            return (0, row.cells.len());
        }
        let first = row.cells.iter().position(|cell| !row.is_blank(*cell));
        let first = first.unwrap_or(0);
        (first, row.width().saturating_sub(first))
    }

    fn no_header(&mut self, rows: &[HeadRow]) -> Result<FoundHeader, ReadError> {
        let first_row = rows.first().ok_or(ReadError::NoHeader)?;
        // Without a header any of the rows may be the widest.
        let extents = || rows.iter().map(|row| self.extent(&row.row));
        let first = extents().map(|(first, _)| first).min().unwrap_or(0);
        let end = extents().map(|(first, width)| first + width).max();
        let width = end.unwrap_or(0).saturating_sub(first);
        self.reading.options.header_row = Some(0);
        let above = first_row.row.line.saturating_sub(1);
        self.reading.lines_above = above;
        Ok(FoundHeader {
            kinds: usual_kinds(rows, first + width),
            headers: (1..=width)
                .map(|number| Header::of(&format!("column_{number}")))
                .collect(),
            layout: Layout {
                above,
                first,
                width,
                ..Layout::default()
            },
        })
    }

    fn doubt_header(&mut self, line: u64, others: &[u64]) {
        let mut options = vec![json!({"header_row": line})];
        options.extend(others.iter().map(|other| json!({"header_row": other})));
        let message = if others == [0] {
            format!(
                "no line has names of columns only; line {line} may be the header, or the table \
                 may have none"
            )
        } else {
            let others: Vec<String> = others.iter().map(ToString::to_string).collect();
            format!(
                "line {line} may be the header, and so may line {}",
                others.join(", ")
            )
        };
        self.doubts
            .push(Doubt::table("header_row", "header_row", message, options));
    }

    pub(super) fn check_duplicates(&mut self, headers: &mut [Header]) {
        let found = duplicates(headers);
        if found.is_empty() {
            return;
        }
        if self.reading.options.numbers_duplicate_headers == Some(true) {
            number_duplicates(headers);
            return;
        }
        for (first, second) in found {
            let (Some(header), Some(other)) = (headers.get(first), headers.get(second)) else {
                continue;
            };
            let mut doubt = Doubt::table(
                &format!("columns.{}", header.text),
                "duplicate_header",
                format!(
                    "columns {} and {} have the same header \"{}\"",
                    first + 1,
                    second + 1,
                    other.text
                ),
                vec![json!({"duplicate_headers": "number"})],
            );
            doubt.columns = vec![first, second];
            self.doubts.push(doubt);
        }
    }
}

/// The header of a file that names and types its columns itself.
pub(super) fn typed_header(typed: &TypedTable) -> FoundHeader {
    let columns = typed.columns.iter();
    let headers: Vec<Header> = columns
        .map(|column| {
            let mut header = Header::of(&column.name);
            if let Some(unit) = &column.noted_unit {
                header.note_unit(unit.trim());
            }
            header
        })
        .collect();
    FoundHeader {
        kinds: Vec::new(),
        layout: Layout {
            width: headers.len(),
            ..Layout::default()
        },
        headers,
    }
}

/// The kind that most cells of each column have.
fn usual_kinds(rows: &[HeadRow], width: usize) -> Vec<CellKind> {
    (0..width)
        .map(|column| {
            let kinds = rows
                .iter()
                // A quotation may hold several rows, whose kinds are what is asked for.
                .filter(|row| !row.row.text.contains(['\n', '\r']))
                .map(|row| kind_of(&row.row, row.row.cell(column)));
            let (mut values, mut texts) = (0_usize, 0_usize);
            for kind in kinds {
                values += usize::from(kind == CellKind::Value);
                texts += usize::from(kind == CellKind::Text);
            }
            if values > texts {
                CellKind::Value
            } else {
                CellKind::Text
            }
        })
        .collect()
}

fn header_text(row: &RawRow, cell: RawCell) -> String {
    match cell {
        RawCell::Boolean(flag) => flag.to_string(),
        RawCell::Integer(number) => number.to_string(),
        RawCell::Float(number) | RawCell::Labeled(number, _) | RawCell::Percent(number) => {
            number.to_string()
        }
        RawCell::Padded(number, digits) => render_padded(number, digits),
        RawCell::Date(day) => FileCell::Date(day).to_string(),
        RawCell::LocalTime(at) => FileCell::LocalTime(at).to_string(),
        RawCell::Clock(micros) | RawCell::Elapsed(micros) => render_clock(micros),
        _ => row.text_of(cell).unwrap_or_default().to_owned(),
    }
}
