//! Rows as bytes.

use bytes::{Buf, BufMut, TryGetError};
use labdata_domain::data::write::{FileCell, UnreadDate};
use time::{Date, PrimitiveDateTime, Time, UtcOffset};

use crate::read::table::TableRow;

const NULL: u8 = 0;
const TEXT: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const FLOAT: u8 = 5;
const DATE: u8 = 6;
const LOCAL_TIME: u8 = 7;
const INSTANT: u8 = 8;
const UNREAD_DATE: u8 = 9;
const INEXACT: u8 = 10;

/// The bytes are no rows.
#[derive(Debug)]
pub(super) struct NoRows;

impl From<TryGetError> for NoRows {
    fn from(_: TryGetError) -> Self {
        Self
    }
}

/// Appends a row: its line, its problems, its cells.
pub(super) fn put_row(row: &TableRow<'_>, to: &mut Vec<u8>) {
    to.put_u64_le(row.line);
    to.put_u16_le(u16::try_from(row.problems.len()).unwrap_or(u16::MAX));
    for problem in row.problems.iter().take(usize::from(u16::MAX)) {
        put_text(problem, to);
    }
    for cell in row.cells.iter() {
        put_cell(cell.as_ref(), to);
    }
}

fn put_text(text: &str, to: &mut Vec<u8>) {
    // A text of 4 GiB does not fit a frame, and is refused with it.
    to.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
    to.put_slice(text.as_bytes());
}

fn put_cell(cell: Option<&FileCell>, to: &mut Vec<u8>) {
    match cell {
        None => to.put_u8(NULL),
        Some(FileCell::Text(text)) => {
            to.put_u8(TEXT);
            put_text(text, to);
        }
        Some(FileCell::Boolean(flag)) => to.put_u8(if *flag { TRUE } else { FALSE }),
        Some(FileCell::Integer(number)) => {
            to.put_u8(INTEGER);
            to.put_i64_le(*number);
        }
        Some(FileCell::Float(number)) => {
            to.put_u8(FLOAT);
            to.put_f64_le(*number);
        }
        Some(FileCell::Date(day)) => {
            to.put_u8(DATE);
            to.put_i32_le(day.to_julian_day());
        }
        Some(FileCell::LocalTime(at)) => {
            to.put_u8(LOCAL_TIME);
            put_local(*at, to);
        }
        Some(FileCell::UnreadDate(date)) => {
            to.put_u8(UNREAD_DATE);
            put_text(&date.text, to);
            to.put_u8(u8::try_from(date.formats.len()).unwrap_or(u8::MAX));
            for format in date.formats.iter().take(usize::from(u8::MAX)) {
                put_text(format, to);
            }
        }
        Some(FileCell::InexactNumber(number)) => {
            to.put_u8(INEXACT);
            to.put_f64_le(*number);
        }
        Some(FileCell::Instant(at)) => {
            to.put_u8(INSTANT);
            put_local(PrimitiveDateTime::new(at.date(), at.time()), to);
            to.put_i32_le(at.offset().whole_seconds());
        }
    }
}

fn put_local(at: PrimitiveDateTime, to: &mut Vec<u8>) {
    let (hour, minute, second, nano) = at.as_hms_nano();
    to.put_i32_le(at.date().to_julian_day());
    to.put_slice(&[hour, minute, second]);
    to.put_u32_le(nano);
}

/// Takes a row from the front of the bytes; fills `cells` and `problems`, and returns its line.
pub(super) fn take_row(
    from: &mut impl Buf,
    cells: &mut [Option<FileCell>],
    problems: &mut Vec<String>,
) -> Result<u64, NoRows> {
    let line = from.try_get_u64_le()?;
    problems.clear();
    for _ in 0..from.try_get_u16_le()? {
        problems.push(take_text(from)?);
    }
    for cell in cells {
        *cell = take_cell(from)?;
    }
    Ok(line)
}

