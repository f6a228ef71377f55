mod book;
mod directory;
mod formats;
mod merged;
mod package;
mod shown;
mod values;

use std::io::{Cursor, Write};

use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Scalar},
};
use proptest::prelude::*;
use serde_json::json;
use time::macros::{date, datetime};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use self::{
    book::{STYLES, styles_of, workbook_of},
    package::{PACKAGE, RELATIONS, WORKBOOK},
};
use super::*;
use crate::read::{
    ReadOptions, ReadTable, head::WORKBOOK_CELL, open_table, preview::summarize, table::open_extent,
};

/// A workbook of these parts, besides those that each has.
fn packed(parts: &[(&str, &str)]) -> Vec<u8> {
    packed_with(STYLES, parts)
}

/// A workbook with these styles.
fn packed_with(styles: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let common = [("_rels/.rels", PACKAGE), ("xl/styles.xml", styles)];
    for (name, content) in common.iter().chain(parts) {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A workbook with one sheet, of which these are the rows and what follows them.
fn sheet_of(rows: &str, after: &str, shared: &str) -> Vec<u8> {
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData>{after}</worksheet>");
    let shared = format!("<sst uniqueCount=\"1\">{shared}</sst>");
    packed(&[
        ("xl/workbook.xml", WORKBOOK),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/sharedStrings.xml", &shared),
        ("xl/worksheets/sheet1.xml", &sheet),
    ])
}

/// A workbook with one column. Each cell has a format, and a number; what is no number is a text.
pub(in crate::read) fn column_of(header: &str, cells: &[(&str, &str)]) -> Vec<u8> {
    let mut rows = row(1, &[inline("A1", header)]);
    for ((index, (_, value)), number) in (1..).zip(cells).zip(2..) {
        let place = format!("A{number}");
        let is_number = value.parse::<f64>().is_ok();
        let cell = if is_number {
            styled(&place, index, value)
        } else {
            inline(&place, value)
        };
        rows += &row(number, &[cell]);
    }
    let formats: Vec<&str> = cells.iter().map(|(format, _)| *format).collect();
    packed_with(
        &styles_of(&formats),
        &[
            ("xl/workbook.xml", WORKBOOK),
            ("xl/_rels/workbook.xml.rels", RELATIONS),
            (
                "xl/worksheets/sheet1.xml",
                &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"),
            ),
        ],
    )
}

pub(in crate::read) fn workbook(rows: &str) -> Vec<u8> {
    sheet_of(rows, "", "")
}

pub(in crate::read) fn inline(place: &str, text: &str) -> String {
    format!("<c r=\"{place}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{text}</t></is></c>")
}

fn number(place: &str, number: &str) -> String {
    styled(place, 0, number)
}

fn styled(place: &str, style: u8, number: &str) -> String {
    format!("<c r=\"{place}\" s=\"{style}\"><v>{number}</v></c>")
}

pub(in crate::read) fn row(number: u32, cells: &[String]) -> String {
    format!("<row r=\"{number}\">{}</row>", cells.concat())
}

#[expect(clippy::needless_pass_by_value, reason = "each call makes its options")]
fn open_with(bytes: Vec<u8>, options: serde_json::Value) -> Result<ReadTable, ReadError> {
    let options = ReadOptions::from_json(options.as_object().unwrap()).unwrap();
    open_table(Box::new(Cursor::new(bytes)), &options, 100_000)
}

fn open_clear(bytes: Vec<u8>) -> ReadTable {
    let table = open_with(bytes, json!({})).unwrap();
    assert_eq!(table.doubts(), []);
    table
}

fn headers(table: &ReadTable) -> Vec<&str> {
    let columns = table.columns().iter();
    columns.map(|column| column.header.as_str()).collect()
}

/// Cells as a text column shows them; blank ones are `-`.
fn cells(table: &mut ReadTable) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    while let Some(row) = table.next_row().unwrap() {
        let cells = row.cells.iter().map(|cell| {
            cell.as_ref()
                .map_or_else(|| "-".to_owned(), ToString::to_string)
        });
        rows.push(cells.collect());
    }
    rows
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
                styled("E4", 1, "46082"),
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
    sheet_of(&rows.concat(), "", "<si><t>A1</t></si>")
}

#[test]
fn the_first_sheet_is_a_table_with_types() {
    let mut table = open_clear(sample());
    assert_eq!(headers(&table), ["well", "od", "day"]);
    let types: Vec<DataType> = table
        .columns()
        .iter()
        .map(|column| column.data_type)
        .collect();
    assert_eq!(types, [DataType::Text, DataType::Float, DataType::Date]);
    assert_eq!(table.reading().blank_lines, 1);
    assert_eq!(table.reading().options.header_row, Some(3));
    let first = table.next_row().unwrap().unwrap();
    assert_eq!(first.line, 4);
    let expected = [
        Some(FileCell::Text("A1".to_owned())),
        Some(FileCell::Float(0.25)),
        Some(FileCell::Date(date!(2026 - 03 - 01))),
    ];
    assert_eq!(first.cells, expected);
    assert_eq!(cells(&mut table), [["A2", "-", "-"]]);
}

#[test]
fn hidden_sheets_are_never_chosen() {
    let sheet = |name: &str| {
        let rows = row(1, &[inline("A1", name)]) + &row(2, &[number("A2", "1")]);
        format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")
    };
    let (book, relations) = workbook_of(&[
        ("Lookups", "hidden"),
        ("Secret", "veryHidden"),
        ("Empty", "visible"),
        ("Data", "visible"),
    ]);
    let bytes = packed(&[
        ("xl/workbook.xml", &book),
        ("xl/_rels/workbook.xml.rels", &relations),
        ("xl/worksheets/sheet1.xml", &sheet("hidden")),
        ("xl/worksheets/sheet2.xml", &sheet("secret")),
        (
            "xl/worksheets/sheet3.xml",
            "<worksheet><sheetData></sheetData></worksheet>",
        ),
        ("xl/worksheets/sheet4.xml", &sheet("data")),
    ]);
    let table = open_clear(bytes.clone());
    assert_eq!(headers(&table), ["data"]);
    assert_eq!(table.reading().options.sheet.as_deref(), Some("Data"));
    let sheets: Vec<_> = table
        .sheets()
        .unwrap()
        .iter()
        .map(|sheet| {
            (
                sheet.name.as_str(),
                sheet.is_visible,
                sheet.rows,
                sheet.columns,
            )
        })
        .collect();
    assert_eq!(
        sheets,
        [
            ("Lookups", false, 1, 1),
            ("Secret", false, 1, 1),
            ("Empty", true, 0, 0),
            ("Data", true, 2, 1)
        ]
    );
    for wanted in ["1", "Lookups"] {
        let table = open_with(bytes.clone(), json!({"sheet": wanted})).unwrap();
        assert_eq!(headers(&table), ["hidden"]);
    }
    let unknown = open_with(bytes, json!({"sheet": "Plate 3"})).err().unwrap();
    assert!(
        unknown.to_string().contains("it has \"Lookups\""),
        "{unknown}"
    );
}

#[test]
fn a_workbook_of_hidden_sheets_is_refused_and_names_them() {
    let rows = row(1, &[inline("A1", "name")]) + &row(2, &[number("A2", "1")]);
    let (book, relations) = workbook_of(&[("Empty", "visible"), ("Raw", "hidden")]);
    let bytes = packed(&[
        ("xl/workbook.xml", &book),
        ("xl/_rels/workbook.xml.rels", &relations),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData></sheetData></worksheet>",
        ),
        (
            "xl/worksheets/sheet2.xml",
            &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"),
        ),
    ]);
    let refused = open_with(bytes, json!({})).err().unwrap().to_string();
    assert!(refused.ends_with("`sheet`: \"Raw\""), "{refused}");
}

