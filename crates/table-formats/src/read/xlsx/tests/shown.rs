//! Numbers that a workbook shows as something else: times, percentages, numbers with a text.

use super::*;
use crate::read::{ImportTarget, TableSummary, head::Extent};

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
            let preview = open_with(column_of(header, cells), json!({})).unwrap();
            let column = &preview.columns()[0];
            assert_eq!(column.data_type == DataType::Float, is_preview_number);
            assert_eq!(
                column.unit.as_deref() == Some("s"),
                is_preview_number || header == "t (s)"
            );
            // A dataset would have the seconds below this header.
            let is_doubtful = is_preview_number && !matches!(header, "t" | "t (s)");
            let doubts: Vec<&str> = preview.doubts().iter().map(|it| &*it.code).collect();
            assert_eq!(doubts, vec!["time_unit"; usize::from(is_doubtful)]);
            assert_eq!(preview.check().is_err(), is_doubtful);
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

/// Values of the only column, whose header is `header`, as numbers in a unit of a table.
fn in_unit(
    header: &str,
    cells: &[(&str, &str)],
    unit: Option<&str>,
) -> Vec<Result<String, String>> {
    let mut table = open_import(column_of(header, cells));
    table.read_in(&[unit.map(str::to_owned)]);
    numbers(&mut table)
}

fn preview_of(header: &str, cells: &[(&str, &str)]) -> TableSummary {
    let mut table = open_with(column_of(header, cells), json!({})).unwrap();
    summarize(&mut table, 10).unwrap()
}

/// Rows with doubts about their numbers.
fn doubted(summary: &TableSummary) -> Vec<&str> {
    let doubts = summary
        .doubts
        .iter()
        .filter(|doubt| doubt.code == "number_format");
    doubts.map(|doubt| doubt.path.as_str()).collect()
}

#[test]
fn percentages_are_what_a_person_sees_in_a_column_of_percent() {
    let cells = [
        ("0.0%", "0.985"),
        ("0%", "0.57"),
        ("0.00", "97.5"),
        ("0%", "1"),
    ];
    for header in ["t (%)", "t [% v/v]", "t (percent)", "t %", "% t"] {
        let preview = preview_of(header, &cells);
        let expected = [[json!(98.5)], [json!(57)], [json!(97.5)], [json!(100)]];
        assert_eq!(preview.rows, expected, "{header}");
        assert_eq!(preview.doubts, [], "{header}");
        assert!(preview.columns[0].column.unit.is_some(), "{header}");
        for unit in [Some("%"), None] {
            let found = in_unit(header, &cells, unit);
            let values: Vec<&str> = found.iter().map(|it| it.as_deref().unwrap()).collect();
            assert_eq!(values, ["98.5", "57", "97.5", "100"], "{header} {unit:?}");
        }
    }
}

#[test]
fn percentages_below_a_header_without_percent_are_fractions_or_refused() {
    let cells = [("0.0%", "0.985"), ("0%", "0.5")];
    let preview = preview_of("t", &cells);
    assert_eq!(preview.rows, [[json!(0.985)], [json!(0.5)]]);
    assert_eq!(
        (&preview.columns[0].column.unit, preview.doubts.len()),
        (&None, 0)
    );
    for (header, unit, expected) in [
        ("t", None, Some("0.985")),
        ("t", Some("1"), Some("0.985")),
        ("t (%)", Some("1"), Some("0.985")),
        ("t (HPLC)", None, Some("0.985")),
        ("t", Some("g/g"), Some("0.985")),
        ("t", Some("%"), Some("98.5")),
        ("t (HPLC)", Some("%"), Some("98.5")),
        ("t", Some("mg/mL"), None),
        ("t (%)", Some("mg/mL"), None),
        ("t (mg/mL)", None, None),
    ] {
        let found = in_unit(header, &cells, unit);
        assert_eq!(
            found[0].as_deref().ok(),
            expected,
            "{header} {unit:?} {found:?}"
        );
    }
    for plain in [("0", "97.5"), ("0.0", "0.5"), ("@", "97.5")] {
        let mixed = [("0.0%", "0.985"), plain];
        assert_eq!(doubted(&preview_of("t", &mixed)), ["rows[2]"]);
        for (header, unit) in [
            ("t", None),
            ("t", Some("%")),
            ("t", Some("1")),
            ("t (%)", Some("1")),
        ] {
            let found = in_unit(header, &mixed, unit);
            assert!(
                found[0].as_ref().unwrap_err().contains("98.5%"),
                "{header} {unit:?} {found:?}"
            );
        }
    }
}

