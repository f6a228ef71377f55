//! Reads kinetic exports of Gen5, the software of Agilent's plate readers.
//!
//! The layout: lines of `name<TAB>value`, then a table that starts with the line
//! `Time<TAB>T° 600<TAB>A1<TAB>A2…`, with one line per read, until a blank line. Reads that were
//! planned but not taken are lines of `0:00:00` without values.

use std::collections::HashSet;

/// The file is not a kinetic export that this parser reads; the text names the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Gen5Error(String);

/// A kinetic measurement of a plate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KineticExport {
    /// Names and values of the header, in file order.
    pub(crate) header: Vec<(String, String)>,
    /// The wells, in file order.
    pub(crate) wells: Vec<Well>,
    /// Start of each read, in hours since the first.
    pub(crate) hours: Vec<f64>,
}

/// One well's curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Well {
    /// Name, such as `A1`.
    pub(crate) name: String,
    /// One value per read; `None` where the reader gave none.
    pub(crate) values: Vec<Option<f64>>,
}

/// Cells that stand for a missing value.
const NO_VALUE: [&str; 6] = ["", "OVRFLW", "?????", "*****", "-----", "NaN"];

impl KineticExport {
    /// Reads an export in UTF-8, UTF-16 with a mark, or a single-byte encoding.
    ///
    /// # Errors
    /// [`Gen5Error`], naming the first line that is wrong.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Gen5Error> {
        let text = decode(bytes);
        let mut lines = text.lines().zip(1_usize..);
        let mut header = Vec::new();
        let (names, values_from) = loop {
            let Some((line, number)) = lines.next() else {
                return Err(Gen5Error(
                    "no kinetic table was found: it begins with a line of Time, T° and the wells, \
                     separated by tabs"
                        .to_owned(),
                ));
            };
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            if let Some(found) = table_head(&cells, number)? {
                break found;
            }
            if let [name, value] = cells.as_slice()
                && !name.is_empty()
                && !value.is_empty()
            {
                header.push((name.trim_end_matches(':').to_owned(), (*value).to_owned()));
            }
        };
        let mut wells: Vec<Well> = names
            .into_iter()
            .map(|name| Well {
                name,
                values: Vec::new(),
            })
            .collect();
        let mut hours: Vec<f64> = Vec::new();
        for (line, number) in lines {
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            let Some((time, rest)) = cells.split_first() else {
                break;
            };
            if cells.iter().all(|cell| cell.is_empty()) {
                break;
            }
            let at = hours_of(time).ok_or_else(|| {
                Gen5Error(format!(
                    "line {number}: {time:?} is no time such as 0:10:00"
                ))
            })?;
            if at == 0.0 && rest.iter().all(|cell| cell.is_empty()) {
                continue;
            }
            if hours.last().is_some_and(|last| at <= *last) {
                return Err(Gen5Error(format!(
                    "line {number}: the read at {time} does not come after the one before it"
                )));
            }
            read_values(
                cells.get(values_from..).unwrap_or_default(),
                &mut wells,
                number,
            )?;
            hours.push(at);
        }
        if hours.is_empty() {
            return Err(Gen5Error("the kinetic table has no reads".to_owned()));
        }
        Ok(Self {
            header,
            wells,
            hours,
        })
    }
}

/// Parses the table's first line: the wells, and the index of the first well's cell.
fn table_head(cells: &[&str], number: usize) -> Result<Option<(Vec<String>, usize)>, Gen5Error> {
    let Some(values_from) = cells.iter().position(|cell| is_well(cell)) else {
        return Ok(None);
    };
    // Time, then usually a temperature.
    if cells.first() != Some(&"Time") || values_from > 2 {
        return Ok(None);
    }
    let mut names = Vec::new();
    let mut known = HashSet::new();
    let mut columns: Vec<&str> = cells.iter().skip(values_from).copied().collect();
    while columns.last().is_some_and(|cell| cell.is_empty()) {
        columns.pop();
    }
    for name in columns {
        if !is_well(name) {
            return Err(Gen5Error(format!(
                "line {number}: {name:?} is no well such as A1"
            )));
        }
        if !known.insert(name) {
            return Err(Gen5Error(format!(
                "line {number}: the well {name} stands there twice"
            )));
        }
        names.push(name.to_owned());
    }
    Ok(Some((names, values_from)))
}

