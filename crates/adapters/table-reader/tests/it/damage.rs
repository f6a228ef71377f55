//! Damaged files end their reader at worst.

use std::{
    io::{Cursor, Write as _},
    sync::Arc,
};

use labdata_ports::reading::ReaderEnd;
use labdata_table_formats::read::ReadError;
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::preview;

/// Number of damaged files of each kind.
const FILES: u64 = 150;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = usize::try_from(mixed ^ (mixed >> 31)).unwrap();
        mixed % limit
    }
}

fn parquet() -> Vec<u8> {
    let schema =
        parse_message_type("message rows { required int64 n; required binary name (UTF8); }");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let schema = Arc::new(schema.unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let numbers: Vec<i64> = (0..500).collect();
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let texts: Vec<ByteArray> = (0..500)
            .map(|number| ByteArray::from(format!("text {}", number % 30).into_bytes()))
            .collect();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// A workbook of these parts, besides those that each has.
fn workbook(sheet: &str, shared: &str) -> Vec<u8> {
    const TYPES: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
    let relation = |target: &str, kind: &str, id: u8| {
        format!("<Relationship Id=\"rId{id}\" Target=\"{target}\" Type=\"{TYPES}/{kind}\"/>")
    };
    let relations = |all: &[String]| {
        format!(
            "<Relationships xmlns=\"{RELATIONS}\">{}</Relationships>",
            all.concat()
        )
    };
    let book = format!(
        "<workbook xmlns:r=\"{TYPES}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    );
    let parts = [
        relation("worksheets/sheet1.xml", "worksheet", 1),
        relation("sharedStrings.xml", "sharedStrings", 2),
    ];
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [
        (
            "_rels/.rels",
            relations(&[relation("xl/workbook.xml", "officeDocument", 1)]),
        ),
        ("xl/workbook.xml", book),
        ("xl/_rels/workbook.xml.rels", relations(&parts)),
        ("xl/sharedStrings.xml", shared.to_owned()),
        ("xl/worksheets/sheet1.xml", sheet.to_owned()),
    ] {
        writer
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn sample_workbook() -> Vec<u8> {
    let rows: Vec<String> = (2..200)
        .map(|row| {
            format!("<row r=\"{row}\"><c r=\"A{row}\"><v>{row}.5</v></c><c r=\"B{row}\" t=\"s\"><v>1</v></c></row>")
        })
        .collect();
    let head =
        "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c></row>";
    let sheet = format!(
        "<worksheet><sheetData>{head}{}</sheetData></worksheet>",
        rows.concat()
    );
    workbook(&sheet, "<sst><si><t>n</t></si><si><t>name</t></si></sst>")
}

#[test]
fn a_damaged_file_is_read_or_refused() {
    let mut random = Random(42);
    for file in [parquet(), sample_workbook()] {
        let intact = preview(file.clone()).unwrap();
        assert!(intact.row_count > Some(100));
        for number in 0..FILES {
            let mut bytes = file.clone();
            match number % 3 {
                0 => bytes.truncate(random.below(file.len())),
                // Most of what a reader believes stands at the end.
                1 => {
                    let at = file.len() - 1 - random.below(600);
                    bytes[at] = u8::try_from(random.below(256)).unwrap();
                }
                _ => bytes[random.below(file.len())] ^= 1 << random.below(8),
            }
            let read = preview(bytes);
            // The archive has checksums, so what is read of a workbook is what it was.
            if let Ok(read) = &read
                && intact.sheets.is_some()
            {
                assert_eq!(read.rows, intact.rows, "{number}");
            }
            if let Err((error, end)) = read {
                assert!(!matches!(error, ReadError::Source(_)), "{number}: {error}");
                assert_ne!(end, Some(ReaderEnd::OutOfTime), "{number}");
            }
        }
    }
}

#[test]
fn sheets_that_stand_for_gigabytes_are_refused() {
    let cell = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c></row>";
    let sheet = format!("<worksheet><sheetData>{cell}</sheetData></worksheet>");
    let declared = "<sst uniqueCount=\"2000000000\"><si><t>n</t></si></sst>";
    // One long text for each of many cells.
    let cells: Vec<String> = (1..20_000)
        .map(|row| format!("<row r=\"{row}\"><c r=\"A{row}\" t=\"s\"><v>0</v></c></row>"))
        .collect();
    let repeated = format!(
        "<worksheet><sheetData>{}</sheetData></worksheet>",
        cells.concat()
    );
    let long = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(32_000));
    let merged = format!(
        "<worksheet><sheetData>{cell}<row r=\"2\"><c r=\"A2\"><v>1</v></c><c r=\"B2\"><v>1</v></c></row>\
         <row r=\"1048576\"><c r=\"A1048576\"><v>1</v></c></row></sheetData>\
         <mergeCells><mergeCell ref=\"B2:XFD1048576\"/></mergeCells></worksheet>"
    );
    for (name, file) in [
        ("declared", workbook(&sheet, declared)),
        ("repeated", workbook(&repeated, &long)),
        ("merged", workbook(&merged, "<sst><si><t>n</t></si></sst>")),
    ] {
        assert!(file.len() < 8 << 20, "{name}: {}", file.len());
        let (error, end) = preview(file).unwrap_err();
        assert!(
            matches!(error, ReadError::TooLarge) || end == Some(ReaderEnd::OutOfMemory),
            "{name}: {error} {end:?}"
        );
    }
}
