//! The table of a file: found, checked, and read row by row.

use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Scalar, Values},
};
use serde_json::json;

use super::{
    MAX_COLUMNS, PART_BYTES, PART_ROWS, ReadError, Source,
    date::DateFormat,
    doubt::{Doubt, DoubtScope, MAX_ROW_DOUBTS, RowProblem, style_options},
    header::{Header, column_names, duplicates, match_key, number_duplicates},
    interpret::{ColumnReading, Interpreted, Interpreter},
    layout::{CellKind, HeadRow, find_header, is_unit, is_units_row, kind_of, kind_of_text},
    number::{Decimal, NumberStyle, STYLES},
    open::{OpenFile, Sheet, TypedTable, open_file},
    options::{FileFormat, ReadOptions, Reading},
    raw::{RawCell, RawRow, RowFault, RowSource},
    survey::{CellRules, ColumnCounts, Inferred, TypeDoubt},
};

/// Number of rows in which the header is looked for.
const HEAD_ROWS: usize = 200;

/// Size of these rows in bytes.
const HEAD_BYTES: usize = 4 << 20;

/// Maximum number of lines behind the table that may belong to it.
const MAX_FOOTERS: usize = 20;

/// Maximum number of doubts that a refusal names.
const MAX_MESSAGES: usize = 5;

/// Column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    /// Header as people see it.
    pub header: String,
    /// Column name made from the header.
    pub name: String,
    /// Type of its values.
    pub data_type: DataType,
    /// Unit that stands in brackets behind the header, or below it.
    pub unit: Option<String>,
    /// Index of its cells in a row.
    index: usize,
}

impl ReadColumn {
    /// Letters and digits of the header in lower case, without its unit.
    #[must_use]
    pub fn match_key(&self) -> String {
        match_key(&self.header)
    }
}

/// A row of a table.
#[derive(Debug)]
pub struct TableRow<'r> {
    /// Line on which it begins, or number of the sheet's row, starting at 1.
    pub line: u64,
    /// A cell per column; blank and null cells, and those of columns that are left out, are `None`.
    pub cells: &'r mut [Option<FileCell>],
    /// Why the row cannot be believed.
    pub problems: &'r [String],
}

/// A table that is being read.
pub struct ReadTable {
    source: Box<dyn RowSource>,
    reading: Reading,
    columns: Vec<ReadColumn>,
    doubts: Vec<Doubt>,
    sheets: Option<Vec<Sheet>>,
    row_count: usize,
    layout: Layout,
    readings: Vec<Option<ColumnReading>>,
    style: NumberStyle,
    is_null_given: bool,
    row: RawRow,
    cells: Vec<Option<FileCell>>,
    problems: Vec<String>,
    checker: RowChecker,
}

/// Returns a header as the columns of a table show it: trimmed, on one line.
#[must_use]
pub fn header_line(text: &str) -> String {
    Header::of(text).text
}

/// Position of a table's rows.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// Last line above the rows.
    above: u64,
    last: Option<u64>,
    /// Index of the first column.
    first: usize,
    width: usize,
    has_field_counts: bool,
    has_blank_rows: bool,
}

/// Begins to read the table of a file. It is read once, for its position, the types of its columns and
/// what is doubtful, and then row by row.
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows.
pub fn open_table(
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
) -> Result<ReadTable, ReadError> {
    // Asked before defaults are filled in: only null values that the caller gives hold for texts, too.
    let is_null_given = options.null_values.is_some();
    let file = open_file(source, options.clone().with_defaults())?;
    Opening::new(file, options, is_null_given, max_rows).open()
}

/// A table whose rows are read for the first time.
struct Opening<'o> {
    file: OpenFile,
    given: &'o ReadOptions,
    is_null_given: bool,
    max_rows: usize,
    reading: Reading,
    doubts: Vec<Doubt>,
    formats: Vec<DateFormat>,
}

/// Header of a table, with the rows that were looked at.
struct FoundHeader {
    headers: Vec<Header>,
    layout: Layout,
    /// Kinds of the cells of most of the first rows.
    kinds: Vec<CellKind>,
}

