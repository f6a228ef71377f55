//! First reading of a table: its header, its columns, and what is doubtful about them.

use labdata_domain::{data::write::FileCell, scalar::DataType};
use serde_json::{Value, json};

use super::{Layout, ReadColumn, ReadTable, extent::Survey, row_checker::RowChecker, rules};
use crate::read::{
    MAX_COLUMNS, ReadError,
    date::{DateFormat, render_clock},
    doubt::{Doubt, RowProblem, style_options},
    header::{Header, column_names, duplicates, number_duplicates},
    interpret::ColumnReading,
    layout::{CellKind, HeadRow, find_header, is_unit, is_units_row, kind_of},
    number::{Decimal, NumberStyle, STYLES},
    open::{OpenFile, TypedTable},
    options::{ReadOptions, Reading},
    raw::{RawCell, RawRow},
    survey::{CellRules, ColumnCounts, Inferred, TypeDoubt},
};

/// Number of rows in which the header is looked for.
const HEAD_ROWS: usize = 200;

/// Size of these rows in bytes.
const HEAD_BYTES: usize = 4 << 20;

/// A table whose rows are read for the first time.
pub(super) struct Opening<'o> {
    pub(super) file: OpenFile,
    pub(super) given: &'o ReadOptions,
    pub(super) is_null_given: bool,
    pub(super) max_rows: usize,
    pub(super) reading: Reading,
    pub(super) doubts: Vec<Doubt>,
    pub(super) formats: Vec<DateFormat>,
}

/// Header of a table, with the rows that were looked at.
struct FoundHeader {
    headers: Vec<Header>,
    layout: Layout,
    /// Kinds of the cells of most of the first rows.
    kinds: Vec<CellKind>,
}

impl<'o> Opening<'o> {
    pub(super) fn new(
        mut file: OpenFile,
        given: &'o ReadOptions,
        is_null_given: bool,
        max_rows: usize,
    ) -> Self {
        let formats = match &given.date_format {
            Some(format) => vec![format.clone()],
            None => DateFormat::detected(),
        };
        Self {
            reading: Reading {
                options: std::mem::take(&mut file.options),
                ..Reading::default()
            },
            doubts: std::mem::take(&mut file.doubts),
            file,
            given,
            is_null_given,
            max_rows,
            formats,
        }
    }

    pub(super) fn open(mut self) -> Result<ReadTable, ReadError> {
        let FoundHeader {
            headers,
            mut layout,
            kinds,
        } = if let Some(typed) = &self.file.typed {
            typed_header(typed)
        } else {
            let head = self.head()?;
            self.header(&head)?
        };
        // Delimited lines may end in empty fields, which are no columns.
        let named = headers.iter().rposition(|header| !header.text.is_empty());
        let named = named.map_or(0, |last| last + 1);
        if named > MAX_COLUMNS {
            return Err(ReadError::TooManyColumns(named));
        }
        layout.has_field_counts = self.file.source.has_field_counts();
        layout.has_blank_rows = self.file.typed.is_some();
        let Survey {
            columns: counts,
            rows: row_count,
            last,
            ..
        } = self.survey(layout, &headers, kinds.clone())?;
        layout.last = last;
        let style = self.number_style(&counts, &headers);
        let kept = self.kept(&headers, &counts, row_count);
        let headers = self.name_headers(headers, &kept)?;
        let (columns, readings) = self.columns(&kept, headers, &counts, style);
        self.file.source.rewind()?;
        Ok(ReadTable {
            cells: vec![None; columns.len()],
            checker: RowChecker::new(layout, self.given, self.reading.options.delimiter, kinds),
            source: self.file.source,
            reading: self.reading,
            columns,
            doubts: self.doubts,
            sheets: self.file.sheets,
            row_count,
            layout,
            readings,
            style,
            is_null_given: self.is_null_given,
            row: RawRow::default(),
            problems: Vec::new(),
        })
    }

    /// Reads all rows of a file that does not type its columns itself.
    fn survey(
        &mut self,
        layout: Layout,
        headers: &[Header],
        kinds: Vec<CellKind>,
    ) -> Result<Survey, ReadError> {
        let mut survey = Survey::new(self, layout, headers, kinds);
        match &self.file.typed {
            Some(typed) if typed.rows > self.max_rows => {
                return Err(ReadError::TooManyRows(self.max_rows));
            }
            Some(typed) => {
                survey.rows = typed.rows;
                // Such a file has no lines below its table.
                survey.last = Some(u64::MAX);
            }
            None => {
                survey.read(self)?;
                let last = survey.last.unwrap_or(layout.above);
                self.reading.options.last_row = Some(last);
            }
        }
        Ok(survey)
    }

