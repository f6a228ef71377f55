use std::{
    io::{Cursor, Read, Seek, SeekFrom, pipe},
    thread,
};

use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Values},
};
use serde_json::json;

use super::{
    frames::{self, Kind},
    *,
};
use crate::{
    SnapshotWriter,
    read::{
        ImportTarget, ReadError, ReadOptions, Source, open_table,
        xlsx::tests::{column_of, inline, row, workbook},
    },
};

/// A reader on a thread.
fn connect() -> Connection {
    let (input, requests) = pipe().unwrap();
    let (responses, output) = pipe().unwrap();
    thread::spawn(move || serve(input, output, || Ok(())));
    Connection {
        input: Box::new(requests),
        output: Box::new(responses),
        explain: Box::new(|| ReadError::TooSlow),
    }
}

/// A reader that sends these bytes to every request.
fn taken_over(bytes: Vec<u8>) -> Connection {
    Connection {
        input: Box::new(Vec::new()),
        output: Box::new(Cursor::new(bytes)),
        explain: Box::new(|| ReadError::TooSlow),
    }
}

fn source(text: &str) -> Box<dyn Source> {
    Box::new(Cursor::new(text.as_bytes().to_vec()))
}

fn options(value: &serde_json::Value) -> ReadOptions {
    ReadOptions::from_json(value.as_object().unwrap()).unwrap()
}

const FILE: &str =
    "Name;n;Tag;um;ok\nä;1;2026-03-01;2026-03-01 10:00;true\nb;;;;false\nc;1,5;2026-03-02;;\n";

#[test]
fn a_table_is_the_same_that_this_process_reads() {
    let options = options(&json!({"timezone": "Europe/Berlin"}));
    let mut here = open_table(source(FILE), &options, 10).unwrap();
    let mut there = open_remote(connect(), source(FILE), &options, 10).unwrap();
    assert_eq!(there.columns().len(), here.columns().len());
    for (found, expected) in there.columns().iter().zip(here.columns()) {
        assert_eq!(
            (&found.header, &found.name, found.data_type),
            (&expected.header, &expected.name, expected.data_type)
        );
        assert_eq!(
            (&found.unit, &found.header_unit, found.holds_times),
            (&expected.unit, &expected.header_unit, expected.holds_times)
        );
    }
    assert_eq!(there.doubts(), here.doubts());
    assert_eq!(there.row_count(), 3);
    let mut rows = 0;
    while let Some(expected) = here.next_row().unwrap() {
        let found = there.next_row().unwrap().unwrap();
        assert_eq!(
            (found.line, &*found.cells, found.problems),
            (expected.line, &*expected.cells, expected.problems)
        );
        rows += 1;
    }
    assert!(there.next_row().unwrap().is_none());
    assert_eq!(rows, 3);
    assert_eq!(there.reading(), here.reading());
}

#[test]
fn columns_are_read_as_the_types_that_are_asked_for() {
    let mut table =
        open_remote(connect(), source("a,b\n1,2\n"), &ReadOptions::default(), 9).unwrap();
    table.read_as(&[Some(DataType::Text), None]);
    let row = table.next_row().unwrap().unwrap();
    assert_eq!(row.cells, [Some(FileCell::Text("1".to_owned())), None]);
}

#[test]
fn percentages_are_read_in_the_unit_that_is_asked_for() {
    for (unit, expected) in [(None, 0.985), (Some("%"), 98.5)] {
        let file = Box::new(Cursor::new(column_of("t", &[("0.0%", "0.985")])));
        let mut table = open_remote(connect(), file, &ReadOptions::default(), 9).unwrap();
        table.read_in(&[unit.map(str::to_owned)]);
        let row = table.next_row().unwrap().unwrap();
        assert_eq!(row.cells, [Some(FileCell::Float(expected))]);
    }
}

#[test]
fn an_import_finds_the_header_by_the_fields_of_its_table() {
    let text = "Report of,May\nname,vol\nA1,1.5\nA2,2.5\n";
    let none = ReadOptions::default();
    let target = ImportTarget::new(vec!["name".to_owned(), "vol".to_owned()]);
    let found = open_remote_import(connect(), source(text), &none, 9, &target).unwrap();
    assert_eq!((found.doubts(), found.reading().lines_above), (&[][..], 1));
    let found = open_remote(connect(), source(text), &none, 9).unwrap();
    assert_eq!(found.doubts()[0].code, "header_row");
}

#[test]
fn a_refusal_is_the_same_and_names_what_it_names() {
    let asked = options(&json!({"sheet": "x"}));
    let refused = open_remote(connect(), source(FILE), &asked, 9).err();
    assert!(matches!(refused, Some(ReadError::NoSheets)), "{refused:?}");
    let refused = open_remote(connect(), source(FILE), &ReadOptions::default(), 2).err();
    assert!(
        matches!(refused, Some(ReadError::TooManyRows(2))),
        "{refused:?}"
    );
}

#[test]
fn a_preview_counts_what_it_does_not_show() {
    let preview = preview_remote(connect(), source(FILE), &ReadOptions::default(), 9, 1).unwrap();
    assert_eq!((preview.row_count, preview.rows.len()), (Some(3), 1));
    assert_eq!(preview.rows_read, 3);
    assert_eq!(preview.columns[1].nulls, 1);
    assert_eq!(preview.columns[1].examples, [json!(1), json!(1.5)]);
}

/// A file whose storage gives some ranges of bytes, and then fails.
struct Failing {
    bytes: Cursor<Vec<u8>>,
    ranges: usize,
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let Some(left) = self.ranges.checked_sub(1) else {
            return Err(std::io::Error::other("the storage is gone"));
        };
        self.ranges = left;
        self.bytes.seek(to)
    }
}

