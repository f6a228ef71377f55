use std::io::{Cursor, Write};

use labdata_domain::scalar::{DataType, Values};
use proptest::prelude::*;
use time::macros::{date, datetime};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::SnapshotWriter;

/// A table as a sink gets it.
#[derive(Debug, Default)]
struct Collected {
    header: Vec<String>,
    rows: Vec<(u64, Vec<Option<FileCell>>)>,
    refused: Vec<(u64, String)>,
    /// Fields that are not wanted.
    unwanted: Vec<&'static str>,
    /// Number of rows after which the sink ends the reading.
    most: Option<usize>,
}

impl RowSink for Collected {
    fn header(&mut self, names: &[String]) -> Option<Vec<bool>> {
        self.header = names.to_vec();
        let wanted = names.iter();
        let wanted = wanted.map(|name| !self.unwanted.contains(&name.as_str()));
        (self.most != Some(0)).then(|| wanted.collect())
    }

    fn row(&mut self, line: u64, cells: &mut [Option<FileCell>]) -> bool {
        let cells = cells.iter_mut().map(Option::take).collect();
        self.rows.push((line, cells));
        self.most != Some(self.rows.len())
    }

    fn refused(&mut self, line: u64, reason: &ReadError) {
        self.refused.push((line, reason.to_string()));
    }
}

impl Collected {
    fn lines(&self) -> Vec<u64> {
        self.rows.iter().map(|(line, _)| *line).collect()
    }

    fn texts(&self) -> Vec<Vec<String>> {
        let rows = self.rows.iter();
        rows.map(|(_, cells)| cells.iter().map(|cell| display(cell.as_ref())).collect())
            .collect()
    }
}

fn display(cell: Option<&FileCell>) -> String {
    cell.map(ToString::to_string).unwrap_or_default()
}

fn read_into(
    mut sink: Collected,
    bytes: impl Into<Vec<u8>>,
    format: TableFormat,
    sheet: Option<&str>,
) -> Result<Collected, ReadError> {
    let source = Box::new(Cursor::new(bytes.into()));
    read_rows(source, format, sheet, 1_000, &mut sink)?;
    Ok(sink)
}

fn csv(bytes: impl Into<Vec<u8>>) -> Collected {
    read_into(Collected::default(), bytes, TableFormat::Csv, None).unwrap()
}

#[test]
fn rows_have_the_lines_on_which_they_begin() {
    let table = csv("name,note\na,x\nb,\"two\nlines\"\n\n  \nc,\"\"\"q\"\"\n\n\"\nd,\n");
    assert_eq!(table.header, ["name", "note"]);
    assert_eq!(table.lines(), [2, 3, 7, 10]);
    let expected = [["a", "x"], ["b", "two\nlines"], ["c", "\"q\""], ["d", ""]];
    assert_eq!(table.texts(), expected);
}

#[test]
fn a_line_ends_with_a_line_feed_a_carriage_return_or_both() {
    for (text, lines) in [
        ("a,b\r\n1,2\r\n\r\n\"x\r\ny\",4\r\n5,6", [2, 4, 6]),
        ("a,b\r1,2\r\r\"x\ry\",4\r5,6\r", [2, 4, 6]),
        ("\n\na,b\n1,2\r\n\"x\ny\",4\n5,6\n\n\n", [4, 5, 7]),
    ] {
        assert_eq!(csv(text).lines(), lines, "{text:?}");
    }
}

#[test]
fn lines_that_are_no_rows_are_refused_one_by_one() {
    let table = csv("a,b\n1\n2,3\n4,5,6\n7,8,\n,\n");
    assert_eq!(table.lines(), [3, 5]);
    let refused = [
        (2, "line 2 has 1 fields, but the header has 2".to_owned()),
        (4, "line 4 has 3 fields, but the header has 2".to_owned()),
    ];
    assert_eq!(table.refused, refused);
}

#[test]
fn texts_of_every_encoding_and_delimiter_are_read() {
    let text = "well;volume (µl)\r\nA1;2,5\r\n";
    let wide = text.encode_utf16().flat_map(u16::to_le_bytes);
    let latin = text.chars().map(|char| u8::try_from(char).unwrap());
    for bytes in [
        text.as_bytes().to_vec(),
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        [0xff, 0xfe].into_iter().chain(wide).collect(),
        latin.collect(),
    ] {
        let table = csv(bytes);
        assert_eq!(table.header, ["well", "volume (µl)"]);
        // Decimal commas are not guessed.
        assert_eq!(table.texts(), [["A1", "2,5"]]);
    }
    let tabs = read_into(
        Collected::default(),
        "a\tb,c\n1\t2\n",
        TableFormat::Tsv,
        None,
    );
    assert_eq!(tabs.unwrap().header, ["a", "b,c"]);
}