#[test]
fn formatted_blank_cells_do_not_count() {
    let blank = "<row><c s=\"1\"/><c s=\"1\"/><c s=\"1\"/></row>".repeat(3_000);
    let rows = row(1, &[inline("A1", "name"), inline("B1", "v")])
        + &row(2, &[inline("A2", "A1"), number("B2", "1.5")])
        + &blank;
    let mut table = open_clear(workbook(&rows));
    assert_eq!(table.row_count(), 1);
    assert_eq!(cells(&mut table), [["A1", "1.5"]]);
}

#[test]
fn merged_cells_hold_their_value_and_titles_are_skipped() {
    let rows = [
        row(1, &[inline("A1", "Plate report")]),
        row(
            3,
            &[
                inline("A3", "group"),
                inline("B3", "well"),
                inline("C3", "od"),
            ],
        ),
        row(
            4,
            &[
                inline("A4", "control"),
                inline("B4", "A1"),
                number("C4", "0.5"),
            ],
        ),
        row(5, &[inline("B5", "A2"), number("C5", "0.6")]),
    ];
    let merged = "<mergeCells><mergeCell ref=\"A1:C1\"/><mergeCell ref=\"A4:A5\"/></mergeCells>";
    let mut table = open_clear(sheet_of(&rows.concat(), merged, ""));
    assert_eq!(headers(&table), ["group", "well", "od"]);
    assert_eq!(table.reading().lines_above, 2);
    assert_eq!(
        cells(&mut table),
        [["control", "A1", "0.5"], ["control", "A2", "0.6"]]
    );
}

