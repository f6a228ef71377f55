//! Values of cells.

use calamine::{DataRef, ExcelDateTime};
use time::{Date, Month, PrimitiveDateTime, Time};

use labdata_domain::data::write::cell::integer_to_float;

pub(super) use super::format::{CellFormat, Shown};
use crate::read::raw::{RawCell, RawRow};

/// First whole number that a float may hold in place of another one.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// First number beyond the days of Excel.
const MAX_DAY: f64 = 2_958_466.0;

/// Value of a cell that has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CellValue {
    Text(Box<str>),
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// A whole number that is shown with leading zeros, with the number of its digits.
    Padded(i64, u8),
    /// A number that is shown among these characters, such as `PL7`, or in another form if there are none.
    Labeled(f64, Box<str>),
    /// A number that is shown as a percentage.
    Percent(f64),
    Date(Date),
    LocalTime(PrimitiveDateTime),
    /// A time of day in microseconds.
    Clock(i64),
    /// An elapsed time in microseconds.
    Elapsed(i64),
    Error(Box<str>),
    /// A formula without a stored value.
    Formula,
}

impl CellValue {
    /// Reads a cell; `None` for blank ones.
    pub(super) fn of(cell: &DataRef<'_>, format: &CellFormat) -> Option<Self> {
        match cell {
            DataRef::Bool(flag) => Some(Self::Boolean(*flag)),
            DataRef::Int(number) => Some(formatted(Self::Integer(*number), format)),
            // Excel stores every number as a float, whole ones too.
            DataRef::Float(number) => Some(formatted(number_of(*number), format)),
            DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
                text_of(text)
            }
            DataRef::SharedString(text) => text_of(text),
            DataRef::DateTime(time) => Some(time_of(time, format.is_time)),
            DataRef::Error(error) => Some(Self::Error(error.to_string().into())),
            DataRef::Empty => None,
        }
    }

    pub(super) fn push_to(&self, row: &mut RawRow) -> RawCell {
        match self {
            // A text of a workbook is as it is, without quotation marks.
            Self::Text(text) => RawCell::Quoted(row.push_text(text)),
            Self::Boolean(flag) => RawCell::Boolean(*flag),
            Self::Integer(number) => RawCell::Integer(*number),
            Self::Float(number) => RawCell::Float(*number),
            Self::Padded(number, digits) => RawCell::Padded(*number, *digits),
            Self::Labeled(number, label) => RawCell::Labeled(*number, row.push_text(label)),
            Self::Percent(number) => RawCell::Percent(*number),
            Self::Date(day) => RawCell::Date(*day),
            Self::LocalTime(at) => RawCell::LocalTime(*at),
            Self::Clock(micros) => RawCell::Clock(*micros),
            Self::Elapsed(micros) => RawCell::Elapsed(*micros),
            Self::Error(text) => RawCell::Error(row.push_text(text)),
            Self::Formula => RawCell::Formula,
        }
    }
}

fn number_of(number: f64) -> CellValue {
    let is_whole = number.fract() == 0.0 && number.abs() < FIRST_INEXACT;
    let whole = is_whole.then(|| format!("{number:.0}").parse().ok());
    whole
        .flatten()
        .map_or(CellValue::Float(number), CellValue::Integer)
}

fn formatted(value: CellValue, format: &CellFormat) -> CellValue {
    let number = match value {
        CellValue::Integer(number) => integer_to_float(number),
        CellValue::Float(number) => number,
        value => return value,
    };
    match (format.shown(number), value) {
        (Shown::Number, value) => value,
        (Shown::Padded(digits), CellValue::Integer(number)) => CellValue::Padded(number, *digits),
        // The format would round it besides.
        (Shown::Padded(_) | Shown::Zeros, _) => CellValue::Labeled(number, "".into()),
        (Shown::Percent, _) => CellValue::Percent(number),
        (Shown::Labeled(label), _) => CellValue::Labeled(number, label.clone()),
    }
}

fn text_of(text: &str) -> Option<CellValue> {
    // A cell of blanks shows nothing.
    (!text.trim().is_empty()).then(|| CellValue::Text(text.into()))
}

