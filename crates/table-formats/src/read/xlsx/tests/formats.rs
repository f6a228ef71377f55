//! Numbers that a workbook shows with zeros or texts of their format.

use super::*;

/// A cell in a column of texts, and the problems of its row.
fn as_text(style: u8, digits: &str) -> (Option<FileCell>, Vec<String>) {
    let rows = row(1, &[inline("A1", "code")]) + &row(2, &[styled("A2", style, digits)]);
    let mut table = open_clear(workbook(&rows));
    table.read_as(&[Some(DataType::String)]);
    let row = table.next_row().unwrap().unwrap();
    (row.cells[0].clone(), row.problems.to_vec())
}

#[test]
fn leading_zeros_of_a_format_reach_a_column_of_texts() {
    for (digits, expected) in [("123", "00123"), ("-7", "-00007"), ("1234567", "1234567")] {
        let (cell, problems) = as_text(6, digits);
        assert_eq!(cell, Some(FileCell::Text(expected.to_owned())));
        assert_eq!(problems, [""; 0]);
    }
    let (cell, _) = as_text(0, "123");
    assert_eq!(cell, Some(FileCell::Integer(123)));
}

#[test]
fn other_characters_of_a_format_are_a_problem_of_a_column_of_texts() {
    for (style, digits) in [(7, "123456789"), (8, "7"), (6, "1.5")] {
        let (cell, problems) = as_text(style, digits);
        assert_eq!(cell, None);
        assert!(
            problems[0].contains(&format!("shows the number {digits}")),
            "{problems:?}"
        );
    }
}

#[test]
fn zeros_of_a_format_do_not_change_a_column_of_numbers() {
    let rows = row(1, &[inline("A1", "n"), inline("B1", "x")])
        + &row(2, &[styled("A2", 6, "123"), styled("B2", 5, "7.5")])
        + &row(3, &[styled("A3", 0, "7"), styled("B3", 6, "1")]);
    let mut table = open_clear(workbook(&rows));
    let types: Vec<DataType> = table.columns().iter().map(|it| it.data_type).collect();
    assert_eq!(types, [DataType::Integer, DataType::Float]);
    assert_eq!(cells(&mut table), [["123", "7.5"], ["7", "1"]]);
}

#[test]
fn a_sign_or_a_digit_that_only_the_format_shows_is_a_problem() {
    for (format, number, is_refused) in [
        ("\"-\"0", "5", true),
        ("(0)", "5", true),
        ("0-", "5", true),
        ("\"1\"0", "5", true),
        ("0\\.00", "5", true),
        ("\"0.\"0", "5", true),
        // A sign of negative numbers that shows one, or a dash for zero.
        ("0;(0)", "-5", false),
        ("0;0-", "-5", false),
        ("0;-0;\"-\"", "0", false),
    ] {
        let mut table = open_with(column_of("v", &[(format, number)]), json!({})).unwrap();
        let row = table.next_row().unwrap().unwrap();
        assert_eq!(row.problems.len(), usize::from(is_refused), "{format}");
        let expected = (!is_refused).then(|| FileCell::Integer(number.parse().unwrap()));
        assert_eq!(row.cells[0], expected, "{format}");
    }
}