/// `A1` to `AF48`: plates have up to 1,536 wells.
fn is_well(cell: &str) -> bool {
    let row = cell.bytes().take_while(u8::is_ascii_uppercase).count();
    let column = cell.get(row..).unwrap_or_default();
    (1..=2).contains(&row)
        && (1..=2).contains(&column.len())
        && column.bytes().all(|byte| byte.is_ascii_digit())
        && !column.starts_with('0')
}

/// Parses `H:MM:SS` into hours.
fn hours_of(time: &str) -> Option<f64> {
    let number = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let mut parts = time.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || minutes.len() != 2 || seconds.len() != 2 {
        return None;
    }
    let (hours, minutes, seconds) = (number(hours)?, number(minutes)?, number(seconds)?);
    let total = hours
        .checked_mul(3600)?
        .checked_add(minutes * 60 + seconds)?;
    (minutes < 60 && seconds < 60).then(|| f64::from(total) / 3600.0)
}

fn read_values(cells: &[&str], wells: &mut [Well], number: usize) -> Result<(), Gen5Error> {
    let (values, more) = cells.split_at_checked(wells.len()).ok_or_else(|| {
        Gen5Error(format!(
            "line {number}: {} values for {} wells",
            cells.len(),
            wells.len()
        ))
    })?;
    if more.iter().any(|cell| !cell.is_empty()) {
        return Err(Gen5Error(format!(
            "line {number}: {} values for {} wells",
            cells.len(),
            wells.len()
        )));
    }
    for (cell, well) in values.iter().zip(wells) {
        let value = value_of(cell).map_err(|NoNumber| {
            Gen5Error(format!(
                "line {number}: {} holds {cell:?}, which is no number",
                well.name
            ))
        })?;
        well.values.push(value);
    }
    Ok(())
}

/// The cell holds neither a number nor a known mark of a missing value.
struct NoNumber;

/// Parses a number with a decimal point or comma, or a missing value.
fn value_of(cell: &str) -> Result<Option<f64>, NoNumber> {
    if NO_VALUE.contains(&cell) {
        return Ok(None);
    }
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.,eE".contains(&byte);
    if !cell.bytes().all(plain) {
        return Err(NoNumber);
    }
    let number: f64 = cell.replace(',', ".").parse().map_err(|_| NoNumber)?;
    if number.is_finite() {
        Ok(Some(number))
    } else {
        Err(NoNumber)
    }
}

