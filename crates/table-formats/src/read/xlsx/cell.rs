//! Values of cells, and the types of their columns.

use std::collections::BTreeSet;

use calamine::{DataRef, ExcelDateTime};
use labdata_domain::{
    data::write::{FileCell, is_missing},
    scalar::{DataType, Values},
    timestamp,
};
use time::{Date, Month, PrimitiveDateTime, Time};

/// Largest whole number that Excel stores exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Value of a cell that has one.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::read) enum CellValue {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Date(Date),
    /// A date with a time, without a time zone.
    LocalTime(PrimitiveDateTime),
    Text(String),
}

impl CellValue {
    /// Reads a cell; `None` for blank ones and for errors such as `#N/A`.
    pub(super) fn of(cell: &DataRef<'_>) -> Option<Self> {
        match cell {
            DataRef::Bool(flag) => Some(Self::Boolean(*flag)),
            DataRef::Int(number) => Some(Self::Integer(*number)),
            // Excel stores every number as a float, whole ones too.
            DataRef::Float(number) => Some(number_of(*number)),
            DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
                text_of(text)
            }
            DataRef::SharedString(text) => text_of(text),
            DataRef::DateTime(time) => Some(time_of(time)),
            DataRef::Error(_) | DataRef::Empty => None,
        }
    }

    /// Renders the value as a text.
    pub(in crate::read) fn into_text(self) -> String {
        match self {
            Self::Boolean(flag) => flag.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Date(date) => timestamp::render_date(date),
            Self::LocalTime(time) => local(time),
            Self::Text(text) => text,
        }
    }

    /// Appends the value to a column of a type that [`SheetColumn::data_type`] found.
    pub(super) fn push_to(self, values: &mut Values) {
        match (values, self) {
            (Values::Boolean(column), Self::Boolean(flag)) => column.push(Some(flag)),
            (Values::Integer(column), Self::Integer(number)) => column.push(Some(number)),
            (Values::Float(column), Self::Float(number)) => column.push(Some(number)),
            (Values::Float(column), Self::Integer(number)) => {
                // Not above 2^53, or else from a file that says so: the text reads back the same.
                column.push(number.to_string().parse().ok());
            }
            (Values::Date(column), Self::Date(date)) => column.push(Some(date)),
            (Values::Date(column), Self::Text(text)) => column.push(timestamp::parse_date(&text)),
            (Values::Datetime(column), Self::Text(text)) => column.push(timestamp::parse(&text)),
            (Values::Text(column), Self::Date(date)) => {
                column.push(Some(timestamp::render_date(date)));
            }
            (Values::Text(column), value) => column.push(Some(value.into_text())),
            // A text that marks a missing value.
            (values, _) => values.push_null(),
        }
    }
}

impl From<CellValue> for FileCell {
    fn from(value: CellValue) -> Self {
        match value {
            CellValue::Boolean(flag) => Self::Boolean(flag),
            CellValue::Integer(number) => Self::Integer(number),
            CellValue::Float(number) => Self::Float(number),
            CellValue::Date(date) => Self::Date(date),
            CellValue::LocalTime(time) => Self::LocalTime(time),
            CellValue::Text(text) => Self::Text(text),
        }
    }
}

fn number_of(number: f64) -> CellValue {
    let is_whole = number.fract() == 0.0 && number.abs() <= MAX_WHOLE;
    let whole = is_whole.then(|| format!("{number:.0}").parse().ok());
    whole
        .flatten()
        .map_or(CellValue::Float(number), CellValue::Integer)
}

fn text_of(text: &str) -> Option<CellValue> {
    let text = text.trim();
    (!text.is_empty()).then(|| CellValue::Text(text.to_owned()))
}

/// Reads a date, a date with a time, or a time of day or a duration, which is a text.
fn time_of(time: &ExcelDateTime) -> CellValue {
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    // Day 0 has no date: it is a time of day.
    if time.is_duration() || time.as_f64() < 1.0 {
        let seconds = (time.as_f64() * 86_400.0).round();
        let total: u64 = format!("{seconds:.0}").parse().unwrap_or(0);
        let (hours, minutes) = (total / 3_600, total / 60 % 60);
        return CellValue::Text(format!("{hours:02}:{minutes:02}:{:02}", total % 60));
    }
    let date = Month::try_from(month)
        .ok()
        .and_then(|month| Date::from_calendar_date(i32::from(year), month, day).ok());
    let clock = Time::from_hms_milli(hour, minute, second, milli).ok();
    match (date, clock) {
        // Excel does not distinguish a date from its midnight.
        (Some(date), Some(clock)) if clock == Time::MIDNIGHT => CellValue::Date(date),
        (Some(date), Some(clock)) => CellValue::LocalTime(PrimitiveDateTime::new(date, clock)),
        // Excel has a 29 February 1900, which no calendar has.
        _ => CellValue::Float(time.as_f64()),
    }
}

