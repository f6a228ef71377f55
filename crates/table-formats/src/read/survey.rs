//! First reading of a table: counts what the cells of each column may be.

use labdata_domain::{data::write::FileCell, scalar::DataType};

use super::{
    date::{DateFormat, Moment, read_iso},
    exact::is_whole,
    null_numbers::NullNumbers,
    number::{NumberForm, STYLES},
    raw::{RawCell, RawRow},
};

/// Counts of the dates of a column in one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DateCounts {
    pub(super) dates: u64,
    /// Times without an offset.
    pub(super) local: u64,
    pub(super) instants: u64,
}

impl DateCounts {
    fn add(&mut self, moment: Moment) {
        match (moment.time, moment.offset) {
            (None, _) => self.dates += 1,
            (Some(_), None) => self.local += 1,
            (Some(_), Some(_)) => self.instants += 1,
        }
    }

    const fn total(self) -> u64 {
        self.dates + self.local + self.instants
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            dates: self.dates + other.dates,
            local: self.local + other.local,
            instants: self.instants + other.instants,
        }
    }
}

/// Counts of a column's cells.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact about the cells of the column"
)]
pub(super) struct ColumnCounts {
    /// Cells that are neither blank nor null.
    pub(super) filled: u64,
    /// True if a column of texts would have something in a cell.
    pub(super) has_content: bool,
    pub(super) booleans: u64,
    /// Texts that are numbers, by style.
    pub(super) numbers: [u64; 8],
    pub(super) integers: [u64; 8],
    /// Those of these numbers that are a null value in another style, so that they show none.
    pub(super) maybe_nulls: [u64; 8],
    pub(super) has_id: bool,
    /// True if a float would change digits in front of a decimal sign.
    pub(super) has_rounded: bool,
    /// Numbers such as `1.234`.
    pub(super) ambiguous_points: u64,
    /// Numbers such as `1,234`.
    pub(super) ambiguous_commas: u64,
    /// True if a number shows which sign separates its decimals.
    pub(super) is_decided: bool,
    /// Cells of workbooks that are numbers.
    pub(super) raw_numbers: u64,
    pub(super) raw_integers: u64,
    /// Numbers that a workbook shows as percentages.
    pub(super) percents: u64,
    /// Label that a workbook shows beside the first labeled number, and below the number of cells with it.
    pub(super) label: Option<String>,
    pub(super) labeled: u64,
    pub(super) raw_dates: DateCounts,
    pub(super) iso: DateCounts,
    /// Texts that are dates, by the formats that are tried.
    pub(super) formats: Vec<DateCounts>,
    pub(super) clocks: u64,
    pub(super) elapsed: u64,
    /// Row with the first error that stands for a missing number, such as `#N/A`.
    pub(super) null_error: Option<u64>,
    /// First text that is neither number nor date, and its row.
    pub(super) first_text: Option<(u64, String)>,
    /// First cell that is no number in a style, and its row, by style.
    pub(super) first_others: [Option<(u64, String)>; 8],
}

/// Rules for the cells of a table.
pub(super) struct CellRules<'o> {
    pub(super) null_values: &'o [String],
    pub(super) null_numbers: &'o NullNumbers,
    /// True if `null_values` also hold for texts.
    pub(super) is_null_given: bool,
    pub(super) formats: &'o [DateFormat],
    pub(super) error_cells_are_null: bool,
}

impl CellRules<'_> {
    /// Returns whether a text is null in a column of numbers, dates or booleans.
    pub(super) fn is_null(&self, trimmed: &str) -> bool {
        // Trimmed only if it may be equal: most cells are longer than all null values.
        let is_same = |null: &String| null.len() >= trimmed.len() && null.trim() == trimmed;
        trimmed.is_empty() || self.null_values.iter().any(is_same)
    }

    /// Returns whether a cell that the file stores with its type is null.
    pub(super) fn is_null_cell(&self, cell: &FileCell) -> bool {
        // Only given null values are compared with what is neither blank nor a text.
        self.is_null_given
            && (self.null_numbers.has_cell(cell)
                || !self.null_values.is_empty() && {
                    let text = cell.to_string();
                    self.null_values.contains(&text)
                })
    }

    /// Returns whether a text is null in a column of texts.
    pub(super) fn is_null_text(&self, text: &str) -> bool {
        self.is_null_given && self.null_values.iter().any(|null| null == text)
    }
}