impl<'o> Opening<'o> {
    fn new(
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

    fn open(mut self) -> Result<ReadTable, ReadError> {
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

    fn encoding(&self) -> &'static str {
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
        let allowed: Vec<(usize, NumberStyle)> = STYLES
            .into_iter()
            .enumerate()
            .filter(|(_, style)| decimal.is_none_or(|given| given == style.decimal))
            .filter(|(_, style)| thousands.is_none_or(|given| given == style.thousands))
            .collect();
        let columns: Vec<&ColumnCounts> = counts
            .iter()
            .filter(|column| column.is_number_like())
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
        // In the order of `STYLES`: of equally good ones, the simpler one is preferred.
        let mut fitting = allowed
            .iter()
            .filter(|(index, _)| score(*index) == best)
            .map(|(_, style)| *style);
        let style = fitting.next().unwrap_or(NumberStyle::new(
            decimal.unwrap_or(Decimal::Point),
            thousands.flatten(),
        ));
        let points: u64 = columns.iter().map(|column| column.ambiguous_points).sum();
        let commas: u64 = columns.iter().map(|column| column.ambiguous_commas).sum();
        // Fields that commas separate have no decimal commas, so a point separates decimals.
        let has_comma_fields = self.reading.options.delimiter == Some(b',');
        // Equally good styles are a doubt only if a text such as `1.234` is another number in them.
        let differs = |other: &NumberStyle| {
            let either = |found: NumberStyle| style == found || *other == found;
            let decimals_differ = style.decimal != other.decimal;
            points > 0
                && !has_comma_fields
                && decimals_differ
                && either(NumberStyle::new(Decimal::Comma, Some('.')))
                || commas > 0
                    && decimals_differ
                    && either(NumberStyle::new(Decimal::Point, Some(',')))
        };
        let mut alternatives: Vec<NumberStyle> = fitting.filter(differs).collect();
        let is_ambiguous = |column: &ColumnCounts| {
            column.is_number_like() && column.ambiguous_points + column.ambiguous_commas > 0
        };
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
            let affected = || {
                counts
                    .iter()
                    .enumerate()
                    .filter(|(_, column)| is_ambiguous(column))
            };
            let named: Vec<String> = affected()
                .filter_map(|(index, _)| headers.get(index))
                .map(|header| format!("\"{}\"", header.text))
                .take(3)
                .collect();
            let sign = if points > 0 { "1.234" } else { "1,234" };
            let mut doubt = Doubt::table(
                "decimal",
                "number_format",
                format!(
                    "numbers of {} such as {sign} may have decimals or groups of three digits",
                    named.join(", ")
                ),
                options,
            );
            doubt.columns = affected().map(|(index, _)| index).collect();
            self.doubts.push(doubt);
        }
        // The numbers of a typed file are not written in any style.
        if self.file.typed.is_none() {
            self.reading.options.decimal = Some(style.decimal);
            self.reading.options.thousands = Some(style.thousands);
        }
        style
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
        RawCell::Clock(micros) | RawCell::Elapsed(micros) => super::date::render_clock(micros),
        _ => row.text_of(cell).unwrap_or_default().to_owned(),
    }
}

/// First reading of a table's rows.
struct Survey {
    layout: Layout,
    columns: Vec<ColumnCounts>,
    headers: Vec<String>,
    rows: usize,
    /// Last line with a row.
    last: Option<u64>,
    /// Rows that are rows only if others follow.
    footers: Vec<RawRow>,
    blank_lines: u64,
    /// Blank lines since the last row.
    blanks: u64,
    checker: RowChecker,
    row_doubts: usize,
}

impl Survey {
    fn new(
        opening: &Opening<'_>,
        layout: Layout,
        headers: &[Header],
        kinds: Vec<CellKind>,
    ) -> Self {
        let rules = opening.rules();
        Self {
            layout,
            columns: vec![ColumnCounts::new(&rules); layout.width],
            headers: headers.iter().map(|header| header.text.clone()).collect(),
            rows: 0,
            last: None,
            footers: Vec::new(),
            blank_lines: 0,
            blanks: 0,
            checker: RowChecker::new(
                layout,
                opening.given,
                opening.reading.options.delimiter,
                kinds,
            ),
            row_doubts: 0,
        }
    }