/// Renders a time without a time zone: ISO 8601 without an offset.
fn local(time: PrimitiveDateTime) -> String {
    let text = timestamp::render(time.assume_utc());
    text.trim_end_matches('Z').to_owned()
}

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueKind {
    Boolean,
    Integer,
    Float,
    Date,
    Text,
}

/// Kinds of values that a column has.
#[derive(Clone, Debug)]
pub(super) struct SheetColumn {
    kinds: BTreeSet<ValueKind>,
    /// True while all texts are ISO 8601 dates.
    are_dates: bool,
    /// True while all texts are RFC 3339 datetimes.
    are_datetimes: bool,
}

impl Default for SheetColumn {
    fn default() -> Self {
        Self {
            kinds: BTreeSet::new(),
            are_dates: true,
            are_datetimes: true,
        }
    }
}

impl SheetColumn {
    /// Takes the next value.
    pub(super) fn add(&mut self, value: &CellValue) {
        let kind = match value {
            CellValue::Boolean(_) => ValueKind::Boolean,
            CellValue::Integer(_) => ValueKind::Integer,
            CellValue::Float(_) => ValueKind::Float,
            CellValue::Date(_) => ValueKind::Date,
            // A text in a table: there is no type for it.
            CellValue::LocalTime(_) => {
                self.are_dates = false;
                self.are_datetimes = false;
                ValueKind::Text
            }
            CellValue::Text(text) if is_missing(text) => return,
            CellValue::Text(text) => {
                self.are_dates &= timestamp::parse_date(text).is_some();
                self.are_datetimes &= timestamp::parse(text).is_some();
                ValueKind::Text
            }
        };
        self.kinds.insert(kind);
    }

    /// Returns the type that all values have.
    pub(super) fn data_type(&self) -> DataType {
        let kinds: Vec<ValueKind> = self.kinds.iter().copied().collect();
        match kinds.as_slice() {
            [ValueKind::Boolean] => DataType::Boolean,
            [ValueKind::Integer] => DataType::Integer,
            [ValueKind::Float] | [ValueKind::Integer, ValueKind::Float] => DataType::Float,
            [ValueKind::Date] => DataType::Date,
            [ValueKind::Text] | [ValueKind::Date, ValueKind::Text] if self.are_dates => {
                DataType::Date
            }
            [ValueKind::Text] if self.are_datetimes => DataType::Datetime,
            _ => DataType::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    fn column(values: &[CellValue]) -> (DataType, Values) {
        let mut column = SheetColumn::default();
        for value in values {
            column.add(value);
        }
        let mut read = Values::with_capacity(column.data_type(), 0);
        for value in values {
            value.clone().push_to(&mut read);
        }
        (column.data_type(), read)
    }

    fn text(text: &str) -> CellValue {
        CellValue::Text(text.to_owned())
    }

    #[test]
    fn numbers_are_whole_or_not() {
        assert_eq!(number_of(3.0), CellValue::Integer(3));
        assert_eq!(number_of(-0.5), CellValue::Float(-0.5));
        assert_eq!(number_of(1e300), CellValue::Float(1e300));
        let (of, values) = column(&[CellValue::Integer(1), CellValue::Float(0.5), text("N/A")]);
        assert_eq!(of, DataType::Float);
        assert_eq!(values, Values::Float(vec![Some(1.0), Some(0.5), None]));
        assert_eq!(column(&[CellValue::Integer(1)]).0, DataType::Integer);
    }

    #[test]
    fn dates_are_dates_and_times_are_texts() {
        let day = CellValue::Date(date!(2026 - 03 - 01));
        assert_eq!(column(&[day.clone(), text("2026-03-02")]).0, DataType::Date);
        let time = CellValue::LocalTime(datetime!(2026-03-01 12:30:00));
        let (of, values) = column(&[time, day.clone()]);
        assert_eq!(of, DataType::Text);
        let texts = ["2026-03-01T12:30:00", "2026-03-01"];
        let texts = texts.map(|text| Some(text.to_owned()));
        assert_eq!(values, Values::Text(texts.into()));
        assert_eq!(column(&[text("01.03.2026")]).0, DataType::Text);
        assert_eq!(
            column(&[text("2026-03-01T12:00:00Z")]).0,
            DataType::Datetime
        );
        assert_eq!(column(&[day, CellValue::Integer(1)]).0, DataType::Text);
    }

    #[test]
    fn mixed_values_are_texts() {
        let (of, values) = column(&[CellValue::Boolean(true), CellValue::Integer(7), text("x")]);
        assert_eq!(of, DataType::Text);
        let texts = ["true", "7", "x"].map(|text| Some(text.to_owned()));
        assert_eq!(values, Values::Text(texts.into()));
        assert_eq!(column(&[CellValue::Boolean(true)]).0, DataType::Boolean);
        assert_eq!(column(&[text("007")]).0, DataType::Text);
    }
}