fn take_text(from: &mut impl Buf) -> Result<String, NoRows> {
    let length = usize::try_from(from.try_get_u32_le()?).map_err(|_| NoRows)?;
    // Before memory is reserved.
    if length > from.remaining() {
        return Err(NoRows);
    }
    let mut bytes = vec![0; length];
    from.try_copy_to_slice(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| NoRows)
}

fn take_cell(from: &mut impl Buf) -> Result<Option<FileCell>, NoRows> {
    Ok(Some(match from.try_get_u8()? {
        NULL => return Ok(None),
        TEXT => FileCell::Text(take_text(from)?),
        FALSE => FileCell::Boolean(false),
        TRUE => FileCell::Boolean(true),
        INTEGER => FileCell::Integer(from.try_get_i64_le()?),
        FLOAT => FileCell::Float(from.try_get_f64_le()?),
        DATE => FileCell::Date(take_day(from)?),
        LOCAL_TIME => FileCell::LocalTime(take_local(from)?),
        INSTANT => {
            let local = take_local(from)?;
            let offset = UtcOffset::from_whole_seconds(from.try_get_i32_le()?);
            FileCell::Instant(local.assume_offset(offset.map_err(|_| NoRows)?))
        }
        UNREAD_DATE => {
            let text = take_text(from)?;
            let formats = (0..from.try_get_u8()?).map(|_| take_text(from));
            let formats = formats.collect::<Result<_, NoRows>>()?;
            FileCell::UnreadDate(Box::new(UnreadDate { text, formats }))
        }
        INEXACT => FileCell::InexactNumber(from.try_get_f64_le()?),
        _ => return Err(NoRows),
    }))
}

fn take_day(from: &mut impl Buf) -> Result<Date, NoRows> {
    Date::from_julian_day(from.try_get_i32_le()?).map_err(|_| NoRows)
}

fn take_local(from: &mut impl Buf) -> Result<PrimitiveDateTime, NoRows> {
    let day = take_day(from)?;
    let (hour, minute) = (from.try_get_u8()?, from.try_get_u8()?);
    let (second, nano) = (from.try_get_u8()?, from.try_get_u32_le()?);
    let time = Time::from_hms_nano(hour, minute, second, nano).map_err(|_| NoRows)?;
    Ok(PrimitiveDateTime::new(day, time))
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn a_row_is_taken_as_it_was_put_and_not_from_fewer_bytes() {
        let unread = UnreadDate {
            text: "05.03.2024".to_owned(),
            formats: vec!["%d.%m.%Y".to_owned(), "%m.%d.%Y".to_owned()],
        };
        let mut cells = [
            None,
            Some(FileCell::Text("\u{b5}l".to_owned())),
            Some(FileCell::Boolean(true)),
            Some(FileCell::Boolean(false)),
            Some(FileCell::Integer(i64::MIN)),
            Some(FileCell::Float(-0.5)),
            Some(FileCell::Date(date!(1899 - 12 - 31))),
            Some(FileCell::LocalTime(datetime!(2026-03-01 23:59:58.123456))),
            Some(FileCell::UnreadDate(Box::new(unread))),
            Some(FileCell::InexactNumber(1e300)),
            Some(FileCell::Instant(datetime!(2026-03-01 10:00 +1:30))),
        ];
        let problems = ["first", "second"].map(str::to_owned);
        let row = TableRow {
            line: 7,
            cells: &mut cells,
            problems: &problems,
        };
        let mut bytes = Vec::new();
        put_row(&row, &mut bytes);
        let (mut found, mut found_problems) = (vec![None; 11], vec!["stale".to_owned()]);
        let mut rest = bytes.as_slice();
        let line = take_row(&mut rest, &mut found, &mut found_problems).unwrap();
        assert_eq!((line, rest), (7, &[][..]));
        assert_eq!(
            (found.as_slice(), found_problems.as_slice()),
            (&cells[..], &problems[..])
        );
        for end in 0..bytes.len() {
            let mut cut = &bytes[..end];
            assert!(
                take_row(&mut cut, &mut found, &mut found_problems).is_err(),
                "{end}"
            );
        }
        assert!(take_cell(&mut &[INEXACT + 1; 16][..]).is_err());
    }
}