    fn read(&mut self, opening: &mut Opening<'_>) -> Result<(), ReadError> {
        let mut row = RawRow::default();
        let mut last_line = self.layout.above;
        let given_last = opening.given.last_row;
        let mut below: Option<u64> = None;
        while opening.file.source.next(&mut row)? {
            if row.line <= self.layout.above {
                continue;
            }
            // Counted, so that the reading reports how many lines the given end leaves out.
            if given_last.is_some_and(|last| row.line > last) {
                below = Some(below.unwrap_or(0) + u64::from(!row.is_all_blank()));
                continue;
            }
            if row.is_all_blank() {
                self.blanks += 1;
                continue;
            }
            if !self.layout.has_field_counts {
                // A sheet does not have its blank rows.
                self.blanks += row.line.saturating_sub(last_line + 1);
            }
            last_line = row.line;
            // The table has ended; the rest is counted for the same reason.
            if below.is_some() {
                below = below.map(|count| count + 1);
                continue;
            }
            if self.ends_before(&row, given_last.is_some()) {
                self.footers.push(row.clone());
                below = Some(self.end_table(opening));
                continue;
            }
            // A short row behind blank lines is a row if others follow.
            let is_apart = self.blanks > 0 && self.rows > 0 || !self.footers.is_empty();
            // A sheet does not state how many cells a row has, so none of its rows is short.
            let is_short = self.layout.has_field_counts && row.cells.len() < self.layout.width;
            let may_be_below = is_apart && is_short || self.is_footer(&row);
            if given_last.is_none() && may_be_below {
                self.footers.push(row.clone());
                // More of them are another table.
                if self.footers.len() > MAX_FOOTERS {
                    below = Some(self.end_table(opening));
                }
                continue;
            }
            // A row of the table follows, so they were rows as well.
            for footer in std::mem::take(&mut self.footers) {
                self.add(opening, &footer)?;
            }
            self.add(opening, &row)?;
        }
        if !self.footers.is_empty() {
            below = Some(self.end_table(opening));
        }
        opening.reading.lines_below = below.unwrap_or(0);
        opening.reading.blank_lines = self.blank_lines;
        Ok(())
    }

    /// Returns whether the table ends before a row that follows blank lines.
    fn ends_before(&self, row: &RawRow, has_given_last: bool) -> bool {
        if has_given_last || self.blanks == 0 || self.rows == 0 {
            return false;
        }
        let layout = self.layout;
        // A shorter line may just lack its last fields; only a wider one is of another table.
        let is_other_width = if layout.has_field_counts {
            row.width() > layout.width
        } else {
            let first = row.cells.iter().position(|cell| !row.is_blank(*cell));
            row.width() > layout.first + layout.width
                || first.is_some_and(|first| first < layout.first)
                // One cell beside empty ones: a title or a remark.
                || layout.width > 2 && row.filled() == 1
        };
        // Some files repeat the header above each block of rows.
        let is_header_again = layout.width > 0
            && (0..layout.width).all(|column| {
                let cell = row.cell(layout.first + column);
                let text = row.text_of(cell).unwrap_or_default();
                let header = self.headers.get(column).map(String::as_str);
                Header::of(text).text == header.unwrap_or_default()
            });
        is_other_width || row.is_title || is_header_again || self.is_text_among_values(row)
    }

    /// Returns whether a row has texts only, and some where the column has numbers or dates.
    fn is_text_among_values(&self, row: &RawRow) -> bool {
        let kinds = || {
            (0..self.layout.width).map(|column| {
                let cell = row.cell(self.layout.first + column);
                (column, kind_of(row, cell))
            })
        };
        kinds().all(|(_, kind)| matches!(kind, CellKind::Text | CellKind::Blank))
            && kinds().any(|(column, kind)| {
                kind == CellKind::Text
                    && self
                        .columns
                        .get(column)
                        // Filled without any text: only numbers, dates and booleans so far.
                        .is_some_and(|counts| counts.filled > 0 && counts.first_text.is_none())
            })
    }