/// Error cell that makes a row doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrorCell;

impl ColumnCounts {
    pub(super) fn new(rules: &CellRules<'_>) -> Self {
        Self {
            formats: vec![DateCounts::default(); rules.formats.len()],
            ..Self::default()
        }
    }

    /// Counts a cell.
    pub(super) fn add(
        &mut self,
        row: &RawRow,
        cell: RawCell,
        rules: &CellRules<'_>,
    ) -> Result<(), ErrorCell> {
        let text = match cell {
            RawCell::Blank => return Ok(()),
            RawCell::Text(span) | RawCell::Quoted(span) => row.span(span),
            RawCell::Error(span) => {
                let is_null = rules.is_null(row.span(span));
                if is_null {
                    // Noted, because it is an error if the column turns out to be one of texts.
                    self.null_error.get_or_insert(row.line);
                }
                return if is_null || rules.error_cells_are_null {
                    Ok(())
                } else {
                    Err(ErrorCell)
                };
            }
            RawCell::Formula if rules.error_cells_are_null => return Ok(()),
            RawCell::Formula => return Err(ErrorCell),
            _ => {
                self.has_content = true;
                if is_null_typed(cell, rules) {
                    return Ok(());
                }
                self.filled += 1;
                self.add_typed(row, cell);
                if let Some(value) = Some(cell).filter(is_no_number).and_then(value_of) {
                    self.note_other(row.line, &value.to_string(), u8::MAX);
                }
                return Ok(());
            }
        };
        // Before the check for null: `NA` is a value in a column of texts.
        self.has_content = true;
        let trimmed = text.trim();
        if !rules.is_null(trimmed) && !rules.null_numbers.has_text_in_each_style(trimmed) {
            self.filled += 1;
            self.add_text(row.line, trimmed, rules);
        }
        Ok(())
    }

    fn add_typed(&mut self, row: &RawRow, cell: RawCell) {
        match cell {
            RawCell::Boolean(_) => self.booleans += 1,
            RawCell::Integer(_) | RawCell::Padded(..) => {
                self.raw_numbers += 1;
                self.raw_integers += 1;
            }
            RawCell::Labeled(number, label) => {
                self.raw_numbers += 1;
                self.raw_integers += u64::from(is_whole(number));
                self.add_label(row.span(label));
            }
            RawCell::Percent(_) => {
                self.raw_numbers += 1;
                self.percents += 1;
            }
            RawCell::Float(_) => self.raw_numbers += 1,
            RawCell::Date(_) => self.raw_dates.dates += 1,
            RawCell::LocalTime(_) => self.raw_dates.local += 1,
            RawCell::Instant(_) => self.raw_dates.instants += 1,
            RawCell::Clock(_) => self.clocks += 1,
            RawCell::Elapsed(_) => self.elapsed += 1,
            RawCell::Blank
            | RawCell::Text(_)
            | RawCell::Quoted(_)
            | RawCell::Error(_)
            | RawCell::Formula => {}
        }
    }

    fn add_label(&mut self, label: &str) {
        let first = self.label.get_or_insert_with(|| label.to_owned());
        self.labeled += u64::from(first == label);
    }