#[test]
fn cells_that_are_not_wanted_are_not_read() {
    let sink = Collected {
        unwanted: vec!["b"],
        ..Collected::default()
    };
    let table = read_into(sink, "a,b,\n1,2,\n", TableFormat::Csv, None).unwrap();
    assert_eq!(table.texts(), [["1", ""]]);
}

#[test]
fn the_sink_ends_the_reading() {
    for most in [0, 1] {
        let sink = Collected {
            most: Some(most),
            ..Collected::default()
        };
        let table = read_into(sink, "a\n1\n2\n", TableFormat::Csv, None).unwrap();
        assert_eq!(table.rows.len(), most);
    }
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let refused = |bytes: &[u8], format| {
        let read = read_into(Collected::default(), bytes, format, None);
        read.unwrap_err()
    };
    for blank in ["", "\n\n", "\u{feff}"] {
        assert!(matches!(
            refused(blank.as_bytes(), TableFormat::Csv),
            ReadError::NoHeader
        ));
    }
    assert!(matches!(
        refused(b"PK\x03\x04\0\0", TableFormat::Csv),
        ReadError::NotText
    ));
    let open_quote = [b"a,b\n1,\"", "x\n".repeat(9 << 20).as_bytes()].concat();
    assert!(matches!(
        refused(&open_quote, TableFormat::Csv),
        ReadError::RowTooLong(_)
    ));
    let wide = ",a".repeat(2_000);
    assert!(matches!(
        refused(wide.as_bytes(), TableFormat::Csv),
        ReadError::TooManyColumns(_)
    ));
    let long = "a\n".repeat(1_002);
    assert!(matches!(
        refused(long.as_bytes(), TableFormat::Csv),
        ReadError::TooManyRows(1_000)
    ));
    assert!(matches!(
        refused(b"a,b", TableFormat::Xlsx),
        ReadError::NotWorkbook
    ));
    assert!(matches!(
        refused(b"a,b\n1,2\n", TableFormat::Parquet),
        ReadError::NotParquet
    ));
}