    /// Returns whether a row looks like a line below the table: one text in a wider table.
    fn is_footer(&self, row: &RawRow) -> bool {
        let layout = self.layout;
        if layout.width < 2 || self.rows == 0 || row.filled() != 1 {
            return false;
        }
        // A line with all its delimiters is a row whose other cells are empty.
        if layout.has_field_counts && row.cells.len() == layout.width {
            return false;
        }
        let text = row.text_of(row.cell(layout.first)).unwrap_or_default();
        if kind_of_text(text) != CellKind::Text {
            return false;
        }
        let is_numeric = self
            .columns
            .first()
            .is_some_and(|counts| counts.filled > 0 && counts.first_text.is_none());
        // A text in a column of numbers, or several words beside empty columns, is a remark.
        is_numeric || text.trim().contains(' ') && layout.width > 2
    }

    /// Ends the table before the rows that may be below it; returns their number.
    fn end_table(&mut self, opening: &mut Opening<'_>) -> u64 {
        let last = self.last.unwrap_or(self.layout.above);
        let below = std::mem::take(&mut self.footers);
        let line = below.first().map_or(last, |row| row.line);
        opening.doubts.push(Doubt::table(
            "last_row",
            "second_table",
            format!(
                "the table ends on line {last}; line {line} and those below it are of another form"
            ),
            vec![json!({"last_row": last}), json!({"header_row": line})],
        ));
        u64::try_from(below.len()).unwrap_or(u64::MAX)
    }

    /// Counts a row.
    fn add(&mut self, opening: &mut Opening<'_>, row: &RawRow) -> Result<(), ReadError> {
        // At the row beyond the limit, so that a table of exactly that many rows is read.
        if self.rows == opening.max_rows {
            return Err(ReadError::TooManyRows(opening.max_rows));
        }
        self.rows += 1;
        self.last = Some(row.line);
        // Blank lines between the header and the first row are not within the table.
        if self.rows > 1 {
            self.blank_lines += self.blanks;
        }
        self.blanks = 0;
        let encoding = opening.encoding();
        if let Some(problem) = self.checker.check(row, encoding) {
            self.push_row_doubt(&mut opening.doubts, row.line, problem);
        }
        if self.layout.has_field_counts && row.cells.len() < self.layout.width {
            opening.reading.short_rows += 1;
        }
        let rules = opening.rules();
        let mut error = None;
        for (counts, column) in self.columns.iter_mut().zip(self.layout.first..) {
            let cell = row.cell(column);
            if counts.add(row, cell, &rules).is_err() && error.is_none() {
                error = Some(cell);
            }
        }
        if let Some(cell) = error {
            let text = match cell {
                RawCell::Error(span) => Some(row.span(span)),
                _ => None,
            };
            let problem = RowProblem::error_cell(row, text);
            self.push_row_doubt(&mut opening.doubts, row.line, problem);
        }
        Ok(())
    }

    fn push_row_doubt(&mut self, doubts: &mut Vec<Doubt>, line: u64, problem: RowProblem) {
        self.row_doubts += 1;
        if self.row_doubts <= MAX_ROW_DOUBTS {
            doubts.push(Doubt::row(line, problem));
        }
    }
}

impl Opening<'_> {
    fn rules(&self) -> CellRules<'_> {
        rules(&self.reading.options, self.is_null_given, &self.formats)
    }
}

fn rules<'o>(
    options: &'o ReadOptions,
    is_null_given: bool,
    formats: &'o [DateFormat],
) -> CellRules<'o> {
    CellRules {
        null_values: options.null_values.as_deref().unwrap_or_default(),
        is_null_given,
        formats,
        error_cells_are_null: options.error_cells_are_null == Some(true),
    }
}

/// Check of rows one after the other.
struct RowChecker {
    layout: Layout,
    /// False if a person has said that quotation marks are what they seem.
    doubts_quotes: bool,
    quote: Option<char>,
    delimiter: Option<char>,
    replaces_invalid_bytes: bool,
    /// Kinds that the cells of most of the first rows have.
    kinds: Vec<CellKind>,
}