/// Reads a date, a date with a time, a time of day or an elapsed time.
fn time_of(time: &ExcelDateTime, is_time_format: bool) -> CellValue {
    let days = time.as_f64();
    let micros = || {
        format!("{:.0}", days * 86_400e6)
            .parse()
            .unwrap_or(i64::MAX)
    };
    if time.is_duration() {
        return CellValue::Elapsed(micros());
    }
    // In the system that begins in 1904, day 0 is the first of its dates.
    let has_day_0 = || time.to_ymd_hms_milli().0 >= 1904;
    if (0.0..1.0).contains(&days) && (is_time_format || !has_day_0()) {
        // Day 0 has no date: it is a time of day.
        return CellValue::Clock(micros());
    }
    if is_time_format {
        return CellValue::Elapsed(micros());
    }
    // No date, although the format says so; Excel displays only `#` for it.
    if !(0.0..MAX_DAY).contains(&days) {
        return number_of(days);
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let date = Month::try_from(month)
        .ok()
        .and_then(|month| Date::from_calendar_date(i32::from(year), month, day).ok());
    let clock = Time::from_hms_milli(hour, minute, second, milli).ok();
    match (date, clock) {
        // Excel does not distinguish a date from its midnight.
        (Some(date), Some(clock)) if clock == Time::MIDNIGHT => CellValue::Date(date),
        (Some(date), Some(clock)) => CellValue::LocalTime(PrimitiveDateTime::new(date, clock)),
        // Excel has a 29 February 1900, which no calendar has.
        _ => CellValue::Float(days),
    }
}

#[cfg(test)]
mod tests {
    use calamine::ExcelDateTimeType;
    use time::macros::{date, datetime};

    use super::*;

    fn at(days: f64, is_time_format: bool) -> CellValue {
        let time = ExcelDateTime::new(days, ExcelDateTimeType::DateTime, false);
        time_of(&time, is_time_format)
    }

    #[test]
    fn times_of_a_day_or_more_are_elapsed() {
        for (days, expected) in [
            (0.0, CellValue::Clock(0)),
            (0.5, CellValue::Clock(43_200_000_000)),
            (1.0, CellValue::Elapsed(86_400_000_000)),
            (1.010_416_666_666_667, CellValue::Elapsed(87_300_000_000)),
            (
                -0.041_666_666_666_666_66,
                CellValue::Elapsed(-3_600_000_000),
            ),
        ] {
            assert_eq!(at(days, true), expected, "{days}");
        }
        let duration = ExcelDateTime::new(0.5, ExcelDateTimeType::TimeDelta, false);
        assert_eq!(
            time_of(&duration, false),
            CellValue::Elapsed(43_200_000_000)
        );
    }

    #[test]
    fn dates_are_dates_and_other_numbers_are_numbers() {
        assert_eq!(at(46_082.0, false), CellValue::Date(date!(2026 - 03 - 01)));
        assert_eq!(
            at(46_082.5, false),
            CellValue::LocalTime(datetime!(2026-03-01 12:00))
        );
        assert_eq!(at(60.0, false), CellValue::Float(60.0));
        assert_eq!(at(-1.0, false), CellValue::Integer(-1));
        assert_eq!(at(3e6, false), CellValue::Integer(3_000_000));
        let last = CellValue::Date(date!(9999 - 12 - 31));
        assert_eq!(at(2_958_465.0, false), last);
        assert_eq!(at(2_958_466.0, false), CellValue::Integer(2_958_466));
        let largest = CellValue::Integer(9_007_199_254_740_991);
        assert_eq!(number_of(9_007_199_254_740_991.0), largest);
        assert_eq!(number_of(FIRST_INEXACT), CellValue::Float(FIRST_INEXACT));
        assert_eq!(number_of(-FIRST_INEXACT), CellValue::Float(-FIRST_INEXACT));
        assert_eq!(number_of(3.0), CellValue::Integer(3));
        assert_eq!(number_of(0.5), CellValue::Float(0.5));
        assert_eq!(number_of(1e300), CellValue::Float(1e300));
    }

    #[test]
    fn formats_of_times_have_no_date() {
        for code in [
            "h:mm",
            "h:mm:ss",
            "mm:ss.0",
            "h:mm:ss AM/PM",
            "hh:mm;@",
            "[$-409]h:mm",
            "[h]:mm:ss",
            "h\\d",
            "_dh*d",
            "h\"d\"",
            "[d]h;d",
        ] {
            assert!(CellFormat::of(code).is_time, "{code}");
        }
        for code in [
            "m/d/yy h:mm",
            "yyyy-mm-dd",
            "0.00",
            "dd/mm hh:mm",
            "General",
            "0\"s\"",
            "e h",
            "gg hh",
            "0;h",
            "\\h",
            "D HH",
        ] {
            assert!(!CellFormat::of(code).is_time, "{code}");
        }
    }

    #[test]
    fn day_0_of_the_system_of_1904_is_a_date_unless_it_is_shown_as_a_time() {
        let at = |days: f64, is_time_format| {
            let time = ExcelDateTime::new(days, ExcelDateTimeType::DateTime, true);
            time_of(&time, is_time_format)
        };
        for (days, is_time_format, expected) in [
            (0.0, false, CellValue::Date(date!(1904 - 01 - 01))),
            (
                0.5,
                false,
                CellValue::LocalTime(datetime!(1904-01-01 12:00)),
            ),
            (1.0, false, CellValue::Date(date!(1904 - 01 - 02))),
            (0.0, true, CellValue::Clock(0)),
            (0.5, true, CellValue::Clock(43_200_000_000)),
        ] {
            assert_eq!(at(days, is_time_format), expected, "{days}");
        }
    }
}