#[test]
fn another_table_below_is_a_doubt() {
    let rows = [
        row(
            1,
            &[
                inline("A1", "well"),
                inline("B1", "od"),
                inline("C1", "note"),
            ],
        ),
        row(
            2,
            &[inline("A2", "A1"), number("B2", "0.5"), inline("C2", "x")],
        ),
        row(5, &[inline("A5", "time"), inline("B5", "temp")]),
        row(6, &[number("A6", "0"), number("B6", "37")]),
    ];
    let bytes = workbook(&rows.concat());
    let table = open_with(bytes.clone(), json!({})).unwrap();
    assert_eq!(table.row_count(), 1);
    assert_eq!(table.doubts()[0].code, "second_table");
    let options = table.doubts()[0].options.clone();
    let second = open_with(bytes, serde_json::Value::Object(options[1].clone())).unwrap();
    assert_eq!(headers(&second), ["time", "temp"]);
}

#[test]
fn names_beside_typed_numbers_are_a_table_above_the_header() {
    let pair = |line: u32, name: &str, value: &str| {
        let cells = [
            inline(&format!("A{line}"), name),
            number(&format!("B{line}"), value),
        ];
        row(line, &cells)
    };
    let header = ["A", "B", "C"].map(|column| inline(&format!("{column}6"), column));
    let values = ["A", "B", "C"].map(|column| number(&format!("{column}7"), "1"));
    for value in ["600", "0.5"] {
        let above = [
            pair(1, "dye", "600"),
            pair(2, "red", value),
            pair(3, "blue", value),
            pair(4, "none", value),
        ];
        let rows = [above.concat(), row(6, &header), row(7, &values)];
        let table = open_with(workbook(&rows.concat()), json!({})).unwrap();
        let doubt = &table.doubts()[0];
        assert_eq!(doubt.code, "header_row", "{value}");
        assert_eq!(doubt.options[1]["header_row"], 1, "{value}");
    }
}

#[test]
fn a_storage_that_fails_is_no_damage_of_the_workbook() {
    let failed = damaged(XlsxError::Io(std::io::Error::other("the storage is away")));
    assert!(matches!(failed, ReadError::Source(_)));
}

#[test]
fn tables_that_cannot_be_read_are_told_why() {
    let refusal = |bytes: Vec<u8>| open_with(bytes, json!({})).err().unwrap().to_string();
    let sheet = [
        row(1, &[inline("A1", "a"), inline("B1", "b")]),
        row(2, &[number("A2", "1"), number("D2", "2")]),
    ];
    let beside = open_with(workbook(&sheet.concat()), json!({"header_row": 1})).unwrap();
    assert_eq!(beside.doubts()[0].code, "long_row");
    let message = "row 2 has a value in column 4, which has no name in the header";
    assert_eq!(beside.doubts()[0].message, message);
    assert_eq!(
        refusal(workbook("")),
        "the file is empty: its first line must name the columns"
    );
    let wide = row(1, &[inline("A1", "a"), inline("XFD1", "z")]);
    assert!(refusal(workbook(&wide)).contains("16384 columns"));
    for bytes in [&b"PK\x03\x04 and no archive"[..], b"\xd0\xcf\x11\xe0"] {
        assert!(
            refusal(bytes.to_vec()).starts_with("the file is not an Excel workbook"),
            "{bytes:?}"
        );
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
        let _ = open_with(bytes, json!({}));
    }

    /// A table is read or refused for any content of a sheet.
    #[test]
    fn any_sheet_is_read_or_refused(sheet in "(<row r=\"[0-9]{1,3}\">|<c r=\"[A-D][0-9]{0,3}\">|<v>[0-9]{0,9}</v>|</c>|</row>){0,30}") {
        let _ = open_with(workbook(&sheet), json!({}));
    }
}