    /// Columns that are read. One without a header is a column only if it has values; so is one that
    /// another column's header is merged over.
    fn kept(&self, headers: &[Header], counts: &[ColumnCounts], row_count: usize) -> Vec<usize> {
        let repeated: Vec<usize> = match row_count {
            // Without rows no column has values, and a repeated header would vanish unreported.
            0 => Vec::new(),
            _ => duplicates(headers)
                .into_iter()
                .map(|(_, second)| second)
                .collect(),
        };
        (0..headers.len())
            .filter(|index| {
                let header = headers.get(*index);
                let has_header = header.is_some_and(|header| !header.text.is_empty())
                    && !repeated.contains(index);
                // The cells of a typed file are not counted.
                self.file.typed.is_some()
                    || has_header
                    || counts.get(*index).is_some_and(|counts| counts.shown > 0)
            })
            .collect()
    }

    /// The headers of the columns that are read, each with a text.
    fn name_headers(
        &mut self,
        mut headers: Vec<Header>,
        kept: &[usize],
    ) -> Result<Vec<Header>, ReadError> {
        // Doubts so far have the indices of the file; callers know those of the columns that are read.
        for doubt in &mut self.doubts {
            for column in &mut doubt.columns {
                let position = kept.iter().position(|index| index == column);
                *column = position.unwrap_or(usize::MAX);
            }
        }
        // Before columns are left out, so that the number is that of the header's field.
        for (header, number) in headers.iter_mut().zip(1..) {
            if header.text.is_empty() {
                header.text = format!("column_{number}");
            }
        }
        let mut headers: Vec<Header> = kept
            .iter()
            .filter_map(|index| headers.get(*index).cloned())
            .collect();
        if headers.is_empty() {
            return Err(ReadError::NoHeader);
        }
        self.check_duplicates(&mut headers);
        Ok(headers)
    }