    fn add_text(&mut self, line: u64, text: &str, rules: &CellRules<'_>) {
        let form = NumberForm::of(text);
        if form.numbers != 0 {
            count_styles(&mut self.numbers, form.numbers);
            count_styles(&mut self.integers, form.integers);
            if rules.null_numbers.has_text_in_some_style(text) {
                count_styles(&mut self.maybe_nulls, form.numbers);
            }
            self.note_other(line, text, !form.numbers);
            self.has_id |= form.is_id;
            self.has_rounded |= form.is_rounded;
            self.is_decided |= form.is_decided;
            match form.ambiguous {
                Some(super::number::Decimal::Point) => self.ambiguous_points += 1,
                Some(super::number::Decimal::Comma) => self.ambiguous_commas += 1,
                None => {}
            }
            return;
        }
        self.note_other(line, text, u8::MAX);
        // Not `yes` or `1`, which are texts and numbers as well.
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            self.booleans += 1;
            return;
        }
        // No date is longer, and all formats are tried.
        if text.starts_with(|first: char| first.is_ascii_digit()) && text.len() <= 64 {
            if let Some(moment) = read_iso(text) {
                self.iso.add(moment);
                return;
            }
            // All that fit are counted: `03/04/2024` is a date in two of them, which `infer_dates` reports.
            let mut is_date = false;
            for (format, counts) in rules.formats.iter().zip(&mut self.formats) {
                if let Some(moment) = format.read(text) {
                    counts.add(moment);
                    is_date = true;
                }
            }
            if is_date {
                return;
            }
        }
        if self.first_text.is_none() {
            self.first_text = Some((line, text.chars().take(40).collect()));
        }
    }

    /// Notes a cell that is no number in a set of styles.
    fn note_other(&mut self, line: u64, text: &str, styles: u8) {
        if styles == 0 {
            return;
        }
        for (index, first) in self.first_others.iter_mut().enumerate() {
            if styles >> index & 1 == 1 && first.is_none() {
                *first = Some((line, text.chars().take(40).collect()));
            }
        }
    }

    /// Number of cells that are times of day or elapsed times.
    pub(super) const fn times(&self) -> u64 {
        self.clocks + self.elapsed
    }

    /// Returns whether some cells are times, and others numbers.
    pub(super) fn mixes_times(&self) -> bool {
        self.times() > 0 && (0..STYLES.len()).any(|style| self.numbers_in(style) > 0)
    }

    /// Returns whether some cells are shown as percentages, and others are numbers.
    pub(super) fn mixes_percents(&self) -> bool {
        let most = (0..STYLES.len()).map(|style| self.numbers_in(style)).max();
        self.percents > 0 && most > Some(self.percents)
    }

    /// Label that a workbook shows beside the number in each of the cells.
    pub(super) fn common_label(&self) -> Option<&str> {
        let label = self.label.as_deref()?;
        (self.labeled == self.filled && !label.is_empty()).then_some(label)
    }

    /// Number of texts that show that numbers are written in a style.
    pub(super) fn evidence_of(&self, style: usize) -> u64 {
        let count = |counts: &[u64; 8]| counts.get(style).copied().unwrap_or(0);
        count(&self.numbers) - count(&self.maybe_nulls)
    }

    /// Number of cells that are numbers in a style.
    pub(super) fn numbers_in(&self, style: usize) -> u64 {
        self.raw_numbers + self.numbers.get(style).copied().unwrap_or(0)
    }

    /// Returns whether at least four fifths of the cells are numbers in a style.
    pub(super) fn is_mostly_numbers(&self, style: usize) -> bool {
        let numbers = self.numbers_in(style);
        numbers > 0 && numbers * 5 >= self.filled * 4
    }

    /// Returns whether at least four fifths of the cells are numbers in some style.
    pub(super) fn is_number_like(&self) -> bool {
        (0..STYLES.len()).any(|style| self.is_mostly_numbers(style))
    }

    /// Infers the type of the column.
    pub(super) fn infer(&self, style: usize, has_zone: bool, nulls_texts: bool) -> Inferred {
        let of = |data_type| Inferred {
            data_type,
            format: None,
            doubt: None,
        };
        // The column may be anything, and a text loses nothing.
        if self.filled == 0 {
            return of(DataType::Text);
        }
        if self.booleans == self.filled {
            return of(DataType::Boolean);
        }
        let numbers = self.numbers_in(style);
        let integers = self.raw_integers + self.integers.get(style).copied().unwrap_or(0);
        // One id is enough: as a number, it would lose its leading zeros or digits.
        if !self.has_id && (numbers == self.filled || nulls_texts && self.is_mostly_numbers(style))
        {
            return of(if integers == numbers {
                DataType::Integer
            } else if self.has_rounded {
                DataType::Text
            } else {
                DataType::Float
            });
        }
        // Elapsed times below a day may be formatted as times of day.
        if self.elapsed > 0 && self.elapsed + self.clocks == self.filled {
            return of(DataType::Float);
        }
        if self.mixes_times() && self.numbers_in(style) + self.times() == self.filled {
            return Inferred {
                doubt: Some(TypeDoubt::MixedTimes),
                ..of(DataType::Text)
            };
        }
        if !self.has_id && self.is_mostly_numbers(style) {
            return Inferred {
                doubt: Some(TypeDoubt::TextNumbers),
                ..of(DataType::Text)
            };
        }
        self.infer_dates(has_zone).unwrap_or(of(DataType::Text))
    }

    /// The formats in which all cells are dates, by index, with the counts of these dates.
    pub(super) fn fitting_formats(&self) -> impl Iterator<Item = (usize, DateCounts)> {
        // ISO 8601 and dates of workbooks have one meaning, so they may stand beside any other format.
        let fixed = self.iso.plus(self.raw_dates);
        let formats = self.formats.iter().enumerate();
        formats
            .filter(|(_, counts)| counts.total() > 0)
            .map(move |(index, counts)| (index, counts.plus(fixed)))
            .filter(|(_, counts)| counts.total() == self.filled)
    }

    fn infer_dates(&self, has_zone: bool) -> Option<Inferred> {
        let fixed = self.iso.plus(self.raw_dates);
        let (format, counts) = if fixed.total() == self.filled {
            (None, fixed)
        } else {
            let mut fitting = self.fitting_formats();
            let (index, counts) = fitting.next()?;
            if let Some((other, _)) = fitting.next() {
                return Some(Inferred {
                    data_type: DataType::Text,
                    format: None,
                    doubt: Some(TypeDoubt::DateFormats(index, other)),
                });
            }
            (Some(index), counts)
        };
        // Excel does not distinguish a date from its midnight, but a text that has no time is a date.
        let text_dates = counts.dates - self.raw_dates.dates;
        let (data_type, doubt) = if counts.total() == counts.dates {
            (DataType::Date, None)
        } else if counts.total() == counts.instants {
            (DataType::Datetime, None)
        } else if text_dates > 0 {
            (DataType::Text, None)
        } else if has_zone {
            (DataType::Datetime, None)
        } else {
            (DataType::Text, Some(TypeDoubt::NoZone))
        };
        Some(Inferred {
            data_type,
            format,
            doubt,
        })
    }
}