impl RowChecker {
    fn new(
        layout: Layout,
        given: &ReadOptions,
        delimiter: Option<u8>,
        kinds: Vec<CellKind>,
    ) -> Self {
        Self {
            layout,
            doubts_quotes: given.quote.is_none(),
            quote: given.quote.unwrap_or(Some(b'"')).map(char::from),
            delimiter: delimiter.map(char::from),
            replaces_invalid_bytes: given.replaces_invalid_bytes == Some(true),
            kinds,
        }
    }

    /// Returns the problem of a row.
    fn check(&self, row: &RawRow, encoding: &str) -> Option<RowProblem> {
        let is_replaced =
            |fault: &RowFault| *fault == RowFault::InvalidBytes && self.replaces_invalid_bytes;
        if let Some(fault) = row.fault.filter(|fault| !is_replaced(fault)) {
            return Some(RowProblem::of_fault(fault, encoding));
        }
        if row.is_title {
            return Some(RowProblem::merged(row.line));
        }
        let layout = self.layout;
        let end = layout.first + layout.width;
        // By the last filled field: delimiters behind it are no values.
        if layout.has_field_counts && row.width() > end {
            return Some(RowProblem::long_row(row.line, row.cells.len(), end));
        }
        if !layout.has_field_counts {
            let beside = row.cells.iter().enumerate().find(|(index, cell)| {
                (*index < layout.first || *index >= end) && !row.is_blank(**cell)
            });
            if let Some((column, _)) = beside {
                return Some(RowProblem::beside(row.line, column + 1));
            }
        }
        if self.has_vanished_rows(row) {
            return Some(RowProblem::vanished_rows(row.line));
        }
        None
    }

    /// Returns whether a quoted field looks like several rows: each line of it divides into as many
    /// fields as a row has, of kinds that fit.
    fn has_vanished_rows(&self, row: &RawRow) -> bool {
        let Some(delimiter) = self.delimiter.filter(|_| self.doubts_quotes) else {
            return false;
        };
        let width = self.layout.width;
        if width < 2 || !row.text.contains(['\n', '\r']) {
            return false;
        }
        // The rows that a quotation swallowed may have quotation marks themselves.
        let fits = |column: usize, text: &str| {
            let text = text.trim_matches(|char| Some(char) == self.quote);
            match self.kinds.get(column) {
                Some(CellKind::Value) => kind_of_text(text) != CellKind::Text,
                _ => true,
            }
        };
        row.cells.iter().enumerate().any(|(index, cell)| {
            let RawCell::Quoted(span) = *cell else {
                return false;
            };
            let text = row.span(span);
            let mut lines = text.split(['\n', '\r']).filter(|line| !line.is_empty());
            if !text.contains(['\n', '\r']) {
                return false;
            }
            let Some(first) = lines.next() else {
                return false;
            };
            let in_first: Vec<&str> = first.split(delimiter).collect();
            let is_row = index + in_first.len() == width
                && in_first
                    .iter()
                    .zip(index..)
                    .skip(1)
                    .all(|(text, column)| fits(column, text))
                && row
                    .cells
                    .iter()
                    .zip(0..index)
                    .all(|(cell, column)| fits(column, row.text_of(*cell).unwrap_or_default()));
            let after = row.cells.len().saturating_sub(index + 1);
            let lines: Vec<&str> = lines.collect();
            let last = lines.len().saturating_sub(1);
            is_row
                && lines.iter().enumerate().any(|(number, line)| {
                    let fields: Vec<&str> = line.split(delimiter).collect();
                    // The fields behind the quotation belong to the last line within it.
                    let following = if number == last { after } else { 0 };
                    fields.len() + following == width
                        && fields
                            .iter()
                            .enumerate()
                            .all(|(column, text)| fits(column, text))
                })
        })
    }
}

impl ReadTable {
    /// Returns the reading of the table.
    #[must_use]
    pub const fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[ReadColumn] {
        &self.columns
    }

