//! Cells of a row, packed.

use bytes::{Buf, BufMut};
use time::{Date, PrimitiveDateTime, Time};

use super::cell::CellValue;

const TEXT: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const DATE: u8 = 5;
const LOCAL_TIME: u8 = 6;
const CLOCK: u8 = 7;
const ELAPSED: u8 = 8;
const ERROR: u8 = 9;
const FORMULA: u8 = 10;
const PADDED: u8 = 11;
const LABELED: u8 = 12;
const PERCENT: u8 = 13;

/// Columns and values of a row's cells, in order. A sheet is in memory as a whole, and a number takes 13 bytes here in
/// place of 40.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedCells {
    bytes: Vec<u8>,
    last_column: Option<u32>,
}

impl PackedCells {
    /// Appends a cell.
    pub(super) fn push(&mut self, column: u32, value: &CellValue) {
        self.last_column = Some(column);
        self.bytes.put_u32_le(column);
        put(value, &mut self.bytes);
    }

    /// The column of the last cell.
    pub(super) const fn last_column(&self) -> Option<u32> {
        self.last_column
    }

    /// Returns memory that was reserved for further cells.
    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// The cells, with their columns.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, CellValue)> {
        let mut bytes = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let column = bytes.try_get_u32_le().ok()?;
            Some((column, take(&mut bytes)?))
        })
    }

    /// The cells, to be changed.
    pub(super) fn unpacked(&self) -> Vec<(u32, CellValue)> {
        self.iter().collect()
    }
}

impl FromIterator<(u32, CellValue)> for PackedCells {
    fn from_iter<I: IntoIterator<Item = (u32, CellValue)>>(cells: I) -> Self {
        let mut packed = Self::default();
        for (column, value) in cells {
            packed.push(column, &value);
        }
        packed.shrink_to_fit();
        packed
    }
}

fn put(value: &CellValue, to: &mut Vec<u8>) {
    match value {
        CellValue::Text(text) => put_text(TEXT, text, to),
        CellValue::Boolean(flag) => to.put_u8(if *flag { TRUE } else { FALSE }),
        CellValue::Integer(number) => put_i64(INTEGER, *number, to),
        CellValue::Float(number) => {
            to.put_u8(FLOAT);
            to.put_f64_le(*number);
        }
        CellValue::Padded(number, digits) => {
            put_i64(PADDED, *number, to);
            to.put_u8(*digits);
        }
        CellValue::Labeled(number, label) => {
            put_text(LABELED, label, to);
            to.put_f64_le(*number);
        }
        CellValue::Percent(number) => {
            to.put_u8(PERCENT);
            to.put_f64_le(*number);
        }
        CellValue::Date(day) => {
            to.put_u8(DATE);
            to.put_i32_le(day.to_julian_day());
        }
        CellValue::LocalTime(at) => {
            to.put_u8(LOCAL_TIME);
            to.put_i32_le(at.date().to_julian_day());
            let (hour, minute, second, nano) = at.as_hms_nano();
            to.put_slice(&[hour, minute, second]);
            to.put_u32_le(nano);
        }
        CellValue::Clock(micros) => put_i64(CLOCK, *micros, to),
        CellValue::Elapsed(micros) => put_i64(ELAPSED, *micros, to),
        CellValue::Error(text) => put_text(ERROR, text, to),
        CellValue::Formula => to.put_u8(FORMULA),
    }
}

fn put_text(kind: u8, text: &str, to: &mut Vec<u8>) {
    to.put_u8(kind);
    // Before its length, memory would end: the reader has 256 MiB.
    to.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
    to.put_slice(text.as_bytes());
}

fn put_i64(kind: u8, number: i64, to: &mut Vec<u8>) {
    to.put_u8(kind);
    to.put_i64_le(number);
}

/// Takes a value that [`put`] has put; `None` at the end.
fn take(from: &mut &[u8]) -> Option<CellValue> {
    Some(match from.try_get_u8().ok()? {
        TEXT => CellValue::Text(take_text(from)?),
        FALSE => CellValue::Boolean(false),
        TRUE => CellValue::Boolean(true),
        INTEGER => CellValue::Integer(from.try_get_i64_le().ok()?),
        FLOAT => CellValue::Float(from.try_get_f64_le().ok()?),
        DATE => CellValue::Date(take_day(from)?),
        LOCAL_TIME => {
            let day = take_day(from)?;
            let (hour, minute) = (from.try_get_u8().ok()?, from.try_get_u8().ok()?);
            let (second, nano) = (from.try_get_u8().ok()?, from.try_get_u32_le().ok()?);
            let time = Time::from_hms_nano(hour, minute, second, nano).ok()?;
            CellValue::LocalTime(PrimitiveDateTime::new(day, time))
        }
        PADDED => CellValue::Padded(from.try_get_i64_le().ok()?, from.try_get_u8().ok()?),
        LABELED => {
            let label = take_text(from)?;
            CellValue::Labeled(from.try_get_f64_le().ok()?, label)
        }
        PERCENT => CellValue::Percent(from.try_get_f64_le().ok()?),
        CLOCK => CellValue::Clock(from.try_get_i64_le().ok()?),
        ELAPSED => CellValue::Elapsed(from.try_get_i64_le().ok()?),
        ERROR => CellValue::Error(take_text(from)?),
        _ => CellValue::Formula,
    })
}

fn take_text(from: &mut &[u8]) -> Option<Box<str>> {
    let length = usize::try_from(from.try_get_u32_le().ok()?).ok()?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(std::str::from_utf8(text).ok()?.into())
}

fn take_day(from: &mut &[u8]) -> Option<Date> {
    Date::from_julian_day(from.try_get_i32_le().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn cells_come_back_as_they_were() {
        let values = [
            CellValue::Text("µ".into()),
            CellValue::Text("".into()),
            CellValue::Boolean(true),
            CellValue::Boolean(false),
            CellValue::Integer(i64::MIN),
            CellValue::Float(-0.5),
            CellValue::Date(date!(1899 - 12 - 31)),
            CellValue::LocalTime(datetime!(2026-03-01 23:59:58.123456789)),
            CellValue::Clock(1),
            CellValue::Elapsed(-1),
            CellValue::Error("#DIV/0!".into()),
            CellValue::Formula,
            CellValue::Padded(-7, 5),
            CellValue::Labeled(0.5, " mg".into()),
            CellValue::Percent(0.985),
        ];
        let cells: Vec<(u32, CellValue)> = (3..).step_by(7).zip(values).collect();
        let packed: PackedCells = cells.iter().cloned().collect();
        assert_eq!(packed.unpacked(), cells);
        assert_eq!(packed.last_column(), Some(101));
        assert_eq!(PackedCells::default().unpacked(), []);
        assert_eq!(PackedCells::default().last_column(), None);
    }
}