    /// The columns, and how their cells are read.
    fn columns(
        &mut self,
        kept: &[usize],
        headers: Vec<Header>,
        counts: &[ColumnCounts],
        style: NumberStyle,
    ) -> (Vec<ReadColumn>, Vec<Option<ColumnReading>>) {
        let names = column_names(&headers);
        let style = STYLES.iter().position(|known| *known == style).unwrap_or(0);
        let (mut columns, mut readings, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for ((index, header), name) in kept.iter().zip(headers).zip(names) {
            let Some(counts) = counts.get(*index) else {
                continue;
            };
            let inferred = self.infer(*index, counts, style);
            self.column_doubts(&header, counts, inferred);
            let format = inferred.format.and_then(|format| self.formats.get(format));
            found.extend(format.cloned());
            readings.push(Some(ColumnReading {
                data_type: inferred.data_type,
                formats: match format {
                    Some(format) => vec![format.clone()],
                    // The column of the table may be one of dates although the cells do not show it.
                    None => self.formats.clone(),
                },
                has_elapsed: counts.elapsed > 0,
            }));
            let typed = self.file.typed.as_ref();
            let typed = typed.and_then(|typed| typed.columns.get(*index));
            // Elapsed times become numbers of seconds, so their unit is known.
            let is_seconds = inferred.data_type == DataType::Float && counts.elapsed > 0;
            let unit = typed.and_then(|column| column.unit);
            let unit = unit.or(is_seconds.then_some("s"));
            columns.push(ReadColumn {
                unit: header.unit.or_else(|| unit.map(str::to_owned)),
                header: header.text,
                name,
                data_type: inferred.data_type,
                index: *index,
            });
        }
        // Formats of two columns are found again; one can be named.
        if let Some(first) = found.first()
            && self.given.date_format.is_none()
            && found.iter().all(|format| format == first)
        {
            self.reading.options.date_format = Some(first.clone());
        }
        (columns, readings)
    }

    fn infer(&self, index: usize, counts: &ColumnCounts, style: usize) -> Inferred {
        let has_zone = self.reading.options.timezone.is_some();
        let typed = self.file.typed.as_ref();
        match typed.and_then(|typed| typed.columns.get(index)) {
            Some(column) => Inferred {
                // Without a zone a local time is no instant and stays a text.
                data_type: if column.is_local_time && has_zone {
                    DataType::Datetime
                } else {
                    column.data_type
                },
                format: None,
                doubt: (column.is_local_time && !has_zone).then_some(TypeDoubt::NoZone),
            },
            None => counts.infer(
                style,
                has_zone,
                self.reading.options.text_numbers_are_null == Some(true),
            ),
        }
    }

    /// Reads the first rows that are not blank, up to and behind the header.
    fn head(&mut self) -> Result<Vec<HeadRow>, ReadError> {
        let (mut rows, mut bytes, mut follows_blank) = (Vec::new(), 0, false);
        let mut row = RawRow::default();
        // Rows above a header that is given are no header.
        let from = self.given.header_row.unwrap_or(0);
        let mut last_line = None;
        while rows.len() < HEAD_ROWS && bytes < HEAD_BYTES && self.file.source.next(&mut row)? {
            if row.line < from {
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
        Ok(rows)
    }

    fn header(&mut self, rows: &[HeadRow]) -> Result<FoundHeader, ReadError> {
        let index = match self.given.header_row {
            Some(0) => return self.no_header(rows),
            Some(line) => {
                // `head` begins at the given line, so another first row means that none begins there.
                let found = rows.first().filter(|row| row.row.line == line);
                found.map(|_| 0).ok_or(ReadError::NoSuchRow(line))?
            }
            None => {
                let choice = find_header(rows);
                let index = choice.index.ok_or(ReadError::NoHeader)?;
                let line = |index: &usize| rows.get(*index).map(|row| row.row.line);
                let mut lines: Vec<u64> = choice.alternatives.iter().filter_map(line).collect();
                if choice.may_have_none {
                    lines.push(0);
                }
                if !lines.is_empty() {
                    self.doubt_header(line(&index).unwrap_or(0), &lines);
                }
                index
            }
        };
        let head = rows.get(index).ok_or(ReadError::NoHeader)?;
        let row = &head.row;
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
        let mut above = row.line;
        if is_units_row(rows, index)
            && let Some(HeadRow { row: units, .. }) = rows.get(index + 1)
        {
            above = units.line;
            self.reading.units_row = Some(units.line);
            for (header, column) in headers.iter_mut().zip(first..) {
                let text = units.text_of(units.cell(column)).unwrap_or_default();
                let unit = text.trim().trim_matches(['(', ')', '[', ']']);
                if header.unit.is_none() && !unit.is_empty() && is_unit(text) {
                    header.unit = Some(unit.to_owned());
                }
            }
        }
        Ok(FoundHeader {
            kinds: usual_kinds(rows.get(index + 1..).unwrap_or_default(), first + width),
            headers,
            layout: Layout {
                above,
                first,
                width,
                ..Layout::default()
            },
        })
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

    pub(super) fn encoding(&self) -> &'static str {
        self.reading
            .options
            .encoding
            .map_or("text", encoding_rs::Encoding::name)
    }

    fn check_duplicates(&mut self, headers: &mut [Header]) {
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

    /// Chooses the style of numbers in which most texts of columns of numbers are numbers.
    fn number_style(&mut self, counts: &[ColumnCounts], headers: &[Header]) -> NumberStyle {
        let (decimal, thousands) = (self.given.decimal, self.given.thousands);
        let columns: Vec<&ColumnCounts> = counts
            .iter()
            .filter(|column| column.is_number_like())
            .collect();
        // In the order of `STYLES`: of equally good ones, the simpler one is preferred.
        let mut fitting = self.best_styles(&columns).into_iter();
        let style = fitting.next().unwrap_or(NumberStyle::new(
            decimal.unwrap_or(Decimal::Point),
            thousands.flatten(),
        ));
        let mut alternatives: Vec<NumberStyle> = fitting
            .filter(|other| self.reads_otherwise(style, *other, &columns))
            .collect();
        // Groups that no other number of the column confirms may be decimals.
        let is_doubtful_group = thousands.is_none()
            && matches!(style.thousands, Some('.' | ','))
            && counts
                .iter()
                .any(|column| is_ambiguous(column) && !column.is_decided);
        if is_doubtful_group && alternatives.is_empty() {
            alternatives.push(NumberStyle::new(style.decimal, None));
        }
        if !alternatives.is_empty() {
            let options = std::iter::once(style)
                .chain(alternatives)
                .map(style_options)
                .collect();
            self.doubts.push(style_doubt(counts, headers, options));
        }
        // The numbers of a typed file are not written in any style.
        if self.file.typed.is_none() {
            self.reading.options.decimal = Some(style.decimal);
            self.reading.options.thousands = Some(style.thousands);
        }
        style
    }

    /// The styles that the options allow and in which most texts of these columns are numbers.
    fn best_styles(&self, columns: &[&ColumnCounts]) -> Vec<NumberStyle> {
        let (decimal, thousands) = (self.given.decimal, self.given.thousands);
        let allowed: Vec<(usize, NumberStyle)> = STYLES
            .into_iter()
            .enumerate()
            .filter(|(_, style)| decimal.is_none_or(|given| given == style.decimal))
            .filter(|(_, style)| thousands.is_none_or(|given| given == style.thousands))
            .collect();
        // Cells that the file stores as numbers have no style, so only texts decide.
        let score = |index: usize| -> u64 {
            columns
                .iter()
                .map(|column| column.numbers.get(index).copied().unwrap_or(0))
                .sum()
        };
        let best = allowed.iter().map(|(index, _)| score(*index)).max();
        let best = best.unwrap_or(0);
        allowed
            .into_iter()
            .filter(|(index, _)| score(*index) == best)
            .map(|(_, style)| style)
            .collect()
    }

    /// Returns whether a text of these columns is another number in another style, such as `1.234`.
    fn reads_otherwise(
        &self,
        style: NumberStyle,
        other: NumberStyle,
        columns: &[&ColumnCounts],
    ) -> bool {
        let either = |found: NumberStyle| style == found || other == found;
        // Fields that commas separate have no decimal commas, so a point separates decimals.
        let has_comma_fields = self.reading.options.delimiter == Some(b',');
        let has_points = columns.iter().any(|column| column.ambiguous_points > 0);
        let has_commas = columns.iter().any(|column| column.ambiguous_commas > 0);
        style.decimal != other.decimal
            && (has_points
                && !has_comma_fields
                && either(NumberStyle::new(Decimal::Comma, Some('.')))
                || has_commas && either(NumberStyle::new(Decimal::Point, Some(','))))
    }

    fn column_doubts(&mut self, header: &Header, counts: &ColumnCounts, inferred: Inferred) {
        let is_text = inferred.data_type == DataType::Text;
        // The survey took the cell for a missing number, but the column became a text.
        if let Some(line) = counts.null_error.filter(|_| is_text && counts.filled > 0)
            && self.reading.options.error_cells_are_null == Some(false)
        {
            let row = RawRow {
                line,
                ..RawRow::default()
            };
            let problem = RowProblem::error_cell(&row, Some("#N/A"));
            self.doubts.push(Doubt::row(line, problem));
        }
        let formats = |index: usize| self.formats.get(index).map(DateFormat::as_str);
        let doubt = match inferred.doubt {
            None => return,
            Some(TypeDoubt::TextNumbers) => {
                let (line, text) = counts.first_text.clone().unwrap_or_default();
                Doubt::column(
                    &header.text,
                    "text_numbers",
                    format!(
                        "most cells are numbers, but not all: row {line} has \"{text}\"; the column \
                         is a text"
                    ),
                    vec![json!({"text_numbers": "null"})],
                )
            }
            Some(TypeDoubt::DateFormats(first, second)) => {
                let options = [first, second].into_iter().filter_map(formats);
                Doubt::column(
                    &header.text,
                    "date_format",
                    "day and month of these dates can be told from each other in two ways",
                    options
                        .map(|format| json!({"date_format": format}))
                        .collect(),
                )
            }
            Some(TypeDoubt::NoZone) => Doubt::column(
                &header.text,
                "timezone",
                "these times have no offset; name the time zone in which they were taken",
                vec![json!({"timezone": "UTC"})],
            ),
        };
        self.doubts.push(doubt);
    }
}

/// The header of a file that names and types its columns itself.
fn typed_header(typed: &TypedTable) -> FoundHeader {
    let columns = typed.columns.iter();
    let headers: Vec<Header> = columns.map(|column| Header::of(&column.name)).collect();
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
        RawCell::Float(number) => number.to_string(),
        RawCell::Date(day) => FileCell::Date(day).to_string(),
        RawCell::LocalTime(at) => FileCell::LocalTime(at).to_string(),
        RawCell::Clock(micros) | RawCell::Elapsed(micros) => render_clock(micros),
        _ => row.text_of(cell).unwrap_or_default().to_owned(),
    }
}

fn is_ambiguous(column: &ColumnCounts) -> bool {
    column.is_number_like() && column.ambiguous_points + column.ambiguous_commas > 0
}

/// The doubt about numbers that are others in another style.
fn style_doubt(counts: &[ColumnCounts], headers: &[Header], options: Vec<Value>) -> Doubt {
    let affected: Vec<usize> = counts
        .iter()
        .enumerate()
        .filter(|(_, column)| is_ambiguous(column))
        .map(|(index, _)| index)
        .collect();
    let named: Vec<String> = affected
        .iter()
        .filter_map(|index| headers.get(*index))
        .map(|header| format!("\"{}\"", header.text))
        .take(3)
        .collect();
    let has_points = counts
        .iter()
        .any(|column| column.is_number_like() && column.ambiguous_points > 0);
    let sign = if has_points { "1.234" } else { "1,234" };
    let message = format!(
        "numbers of {} such as {sign} may have decimals or groups of three digits",
        named.join(", ")
    );
    Doubt {
        columns: affected,
        ..Doubt::table("decimal", "number_format", message, options)
    }
}

impl Opening<'_> {
    pub(super) fn rules(&self) -> CellRules<'_> {
        rules(&self.reading.options, self.is_null_given, &self.formats)
    }
}
