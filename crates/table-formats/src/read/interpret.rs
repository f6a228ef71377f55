//! Values of cells in a column of a type.

use jiff::tz::TimeZone;
use labdata_domain::{
    data::write::{FileCell, UnreadDate},
    scalar::DataType,
    timestamp,
};
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::{
    cell_unit::{is_percent, is_same_unit, may_be_fraction, percentage},
    date::{
        DateFormat, LocalTimeProblem, Moment, in_zone, read_any_iso, render_clock, render_duration,
    },
    doubt::RowProblem,
    exact::{FIRST_INEXACT, is_exact_float, is_whole, render_padded},
    number::{Number, NumberStyle, is_infinite},
    raw::{RawCell, RawRow},
    survey::CellRules,
};

/// A cell as a value of its column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Interpreted {
    Null,
    /// A text in a column of numbers.
    NullTextNumber,
    /// An error, or a formula without a value.
    NullErrorCell,
    Value(FileCell),
    Refused(RowProblem),
}

/// Reading of the cells of a column.
#[derive(Clone, Debug)]
pub(super) struct ColumnReading {
    pub(super) data_type: DataType,
    /// Formats of its dates, besides ISO 8601.
    pub(super) formats: Vec<DateFormat>,
    /// Formats in which its texts are dates, but which an import must be given.
    pub(super) unread_formats: Vec<DateFormat>,
    /// True if times of day are elapsed times, as others of the column are.
    pub(super) has_elapsed: bool,
    /// True if some cells are times, and others numbers, whose unit may be another than seconds.
    pub(super) mixes_times: bool,
    pub(super) percents: PercentContext,
    /// Unit of the values: of the table's column, or else of the file's.
    pub(super) unit: Option<String>,
}

/// Signs in the rest of a column whose cells are percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PercentContext {
    /// True if other cells are plain numbers.
    pub(super) is_mixed: bool,
    /// True if the header says that the values are percentages.
    pub(super) is_named: bool,
}

impl ColumnReading {
    pub(super) const fn is_number(&self) -> bool {
        self.data_type.is_number()
    }
}

/// Reads the cells of a table.
pub(super) struct Interpreter<'o> {
    pub(super) rules: CellRules<'o>,
    pub(super) style: NumberStyle,
    pub(super) timezone: Option<&'o TimeZone>,
    pub(super) text_numbers_are_null: bool,
    /// True if a number of more digits than a float holds is none.
    pub(super) are_numbers_exact: bool,
    /// True for a file whose numbers may be others than those that were typed, beyond 15 digits.
    pub(super) are_numbers_rounded: bool,
}