/// Decodes UTF-16 by its byte order mark, else UTF-8 if valid, else one byte per character.
fn decode(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
        char::decode_utf16(units)
            .map(|unit| unit.unwrap_or('\u{fffd}'))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            std::str::from_utf8(bytes).map_or_else(
                |_| bytes.iter().copied().map(char::from).collect(),
                str::to_owned,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "\r\nPlate Number\tPlate 2\r\nTime\t12:30:01 PM\r\nReader Type:\tX\r\n\r\n600\r\n\r\n\
        Time\tT° 600\tA1\tB12\r\n0:00:30\t37.0\t-0.066\tOVRFLW\r\n1:30:00\t37.1\t0.5\t1.25\r\n\
        0:00:00\r\n0:00:00\t\t\t\r\n\r\nResults\r\n\t1\t2\r\n";

    fn header_value<'a>(export: &'a KineticExport, name: &str) -> Option<&'a str> {
        let mut fields = export.header.iter();
        fields
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    fn error(text: &str) -> String {
        KineticExport::parse(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn reads_wells_times_and_facts() {
        let export = KineticExport::parse(SMALL.as_bytes()).unwrap();
        assert_eq!(export.hours, [30.0 / 3600.0, 1.5]);
        assert_eq!(export.wells[0].values, [Some(-0.066), Some(0.5)]);
        assert_eq!(
            (export.wells[1].name.as_str(), export.wells[1].values[0]),
            ("B12", None)
        );
        assert_eq!(header_value(&export, "Reader Type"), Some("X"));
        assert_eq!(header_value(&export, "Time"), Some("12:30:01 PM"));
    }

    #[test]
    fn every_usual_encoding_reads_the_same() {
        let expected = KineticExport::parse(SMALL.as_bytes()).unwrap();
        let little: Vec<u8> = [0xfeff]
            .into_iter()
            .chain(SMALL.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let big: Vec<u8> = [0xfeff]
            .into_iter()
            .chain(SMALL.encode_utf16())
            .flat_map(u16::to_be_bytes)
            .collect();
        let latin: Vec<u8> = SMALL
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        let unix = SMALL.replace("\r\n", "\n").into_bytes();
        let marked = [b"\xef\xbb\xbf", SMALL.as_bytes()].concat();
        for bytes in [little, big, latin, unix, marked] {
            assert_eq!(KineticExport::parse(&bytes), Ok(expected.clone()));
        }
    }

    #[test]
    fn a_comma_may_stand_for_the_point() {
        let export = KineticExport::parse(SMALL.replace("1.25", "1,25").as_bytes()).unwrap();
        assert_eq!(export.wells[1].values[1], Some(1.25));
    }

    #[test]
    fn errors_name_the_line() {
        assert!(error("").starts_with("no kinetic table"));
        assert!(error("Time\t1:00\nA1\tB1\n").starts_with("no kinetic table"));
        assert!(error("Time\tT\tA1\n\n").contains("no reads"));
        assert_eq!(
            error("Time\tT\tA1\tA1\n"),
            "line 1: the well A1 stands there twice"
        );
        assert_eq!(
            error("Time\tT\tA1\tsum\n"),
            "line 1: \"sum\" is no well such as A1"
        );
        assert_eq!(
            error("Time\tT\tA1\n12 s\t1\t2\n"),
            "line 2: \"12 s\" is no time such as 0:10:00"
        );
        assert_eq!(
            error("Time\tT\tA1\n0:61:00\t1\t2\n"),
            "line 2: \"0:61:00\" is no time such as 0:10:00"
        );
        assert_eq!(
            error("Time\tT\tA1\tA2\n0:01:00\t1\t2\n"),
            "line 2: 1 values for 2 wells"
        );
        assert_eq!(
            error("Time\tT\tA1\n0:01:00\t1\t2\t3\n"),
            "line 2: 2 values for 1 wells"
        );
        assert_eq!(
            error("Time\tA1\n0:01:00\tnone\n"),
            "line 2: A1 holds \"none\", which is no number"
        );
        assert_eq!(
            error("Time\tA1\n0:01:00\t1.2.3\n"),
            "line 2: A1 holds \"1.2.3\", which is no number"
        );
        assert_eq!(
            error("Time\tA1\n0:01:00\t1e999\n"),
            "line 2: A1 holds \"1e999\", which is no number"
        );
        assert!(
            error("Time\tA1\n0:02:00\t1\n0:01:00\t1\n").starts_with("line 3: the read at 0:01:00")
        );
        assert!(error("Time\tA1\n9999999:00:00\t1\n").starts_with("line 2"));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for end in 0..SMALL.len() {
            let _ = KineticExport::parse(&SMALL.as_bytes()[..end]);
        }
        let _ = KineticExport::parse(&[0xff, 0xfe, 0x00]);
        let _ = KineticExport::parse(&(0..=255).collect::<Vec<u8>>());
    }
}
