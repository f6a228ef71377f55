mod package;

use std::io::{Cursor, Write};

use proptest::prelude::*;
use time::macros::date;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use self::package::{PACKAGE, RELATIONS, WORKBOOK};
use super::{archive::ArchiveLimits, *};
use crate::read::guarded::open_guarded;

/// Style 1 is a date.
const STYLES: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>"#;

/// A workbook with that sheet and these shared texts.
fn workbook(sheet: &str, shared: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let sheet = format!("<worksheet><sheetData>{sheet}</sheetData></worksheet>");
    let shared = format!("<sst uniqueCount=\"1\">{shared}</sst>");
    for (name, content) in [
        ("_rels/.rels", PACKAGE),
        ("xl/workbook.xml", WORKBOOK),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/styles.xml", STYLES),
        ("xl/sharedStrings.xml", &shared),
        ("xl/worksheets/sheet1.xml", &sheet),
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn inline(place: &str, text: &str) -> String {
    format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
}

fn number(place: &str, number: &str) -> String {
    format!("<c r=\"{place}\"><v>{number}</v></c>")
}

fn row(number: u32, cells: &[String]) -> String {
    format!("<row r=\"{number}\">{}</row>", cells.concat())
}

fn read(bytes: Vec<u8>) -> Result<Vec<(String, Values)>, ReadError> {
    let mut reader = open_guarded(|| open_xlsx(Box::new(Cursor::new(bytes)), 100_000))?;
    let columns = reader.columns().iter();
    let columns = columns.map(|(name, of)| (name.clone(), Values::with_capacity(*of, 0)));
    let mut columns: Vec<_> = columns.collect();
    while let Some(part) = reader.next_part()? {
        for ((_, values), part) in columns.iter_mut().zip(&part) {
            values.extend(part);
        }
    }
    let length = columns.first().map_or(0, |(_, values)| values.len());
    assert!(columns.iter().all(|(_, values)| values.len() == length));
    Ok(columns)
}

/// A table that starts in the third row and the second column, with a blank row.
fn sample() -> Vec<u8> {
    let rows = [
        row(
            3,
            &[
                inline("B3", "well"),
                inline("C3", "od"),
                inline("E3", "day"),
            ],
        ),
        row(
            4,
            &[
                "<c r=\"B4\" t=\"s\"><v>0</v></c>".to_owned(),
                number("C4", "0.25"),
                "<c r=\"E4\" s=\"1\"><v>46082</v></c>".to_owned(),
            ],
        ),
        row(
            6,
            &[
                inline("B6", "A2"),
                "<c r=\"C6\" t=\"e\"><v>#N/A</v></c>".to_owned(),
            ],
        ),
    ];
    workbook(&rows.concat(), "<si><t>A1</t></si>")
}

#[test]
fn the_first_sheet_is_a_table_with_types() {
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        ("well", Values::Text(vec![text("A1"), text("A2")])),
        ("od", Values::Float(vec![Some(0.25), None])),
        ("column_3", Values::Text(vec![None, None])),
        ("day", Values::Date(vec![Some(date!(2026 - 03 - 01)), None])),
    ];
    let expected = expected.map(|(name, values)| (name.to_owned(), values));
    assert_eq!(read(sample()).unwrap(), expected);
}

#[test]
fn a_sheet_has_parts_of_equal_columns() {
    let rows = (2..9_002).map(|n| row(n, &[number(&format!("A{n}"), &n.to_string())]));
    let rows: String = rows.collect();
    let sheet = row(1, &[inline("A1", "n"), inline("B1", "m")]) + &rows;
    let columns = read(workbook(&sheet, "")).unwrap();
    assert_eq!(
        columns[0].1,
        Values::Integer((2..9_002).map(Some).collect())
    );
    assert_eq!(columns[1].1, Values::Text(vec![None; 9_000]));
}

#[test]
fn tables_that_cannot_be_read_are_told_why() {
    let refusal = |bytes: Vec<u8>| read(bytes).unwrap_err().to_string();
    let sheet = [
        row(1, &[inline("A1", "a")]),
        row(2, &[number("A2", "1"), number("C2", "2")]),
    ];
    assert_eq!(
        refusal(workbook(&sheet.concat(), "")),
        "row 2 has a value in column 3, which has no name in the first row"
    );
    assert_eq!(
        refusal(workbook("", "")),
        "the file is empty: its first line must name the columns"
    );
    let wide = row(1, &[inline("A1", "a"), inline("XFD1", "z")]);
    assert!(refusal(workbook(&wide, "")).contains("16384 columns"));
    for bytes in [
        &b""[..],
        b"a,b\n1,2\n",
        b"PK\x03\x04 and no archive",
        b"\xd0\xcf\x11\xe0",
    ] {
        assert!(
            refusal(bytes.to_vec()).starts_with("the file is not an Excel workbook"),
            "{bytes:?}"
        );
    }
}

#[test]
fn parts_that_grow_too_large_are_refused() {
    let small = ArchiveLimits {
        archive: 1 << 20,
        part: 2 << 20,
        parts: 3 << 20,
        shared_texts: 1 << 20,
    };
    let check = |bytes: &[u8]| check_archive(&mut Cursor::new(bytes.to_vec()), small);
    let spaces = |length: usize| " ".repeat(length);
    check(&workbook(&spaces(1 << 20), &spaces(1 << 19))).unwrap();
    let bomb = workbook(&spaces(3 << 20), "");
    assert!(bomb.len() < 1 << 17, "{}", bomb.len());
    let shared = workbook("", &spaces(2 << 20));
    let noise: Vec<u8> = [sample(), vec![b'x'; 2 << 20]].concat();
    for bytes in [bomb, shared, noise] {
        assert!(matches!(check(&bytes), Err(ReadError::TooLarge)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With any byte wrong, a table is read or refused.
    #[test]
    fn a_damaged_workbook_is_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(bytes);
    }

    /// A table is read or refused for any content of a sheet.
    #[test]
    fn any_sheet_is_read_or_refused(sheet in "(<row r=\"[0-9]{1,3}\">|<c r=\"[A-D][0-9]{0,3}\">|<v>[0-9]{0,9}</v>|</c>|</row>){0,30}") {
        let _ = read(workbook(&sheet, ""));
    }
}