/// A workbook with two sheets; style 1 is a date, style 2 a date with a time.
fn workbook(first: &str, second: &str) -> Vec<u8> {
    const SHEETS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = format!(
        "<Relationships><Relationship Id=\"rId1\" Target=\"xl/workbook.xml\" Type=\"{SHEETS}/officeDocument\"/></Relationships>"
    );
    let book = format!(
        "<workbook xmlns:r=\"{SHEETS}\"><sheets><sheet name=\"Plate 1\" sheetId=\"1\" r:id=\"rId1\"/>\
         <sheet name=\"Plate 2\" sheetId=\"2\" r:id=\"rId2\"/></sheets></workbook>"
    );
    let relations = format!(
        "<Relationships><Relationship Id=\"rId1\" Target=\"worksheets/sheet1.xml\" Type=\"{SHEETS}/worksheet\"/>\
         <Relationship Id=\"rId2\" Target=\"worksheets/sheet2.xml\" Type=\"{SHEETS}/worksheet\"/></Relationships>"
    );
    let styles = "<styleSheet><cellXfs count=\"3\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"22\"/></cellXfs></styleSheet>";
    let sheet = |rows: &str| format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [
        ("_rels/.rels", package),
        ("xl/workbook.xml", book),
        ("xl/_rels/workbook.xml.rels", relations),
        ("xl/styles.xml", styles.to_owned()),
        ("xl/worksheets/sheet1.xml", sheet(first)),
        ("xl/worksheets/sheet2.xml", sheet(second)),
    ] {
        writer
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn inline(place: &str, text: &str) -> String {
    format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
}

fn row(number: u32, cells: &[String]) -> String {
    format!("<row r=\"{number}\">{}</row>", cells.concat())
}

#[test]
fn rows_of_a_sheet_have_its_numbers_and_types() {
    let styled = |place: &str, style: u8, number: &str| {
        format!("<c r=\"{place}\" s=\"{style}\"><v>{number}</v></c>")
    };
    let first = [
        row(
            3,
            &[inline("B3", "well"), inline("C3", "at"), inline("E3", "od")],
        ),
        row(
            4,
            &[
                inline("B4", "A1"),
                styled("C4", 1, "46082"),
                styled("E4", 0, "0.5"),
            ],
        ),
        row(
            7,
            &[
                inline("B7", "A2"),
                styled("C7", 2, "46082.5"),
                styled("E7", 0, "2"),
            ],
        ),
        row(8, &[inline("B8", "A3"), inline("F8", "beside")]),
        row(9, &["<c r=\"B9\" t=\"b\"><v>1</v></c>".to_owned()]),
    ];
    let second = [
        row(1, &[inline("A1", "other")]),
        row(2, &[inline("A2", "x")]),
    ];
    let bytes = workbook(&first.concat(), &second.concat());
    let read = |sheet| {
        read_into(
            Collected::default(),
            bytes.clone(),
            TableFormat::Xlsx,
            sheet,
        )
    };
    let table = read(None).unwrap();
    assert_eq!(table.header, ["well", "at", "column_3", "od"]);
    assert_eq!(table.lines(), [4, 7, 9]);
    assert_eq!(table.refused.len(), 1);
    assert_eq!(table.refused[0].0, 8);
    let text = |text: &str| Some(FileCell::Text(text.to_owned()));
    let day = Some(FileCell::Date(date!(2026 - 03 - 01)));
    assert_eq!(
        table.rows[0].1,
        [text("A1"), day, None, Some(FileCell::Float(0.5))]
    );
    let noon = Some(FileCell::LocalTime(datetime!(2026-03-01 12:00)));
    assert_eq!(
        table.rows[1].1,
        [text("A2"), noon, None, Some(FileCell::Integer(2))]
    );
    assert_eq!(
        table.rows[2].1,
        [Some(FileCell::Boolean(true)), None, None, None]
    );
    assert_eq!(read(Some("Plate 2")).unwrap().header, ["other"]);
    let unknown = read(Some("Plate 3")).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "the workbook has no sheet \"Plate 3\"; it has \"Plate 1\", \"Plate 2\""
    );
    let none = read_into(
        Collected::default(),
        "a\n",
        TableFormat::Csv,
        Some("Plate 1"),
    );
    assert!(matches!(none, Err(ReadError::NoSheets)));
}

#[test]
fn a_sheet_without_rows_has_its_header() {
    let bytes = workbook(&row(1, &[inline("A1", "name")]), "");
    let read = |sheet| {
        read_into(
            Collected::default(),
            bytes.clone(),
            TableFormat::Xlsx,
            sheet,
        )
    };
    assert_eq!(read(None).unwrap().header, ["name"]);
    assert!(matches!(read(Some("Plate 2")), Err(ReadError::NoHeader)));
}

#[test]
fn rows_of_parquet_are_numbered() {
    let columns = vec![
        ("name".to_owned(), DataType::Text),
        ("at".to_owned(), DataType::Datetime),
    ];
    let mut writer = SnapshotWriter::new(columns).unwrap();
    let names = (0..3_000)
        .map(|number| Some(format!("s{number}")))
        .collect();
    let times = vec![Some(datetime!(2026-03-01 12:00 UTC)); 3_000];
    let values = [Values::Text(names), Values::Datetime(times)];
    let mut bytes = writer.write_values(&values).unwrap();
    bytes.extend(writer.finish().unwrap().rest);
    let mut sink = Collected::default();
    let source = Box::new(Cursor::new(bytes));
    read_rows(source, TableFormat::Parquet, None, 5_000, &mut sink).unwrap();
    let lines: Vec<u64> = (1..=3_000).collect();
    assert_eq!(sink.lines(), lines);
    let (_, last) = sink.rows.last().unwrap();
    let at = FileCell::Instant(datetime!(2026-03-01 12:00 UTC));
    assert_eq!(*last, [Some(FileCell::Text("s2999".to_owned())), Some(at)]);
}

/// A field: its text, and whether it is quoted though it need not be.
fn field() -> impl Strategy<Value = (String, bool)> {
    ("[a-z0-9\t\"\n µ]{0,8}", any::<bool>())
}

proptest! {
    #[test]
    fn any_table_is_read_with_its_lines(
        rows in prop::collection::vec(((field(), field()), 0_usize..3), 0..40),
        ending in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let mut text = format!("first\tsecond{ending}");
        let mut line = 2_u64;
        let (mut lines, mut expected) = (Vec::new(), Vec::new());
        for (((first, quote_first), (second, quote_second)), blank) in rows {
            for _ in 0..blank {
                text.push_str(ending);
                line += 1;
            }
            let quoted = |field: &str, quote: bool| {
                if quote || field.contains(['\t', '"', '\n']) {
                    format!("\"{}\"", field.replace('"', "\"\""))
                } else {
                    field.to_owned()
                }
            };
            text.push_str(&quoted(&first, quote_first));
            text.push('\t');
            text.push_str(&quoted(&second, quote_second));
            text.push_str(ending);
            let cells = [first.trim().to_owned(), second.trim().to_owned()];
            if cells.iter().any(|cell| !cell.is_empty()) {
                lines.push(line);
                expected.push(cells.to_vec());
            }
            let breaks = first.matches('\n').count() + second.matches('\n').count();
            line += 1 + u64::try_from(breaks).unwrap();
        }
        let sink = read_into(Collected::default(), text, TableFormat::Tsv, None).unwrap();
        prop_assert_eq!(sink.lines(), lines);
        prop_assert_eq!(sink.texts(), expected);
    }

    #[test]
    fn no_bytes_end_in_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in [TableFormat::Csv, TableFormat::Xlsx, TableFormat::Parquet] {
            let _ = read_into(Collected::default(), bytes.clone(), format, None);
        }
    }
}