#[test]
fn the_head_of_a_sheet_ends_between_two_rows() {
    let rows: String = (1..=4)
        .map(|line| {
            row(
                line,
                &[
                    inline(&format!("A{line}"), "x"),
                    number(&format!("B{line}"), "1"),
                ],
            )
        })
        .collect();
    let sheet =
        format!("<worksheet><dimension ref=\"A1:B4\"/><sheetData>{rows}</sheetData></worksheet>");
    let bytes = packed(&[
        ("xl/workbook.xml", WORKBOOK),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/worksheets/sheet1.xml", &sheet),
    ]);
    for (cells, read, is_cut) in [(3, 1, true), (4, 1, true), (5, 2, true), (8, 3, false)] {
        let source = Box::new(Cursor::new(bytes.clone()));
        let (cells, bytes) = (cells * WORKBOOK_CELL, u64::MAX);
        let extent = Extent::Head { cells, bytes };
        let options = json!({"header_row": 1});
        let options = ReadOptions::from_json(options.as_object().unwrap()).unwrap();
        let table = open_extent(source, &options, 100, extent, None).unwrap();
        assert_eq!(
            (table.row_count(), table.is_cut()),
            (read, is_cut),
            "{cells}"
        );
        // As the sheet declares it.
        assert_eq!(table.sheets().unwrap()[0].rows, 4);
    }
}

#[test]
fn the_head_of_a_sheet_has_the_formulas_of_its_last_row_and_none_behind_it() {
    let formula = |place: &str| format!("<c r=\"{place}\"><f>A1+1</f></c>");
    let rows = row(1, &[inline("A1", "n"), inline("B1", "sum")])
        + &row(2, &[number("A2", "1"), formula("B2")])
        + &row(3, &[number("A3", "2"), formula("B3")])
        // Damage, which only a pass over the whole sheet would meet.
        + "<row r=\"4\"><c r=\"4\"><v>1</v></c></row>";
    let bytes = workbook(&rows);
    for cells in [3, 4] {
        let source = Box::new(Cursor::new(bytes.clone()));
        let (cells, bytes) = (cells * WORKBOOK_CELL, u64::MAX);
        let extent = Extent::Head { cells, bytes };
        let table = open_extent(source, &ReadOptions::default(), 100, extent, None).unwrap();
        let doubts = table.doubts().iter().map(|doubt| doubt.path.as_str());
        assert_eq!(doubts.collect::<Vec<_>>(), ["rows[2]"], "{cells}");
    }
    let whole = open_with(bytes, json!({})).err().unwrap();
    assert!(matches!(whole, ReadError::Damaged), "{whole}");
}

#[test]
fn a_sheet_whose_first_value_is_an_unknown_error_has_the_size_that_it_declares() {
    let (book, relations) = workbook_of(&[("Data", "visible"), ("Spilled", "visible")]);
    let data = row(1, &[inline("A1", "a")]) + &row(2, &[number("A2", "1")]);
    let bytes = packed(&[
        ("xl/workbook.xml", &book),
        ("xl/_rels/workbook.xml.rels", &relations),
        (
            "xl/worksheets/sheet1.xml",
            &format!("<worksheet><sheetData>{data}</sheetData></worksheet>"),
        ),
        (
            "xl/worksheets/sheet2.xml",
            "<worksheet><dimension ref=\"A1:C4\"/><sheetData><row r=\"1\">\
             <c r=\"A1\" t=\"e\"><v>#SPILL!</v></c></row></sheetData></worksheet>",
        ),
    ]);
    let table = open_clear(bytes);
    let spilled = &table.sheets().unwrap()[1];
    assert_eq!((spilled.rows, spilled.columns), (4, 3));
}