fn count_styles(counts: &mut [u64; 8], styles: u8) {
    for (index, count) in counts.iter_mut().enumerate() {
        *count += u64::from(styles >> index & 1);
    }
}

/// Returns whether a cell of a workbook is null. Times and dates are compared as the values that they become.
fn is_null_typed(cell: RawCell, rules: &CellRules<'_>) -> bool {
    value_of(cell).is_some_and(|value| rules.is_null_cell(&value))
}

fn value_of(cell: RawCell) -> Option<FileCell> {
    Some(match cell {
        RawCell::Boolean(flag) => FileCell::Boolean(flag),
        RawCell::Integer(number) | RawCell::Padded(number, _) => FileCell::Integer(number),
        RawCell::Float(number) => FileCell::Float(number),
        RawCell::Date(day) => FileCell::Date(day),
        RawCell::LocalTime(at) => FileCell::LocalTime(at),
        _ => return None,
    })
}

const fn is_no_number(cell: &RawCell) -> bool {
    matches!(
        cell,
        RawCell::Boolean(_) | RawCell::Date(_) | RawCell::LocalTime(_)
    )
}

/// Type of a column, and why it is a text if it could be something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inferred {
    pub(super) data_type: DataType,
    /// The format of its dates, by index.
    pub(super) format: Option<usize>,
    pub(super) doubt: Option<TypeDoubt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeDoubt {
    /// Most cells are numbers.
    TextNumbers,
    /// All cells are times or numbers, and there are some of both.
    MixedTimes,
    /// All cells are dates in either of two formats.
    DateFormats(usize, usize),
    /// All cells are times, of which some have no offset.
    NoZone,
}
