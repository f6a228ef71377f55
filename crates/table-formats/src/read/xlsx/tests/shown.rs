//! Numbers that a workbook shows as something else: times, percentages, numbers with a text.

use super::*;
use crate::read::{ImportTarget, head::Extent};

const ELAPSED: &str = "[h]:mm:ss";
const CLOCK: &str = "h:mm:ss";

/// Opens a workbook for an import.
fn open_import(bytes: Vec<u8>) -> ReadTable {
    let target = ImportTarget::new(vec!["t".to_owned()]);
    let none = ReadOptions::default();
    open_extent(
        Box::new(Cursor::new(bytes)),
        &none,
        100,
        Extent::Whole,
        Some(&target),
    )
    .unwrap()
}

/// Values of the only column as numbers, or why a row is refused.
fn numbers(table: &mut ReadTable) -> Vec<Result<String, String>> {
    table.read_as(&[Some(DataType::Float)]);
    let mut found = Vec::new();
    while let Some(row) = table.next_row().unwrap() {
        found.push(match (row.problems.first(), &row.cells[0]) {
            (Some(problem), _) => Err(problem.clone()),
            (None, Some(cell)) => Ok(cell.to_string()),
            (None, None) => Ok("-".to_owned()),
        });
    }
    found
}

#[test]
fn times_are_seconds_whatever_unit_the_header_names() {
    for header in ["t", "t (min)", "t [h]", "t (ms)", "t (s)"] {
        for (cells, is_preview_number) in [
            (&[(ELAPSED, "1.25"), (ELAPSED, "0.5")][..], true),
            (&[(CLOCK, "1.25"), (CLOCK, "0.5")], true),
            (&[(CLOCK, "0.25"), (CLOCK, "0.5")], false),
        ] {
            let mut import = open_import(column_of(header, cells));
            let column = &import.columns()[0];
            assert_eq!(
                (column.unit.as_deref(), column.holds_times),
                (Some("s"), true),
                "{header}"
            );
            let found = numbers(&mut import);
            assert!(found[1] == Ok("43200".to_owned()), "{found:?}");
            let preview = open_clear(column_of(header, cells));
            let column = &preview.columns()[0];
            assert_eq!(column.data_type == DataType::Float, is_preview_number);
            assert_eq!(
                column.unit.as_deref() == Some("s"),
                is_preview_number || header == "t (s)"
            );
        }
    }
    let plain = open_import(column_of("t (min)", &[("0", "30")]));
    let column = &plain.columns()[0];
    assert_eq!(
        (column.unit.as_deref(), column.holds_times),
        (Some("min"), false)
    );
}

#[test]
fn times_among_plain_numbers_are_refused() {
    for time in [(CLOCK, "0.25"), (ELAPSED, "1.25")] {
        for plain in [("0", "30"), ("0.0", "1.5"), ("@", "30")] {
            let cells = [time, plain];
            let bytes = column_of("t (min)", &cells);
            let found = numbers(&mut open_import(bytes.clone()));
            assert!(
                found[0].as_ref().unwrap_err().contains("plain numbers"),
                "{found:?}"
            );
            assert!(found[1].is_ok(), "{found:?}");
            let mut preview = open_with(bytes, json!({})).unwrap();
            assert_eq!(preview.columns()[0].data_type, DataType::Text);
            let summary = summarize(&mut preview, 10).unwrap();
            assert_eq!(
                (&*summary.doubts[0].code, &*summary.doubts[0].path),
                ("text_numbers", "columns.t (min)")
            );
            assert!(
                summary.doubts[0].message.contains("times"),
                "{:?}",
                summary.doubts
            );
        }
    }
}

#[test]
fn a_null_value_holds_for_cells_that_are_no_texts() {
    for (cells, nulls, data_type, expected) in [
        (
            &[("0", "-999"), ("0.0", "1.5")][..],
            &["-999"][..],
            DataType::Float,
            &["-", "1.5"][..],
        ),
        (
            &[("0", "-999"), ("0.0", "1.5")],
            &["-999.0", "0"],
            DataType::Float,
            &["-", "1.5"],
        ),
        (
            &[("0.0", "-99.9"), ("0", "0")],
            &["-99,9", "0.00"],
            DataType::Text,
            &["-", "-"],
        ),
        (
            &[("0", "-999"), ("yyyy-mm-dd", "46082")],
            &["-999"],
            DataType::Date,
            &["-", "2026-03-01"],
        ),
        (
            &[("yyyy-mm-dd", "1"), ("yyyy-mm-dd", "46082")],
            &["1900-01-01"],
            DataType::Date,
            &["-", "2026-03-01"],
        ),
        (
            &[("0", "-999"), ("@", "x")],
            &["-999"],
            DataType::Text,
            &["-", "x"],
        ),
        (
            &[("0", "-999"), ("0", "7")],
            &["999"],
            DataType::Integer,
            &["-999", "7"],
        ),
    ] {
        let mut table = open_with(column_of("v", cells), json!({"null_values": nulls})).unwrap();
        assert_eq!(table.columns()[0].data_type, data_type, "{cells:?}");
        assert_eq!(super::cells(&mut table).concat(), expected, "{cells:?}");
    }
}
