//! Memory of readers, whatever a file holds.

use std::io::{Cursor, Write as _};

use labdata_table_formats::read::ReadError;
use nix::sys::resource::{UsageWho, getrusage};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{preview, repeated_texts};

/// What a reader and the server's share of a preview may take together, in KiB.
const TOGETHER: i64 = 300 << 10;

/// What the server holds of a file: the range that the reader asked for last, and the preview.
const SERVER: i64 = 32 << 10;

/// A workbook of some hundred kilobytes, one of whose texts has that many bytes.
fn sheet_with_text(length: usize) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let parts = [
        (
            "_rels/.rels",
            format!(
                "<Relationships><Relationship Id=\"rId1\" Type=\"{relations}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns:r=\"{relations}\"><sheets><sheet name=\"a\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships><Relationship Id=\"rId1\" Type=\"{relations}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
    ];
    for (name, content) in &parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer
        .start_file("xl/worksheets/sheet1.xml", options)
        .unwrap();
    let cell = |place: &str, text: &str| {
        format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
    };
    let head = format!(
        "<worksheet><sheetData><row r=\"1\">{}</row>",
        cell("A1", "name")
    );
    let row = format!("<row r=\"2\">{}</row>", cell("A2", &"x".repeat(length)));
    writer.write_all(head.as_bytes()).unwrap();
    writer.write_all(row.as_bytes()).unwrap();
    writer.write_all(b"</sheetData></worksheet>").unwrap();
    writer.finish().unwrap().into_inner()
}

/// A text of some rows of that many bytes each.
fn long_rows(rows: usize, length: usize) -> Vec<u8> {
    let row = format!("\"{}\",1\n", "x".repeat(length));
    format!("name,n\n{}", row.repeat(rows)).into_bytes()
}

#[test]
fn a_reader_and_the_server_together_take_at_most_300_mib() {
    let is_refused = |bytes| matches!(preview(bytes), Err((ReadError::TooLarge, _)));
    assert!(preview(long_rows(8, 12 << 20)).is_ok());
    assert!(preview(sheet_with_text(1 << 20)).is_ok());
    assert!(is_refused(sheet_with_text(200 << 20)));
    assert!(is_refused(repeated_texts(1_200, 1 << 20)));
    // The largest of all readers of this program, those of other tests included.
    let readers = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    assert!(readers + SERVER <= TOGETHER, "{} MiB", readers >> 10);
}