/// Texts that no format makes much shorter, so that a file of them is not read at once.
fn long_texts() -> Vec<String> {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit((state >> 16) % 36, 36).unwrap()
    };
    let text = |_| (0..10_000).map(|_| letter()).collect();
    (0..45).map(text).collect()
}

#[test]
fn a_failure_of_the_storage_is_none_of_the_file() {
    let texts = long_texts();
    let rows = texts.iter().zip(2..);
    let rows = rows.map(|(text, line)| row(line, &[inline(&format!("A{line}"), text)]));
    let sheet = row(1, &[inline("A1", "t")]) + &rows.collect::<String>();
    let mut parquet = SnapshotWriter::new(vec![("t".to_owned(), DataType::Text)]).unwrap();
    let values = texts.iter().map(|text| Some(text.as_str().into()));
    let mut packed = parquet
        .write_values(&[Values::Text(values.collect())])
        .unwrap();
    packed.extend(parquet.finish().unwrap().rest);
    for (format, bytes) in [
        ("csv", format!("t\n{}\n", texts.join("\n")).into_bytes()),
        ("xlsx", workbook(&sheet)),
        ("parquet", packed),
    ] {
        let read_with = |ranges| {
            let bytes = Cursor::new(bytes.clone());
            let file = Box::new(Failing { bytes, ranges });
            let mut table = open_remote(connect(), file, &ReadOptions::default(), 999)?;
            let mut rows = 0;
            while table.next_row()?.is_some() {
                rows += 1;
            }
            Ok(rows)
        };
        let failures = (0..100).take_while(|ranges| match read_with(*ranges) {
            Err(ReadError::Source(error)) => error.to_string() == "the storage is gone",
            Err(other) => panic!("{format} after {ranges} ranges: {other}"),
            Ok(rows) => {
                assert_eq!(rows, texts.len(), "{format} after {ranges} ranges");
                false
            }
        });
        let count = failures.count();
        assert!((3..100).contains(&count), "{format} {count}");
    }
}

#[test]
fn a_reader_that_has_ended_is_explained() {
    let ended = open_remote(
        taken_over(Vec::new()),
        source(FILE),
        &ReadOptions::default(),
        9,
    )
    .err();
    assert!(matches!(ended, Some(ReadError::TooSlow)), "{ended:?}");
}

#[test]
fn a_reader_that_is_not_itself_is_not_believed() {
    let frame = |kind, body: &[u8]| {
        let mut bytes = Vec::new();
        frames::write(&mut bytes, kind, body).unwrap();
        bytes
    };
    let head = json!({"reading": {}, "columns": [], "doubts": [], "sheets": null, "row_count": 1});
    let long = [&[6][..], &u32::MAX.to_le_bytes()].concat();
    for bytes in [
        vec![99; 64],
        long,
        frame(Kind::Rows, b"x"),
        frame(Kind::Head, b"{"),
        frame(Kind::Head, head.to_string().as_bytes()),
        frame(Kind::ReadAt, b"short"),
        frame(Kind::Failed, b"{\"Refused\":\"Source\"}"),
    ] {
        let refused =
            open_remote(taken_over(bytes), source(FILE), &ReadOptions::default(), 9).err();
        assert!(matches!(refused, Some(ReadError::Damaged)), "{refused:?}");
    }
}

#[test]
fn a_file_longer_than_a_message_is_the_same_table() {
    let row = |number: u32| format!("{number},{:0>20}\n", number % 977);
    let text = format!("n,code\n{}", (0..30_000).map(row).collect::<String>());
    let none = ReadOptions::default();
    let mut here = open_table(source(&text), &none, 30_000).unwrap();
    let mut there = open_remote(connect(), source(&text), &none, 30_000).unwrap();
    while let Some(expected) = here.next_row().unwrap() {
        let found = there.next_row().unwrap().unwrap();
        assert_eq!(
            (found.line, &*found.cells),
            (expected.line, &*expected.cells)
        );
    }
    assert!(there.next_row().unwrap().is_none());
    assert!(there.next_row().unwrap().is_none());
}

#[test]
fn a_file_that_is_read_from_its_end_is_the_same_table() {
    let columns = vec![
        ("n".to_owned(), DataType::Integer),
        ("t".to_owned(), DataType::Text),
    ];
    let mut writer = SnapshotWriter::new(columns).unwrap();
    let numbers = (0..50_000)
        .map(|n| (n % 7 > 0).then_some(n * 7_919))
        .collect();
    let texts = (0..50_000)
        .map(|n| Some(format!("{:x}", n * 7_919).into()))
        .collect();
    let values = [Values::Integer(numbers), Values::Text(texts)];
    let mut bytes = writer.write_values(&values).unwrap();
    bytes.extend(writer.finish().unwrap().rest);
    assert!(bytes.len() > 300_000, "{}", bytes.len());
    let source = || Box::new(Cursor::new(bytes.clone()));
    let none = ReadOptions::default();
    let mut here = open_table(source(), &none, 50_000).unwrap();
    let mut there = open_remote(connect(), source(), &none, 50_000).unwrap();
    assert_eq!((here.row_count(), there.row_count()), (50_000, 50_000));
    while let Some(expected) = here.next_part().unwrap() {
        assert_eq!(there.next_part().unwrap(), Some(expected));
    }
    assert_eq!(there.next_part().unwrap(), None);
}

#[test]
fn the_line_of_units_is_known_here() {
    let file = "name,vol,conc [ng/ml]\n,\u{b5}l,\nA1,1.5,2\n";
    let table = open_remote(connect(), source(file), &ReadOptions::default(), 10).unwrap();
    assert_eq!(table.reading().units_row, Some(2));
}