impl Interpreter<'_> {
    /// Reads a cell. What is no value of the column's type stays as it is, for the column to refuse.
    pub(super) fn read(&self, row: &RawRow, cell: RawCell, column: &ColumnReading) -> Interpreted {
        let text = match cell {
            RawCell::Blank => return Interpreted::Null,
            RawCell::Quoted(span) | RawCell::Text(span) => row.span(span),
            RawCell::Error(span) => return self.error(row, Some(row.span(span)), column),
            RawCell::Formula => return self.error(row, None, column),
            _ => {
                return match self.typed(row, cell, column) {
                    Interpreted::Value(value) if self.rules.is_null_cell(&value) => {
                        Interpreted::Null
                    }
                    read => read,
                };
            }
        };
        if matches!(column.data_type, DataType::String | DataType::Text) {
            // Compared with its blanks, which belong to a text.
            if self.rules.is_null_text(text) {
                return Interpreted::Null;
            }
            return Interpreted::Value(FileCell::Text(normalized(text)));
        }
        let trimmed = text.trim();
        let nulls = self.rules.null_numbers;
        if self.rules.is_null(trimmed)
            || nulls.has_text(trimmed, self.style)
            // `-999.00` among numbers with decimal commas.
            || nulls.has_text_in_each_style(trimmed)
        {
            return Interpreted::Null;
        }
        match column.data_type {
            DataType::Integer | DataType::Float => self.number(trimmed, column.data_type),
            DataType::Datetime | DataType::Date => self.moment(row, trimmed, column),
            _ => Interpreted::Value(FileCell::Text(normalized(trimmed))),
        }
    }

    fn error(&self, row: &RawRow, text: Option<&str>, column: &ColumnReading) -> Interpreted {
        let is_text = matches!(column.data_type, DataType::String | DataType::Text);
        match text {
            Some(text) if !is_text && self.rules.is_null(text) => Interpreted::Null,
            _ if self.rules.error_cells_are_null => Interpreted::NullErrorCell,
            text => Interpreted::Refused(RowProblem::error_cell(row, text)),
        }
    }

    fn number(&self, text: &str, data_type: DataType) -> Interpreted {
        // A float that is no whole number exactly is no integer, and messages give the cell's own digits.
        match self.style.read(text) {
            Some(Number::Float(number)) if data_type == DataType::Integer && !is_whole(number) => {
                Interpreted::Value(match self.style.read_whole(text) {
                    Some(number) => FileCell::Integer(number),
                    None => FileCell::Text(text.to_owned()),
                })
            }
            Some(Number::Integer(number)) => Interpreted::Value(FileCell::Integer(number)),
            Some(Number::Float(_))
                if self.style.loses_digits(text)
                    || self.are_numbers_exact && !is_exact_float(text) =>
            {
                Interpreted::Value(FileCell::Text(text.to_owned()))
            }
            Some(Number::Float(number)) => Interpreted::Value(FileCell::Float(number)),
            // Infinity is a measurement that a number column cannot hold, never a missing one.
            None if self.text_numbers_are_null && !is_infinite(text, self.style) => {
                Interpreted::NullTextNumber
            }
            None => Interpreted::Value(FileCell::Text(text.to_owned())),
        }
    }

    fn moment(&self, row: &RawRow, text: &str, column: &ColumnReading) -> Interpreted {
        let no_date = || Interpreted::Value(FileCell::Text(text.to_owned()));
        // Before ISO 8601, which a format such as `%Y-%d-%m` contradicts.
        let found = column.formats.iter().find_map(|format| format.read(text));
        if let Some(moment) = found.or_else(|| read_any_iso(text)) {
            let of_moment = self.of_moment(row, moment, column.data_type);
            return of_moment.unwrap_or_else(no_date);
        }
        let formats = column.unread_formats.iter();
        let formats: Vec<String> = formats
            .filter(|format| format.read(text).is_some())
            .map(|format| format.as_str().to_owned())
            .collect();
        if formats.is_empty() {
            return no_date();
        }
        let text = text.to_owned();
        Interpreted::Value(FileCell::UnreadDate(Box::new(UnreadDate { text, formats })))
    }

    /// `None` for a point in time outside the years of four digits.
    fn of_moment(&self, row: &RawRow, moment: Moment, data_type: DataType) -> Option<Interpreted> {
        let Some(time) = moment.time else {
            return Some(Interpreted::Value(FileCell::Date(moment.date)));
        };
        if moment.offset.is_some() {
            let at = moment.instant()?;
            return Some(Interpreted::Value(instant(at, data_type)));
        }
        Some(self.local(row, PrimitiveDateTime::new(moment.date, time), data_type))
    }

    fn local(&self, row: &RawRow, local: PrimitiveDateTime, data_type: DataType) -> Interpreted {
        if data_type == DataType::Date && local.time() == Time::MIDNIGHT {
            return Interpreted::Value(FileCell::Date(local.date()));
        }
        // A column of dates refuses the time of day and does not drop it.
        let Some(zone) = self.timezone.filter(|_| data_type == DataType::Datetime) else {
            return Interpreted::Value(FileCell::LocalTime(local));
        };
        match in_zone(local, zone) {
            Ok(at) => Interpreted::Value(FileCell::Instant(at)),
            Err(problem) => Interpreted::Refused(clock_change(row, local, problem)),
        }
    }

    fn day(&self, row: &RawRow, day: Date, data_type: DataType) -> Interpreted {
        // A workbook does not distinguish a date from its midnight.
        if data_type == DataType::Datetime && self.timezone.is_some() {
            return self.local(row, PrimitiveDateTime::new(day, Time::MIDNIGHT), data_type);
        }
        Interpreted::Value(FileCell::Date(day))
    }

    fn float(&self, number: f64, data_type: DataType) -> FileCell {
        if self.are_numbers_rounded && data_type != DataType::Float && number.abs() >= FIRST_INEXACT
        {
            return FileCell::InexactNumber(number);
        }
        FileCell::Float(number)
    }

    /// Reads a number that a workbook shows among other characters. Only a unit that the column has leaves the
    /// number as a person sees it.
    fn labeled(
        &self,
        row: &RawRow,
        number: f64,
        label: &str,
        column: &ColumnReading,
    ) -> Interpreted {
        let is_text = matches!(column.data_type, DataType::String | DataType::Text);
        if is_text {
            return Interpreted::Refused(RowProblem::labeled_number(row, number));
        }
        let is_of_column = |unit: &String| is_same_unit(label, unit);
        if label.is_empty() || column.is_number() && column.unit.as_ref().is_some_and(is_of_column)
        {
            return Interpreted::Value(self.float(number, column.data_type));
        }
        if column.is_number() && self.text_numbers_are_null {
            return Interpreted::NullTextNumber;
        }
        let unit = column.unit.as_deref();
        Interpreted::Refused(RowProblem::other_label(row, number, label, unit))
    }

    /// Reads a number that a workbook shows as a percentage: its fraction, or what is shown in a column of
    /// percentages.
    fn percent(&self, row: &RawRow, number: f64, column: &ColumnReading) -> Interpreted {
        let unit = column.unit.as_deref();
        let is_percentage = unit.is_some_and(is_percent);
        // Which of both a plain number is, only the header can say.
        let is_doubtful = column.percents.is_mixed && !(is_percentage && column.percents.is_named);
        let is_other = !is_percentage && !unit.is_none_or(may_be_fraction);
        if column.is_number() && (is_doubtful || is_other) {
            let unit = unit.filter(|_| is_other);
            return Interpreted::Refused(RowProblem::percentage(row, percentage(number), unit));
        }
        let is_shown = column.is_number() && is_percentage;
        let number = if is_shown { percentage(number) } else { number };
        Interpreted::Value(self.float(number, column.data_type))
    }

    fn typed(&self, row: &RawRow, cell: RawCell, column: &ColumnReading) -> Interpreted {
        let is_number = column.is_number();
        let is_text = matches!(column.data_type, DataType::String | DataType::Text);
        let seconds = |micros: i64| {
            if micros % 1_000_000 == 0 {
                return FileCell::Integer(micros / 1_000_000);
            }
            // Parsing rounds once.
            let seconds = format!("{micros}e-6").parse();
            FileCell::Float(seconds.unwrap_or(f64::NAN))
        };
        let value = match cell {
            RawCell::Boolean(flag) => FileCell::Boolean(flag),
            RawCell::Padded(number, digits) if is_text => {
                FileCell::Text(render_padded(number, digits))
            }
            RawCell::Labeled(number, label) => {
                return self.labeled(row, number, row.span(label), column);
            }
            RawCell::Percent(number) => return self.percent(row, number, column),
            RawCell::Integer(number) | RawCell::Padded(number, _) => FileCell::Integer(number),
            RawCell::Float(number) => self.float(number, column.data_type),
            RawCell::Date(day) => return self.day(row, day, column.data_type),
            RawCell::LocalTime(local) => return self.local(row, local, column.data_type),
            RawCell::Instant(at) => instant(at, column.data_type),
            RawCell::Clock(micros) | RawCell::Elapsed(micros) if is_number => {
                if column.mixes_times {
                    return Interpreted::Refused(RowProblem::time_among_numbers(row, micros));
                }
                seconds(micros)
            }
            RawCell::Clock(micros) if !column.has_elapsed => FileCell::Text(render_clock(micros)),
            RawCell::Clock(micros) | RawCell::Elapsed(micros) => {
                FileCell::Text(render_duration(micros))
            }
            // The caller has taken blank cells, texts, errors and formulas.
            RawCell::Blank
            | RawCell::Text(_)
            | RawCell::Quoted(_)
            | RawCell::Error(_)
            | RawCell::Formula => return Interpreted::Null,
        };
        Interpreted::Value(value)
    }
}

fn clock_change(row: &RawRow, local: PrimitiveDateTime, problem: LocalTimeProblem) -> RowProblem {
    RowProblem {
        code: "clock_change",
        message: format!(
            "row {}: {}: {}",
            row.line,
            FileCell::LocalTime(local),
            problem.reason()
        ),
        options: Vec::new(),
    }
}

fn normalized(text: &str) -> String {
    if text.is_ascii() || is_nfc(text) {
        text.to_owned()
    } else {
        text.nfc().collect()
    }
}

fn instant(at: OffsetDateTime, data_type: DataType) -> FileCell {
    // Programs without a type for dates write the midnight.
    if data_type == DataType::Date && at.time() == Time::MIDNIGHT {
        return FileCell::Date(at.date());
    }
    // Its digits below a microsecond would vanish in silence.
    if !at.nanosecond().is_multiple_of(1_000) {
        return FileCell::Text(timestamp::render_exact(at));
    }
    FileCell::Instant(at)
}