    /// Returns the points that an import would have to guess, or refuses.
    #[must_use]
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// The first doubts that keep the table from being believed.
    pub fn refusals(&self) -> impl Iterator<Item = &Doubt> {
        let doubts = self.doubts.iter();
        doubts.filter(|doubt| doubt.scope != DoubtScope::Column)
    }

    /// Checks that nothing would have to be guessed.
    ///
    /// # Errors
    /// [`ReadError::Doubtful`] with the first doubts.
    pub fn check(&self) -> Result<(), ReadError> {
        let messages: Vec<String> = self
            .refusals()
            .map(Doubt::advice)
            .take(MAX_MESSAGES)
            .collect();
        if messages.is_empty() {
            Ok(())
        } else {
            Err(ReadError::Doubtful(messages.join("; ")))
        }
    }

    /// The sheets of a workbook.
    #[must_use]
    pub fn sheets(&self) -> Option<&[Sheet]> {
        self.sheets.as_deref()
    }

    /// Number of rows.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.row_count
    }

    /// Reads the cells of the columns as values of other types, `None` to leave a column out.
    pub fn read_as(&mut self, types: &[Option<DataType>]) {
        for (reading, data_type) in self.readings.iter_mut().zip(types) {
            match (reading.as_mut(), data_type) {
                (Some(reading), Some(data_type)) => reading.data_type = *data_type,
                _ => *reading = None,
            }
        }
    }

    /// Reads the next row.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError> {
        loop {
            if !self.source.next(&mut self.row)? {
                return Ok(None);
            }
            let line = self.row.line;
            if line <= self.layout.above {
                continue;
            }
            if self.layout.last.is_none_or(|last| line > last) {
                return Ok(None);
            }
            // A row of nulls is a row of a file that says how many it has.
            if self.layout.has_blank_rows || !self.row.is_all_blank() {
                break;
            }
        }
        self.interpret();
        Ok(Some(TableRow {
            line: self.row.line,
            cells: &mut self.cells,
            problems: &self.problems,
        }))
    }

    /// Returns to the first row.
    #[cfg(test)]
    pub(super) fn source_rewound(&mut self) {
        self.source.rewind().unwrap();
    }

    fn interpret(&mut self) {
        self.problems.clear();
        let options = &self.reading.options;
        let encoding = options.encoding.map_or("text", encoding_rs::Encoding::name);
        if let Some(problem) = self.checker.check(&self.row, encoding) {
            self.problems.push(problem.message);
        }
        let interpreter = Interpreter {
            // These rules decide on nulls only: each column has its formats of dates.
            rules: rules(options, self.is_null_given, &[]),
            style: self.style,
            timezone: options.timezone.as_ref(),
            text_numbers_are_null: options.text_numbers_are_null == Some(true),
            // A decimal of Parquet states all its digits, while a number in a text is rounded as usual.
            are_numbers_exact: options.format == Some(FileFormat::Parquet),
        };
        let (mut texts, mut errors) = (0, 0);
        let columns = self.columns.iter().zip(&self.readings);
        for (cell, (column, reading)) in self.cells.iter_mut().zip(columns) {
            *cell = None;
            let Some(reading) = reading else {
                continue;
            };
            let raw = self.row.cell(self.layout.first + column.index);
            match interpreter.read(&self.row, raw, reading) {
                Interpreted::Null => {}
                Interpreted::NullTextNumber => texts += 1,
                Interpreted::NullErrorCell => errors += 1,
                Interpreted::Value(value) => *cell = Some(value),
                Interpreted::Refused(problem) => self.problems.push(problem.message),
            }
        }
        self.reading.null_text_numbers += texts;
        self.reading.null_error_cells += errors;
    }

    /// Reads the next rows as columns of values: one vector per column, all of one length. `None` at
    /// the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        let types: Vec<DataType> = self.columns.iter().map(|column| column.data_type).collect();
        let mut part: Vec<Values> = types
            .iter()
            .map(|data_type| Values::with_capacity(*data_type, 0))
            .collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < PART_ROWS && bytes < PART_BYTES {
            let Some(row) = self.next_row()? else {
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