#[test]
fn a_number_with_a_label_is_read_if_the_label_is_its_unit() {
    for (header, format, unit, is_read) in [
        ("t (\u{b5}L)", "0.0\" \u{3bc}l\"", None, true),
        ("t (mL)", "0.0\" mL\"", Some("mL"), true),
        ("t", "0.0\" mL\"", Some("mL"), true),
        ("t", "0.0\" mL\"", None, true),
        ("t (AU)", "0.0\" AU\"", None, true),
        ("t", "0.0\"%\"", Some("%"), true),
        ("t", "00.00", Some("uL"), true),
        ("t", "#,##0.0 \"\u{20ac}\"", None, true),
        ("t", "0.0_);(0.0)", Some("uL"), true),
        ("t", "0.0\" mL\"", Some("uL"), false),
        ("t (\u{b5}L)", "0.0\" mL\"", None, false),
        ("t (mL)", "0.0,\" mL\"", None, false),
        ("t (mL)", "\"mL\"", None, false),
        ("t", "\"<\"0.0", Some("uL"), false),
        ("t", "\\<0.0", None, false),
        ("t", "\"\u{2265}\"0.0", None, false),
        ("t", "\"n.d.\"", Some("uL"), false),
        ("t", "0\"e3\"", Some("uL"), false),
        ("t", "0.0\"%\"", Some("1"), false),
        ("t", "0.0,", None, false),
        ("t", "000-00", None, false),
        ("t", "[<10]\"<10\";0.0", None, false),
        ("t", "[<5]\"<5\";0.0", None, true),
    ] {
        let cells = [(format, "5"), (format, "7.5")];
        let found = in_unit(header, &cells, unit);
        assert_eq!(
            found[0].is_ok(),
            is_read,
            "{header} {format} {unit:?} {found:?}"
        );
        if unit.is_none() {
            let preview = preview_of(header, &cells);
            assert_eq!(doubted(&preview).is_empty(), is_read, "{header} {format}");
        }
    }
}

#[test]
fn a_unit_that_each_cell_shows_is_that_of_the_column() {
    let unit_of = |header: &str, cells: &[(&str, &str)]| {
        let preview = preview_of(header, cells);
        (
            preview.columns[0].column.unit.clone(),
            doubted(&preview).len(),
        )
    };
    let (milliliters, microliters) = (("0.0\" mL\"", "1.5"), ("0\" \u{b5}L\"", "7"));
    assert_eq!(
        unit_of("t", &[milliliters, milliliters]),
        (Some("mL".to_owned()), 0)
    );
    assert_eq!(unit_of("t", &[milliliters, microliters]), (None, 2));
    assert_eq!(unit_of("t", &[milliliters, ("0", "2")]), (None, 1));
    assert_eq!(unit_of("t", &[("\"<\"0", "2"), ("\"<\"0", "3")]), (None, 2));
}

#[test]
fn a_label_is_null_where_such_texts_are() {
    let cells = [
        ("\"<\"0.0", "5"),
        ("0.0", "7"),
        ("0.0", "8"),
        ("0.0", "9"),
        ("0.0", "10"),
    ];
    let mut table = open_with(column_of("t", &cells), json!({"text_numbers": "null"})).unwrap();
    assert_eq!(super::cells(&mut table)[..2], [["-"], ["7"]]);
    assert_eq!(table.reading().null_text_numbers, 1);
}
