//! Null values that are numbers.

use super::*;

#[test]
fn a_null_number_holds_for_every_way_to_write_it() {
    for (text, entry, expected) in [
        ("v\n-999.0\n1.5\n", "-999", &["-", "1.5"][..]),
        ("v\n-999\n1.5\n", "-999.0", &["-", "1.5"]),
        ("v;w\n-999,00;a\n1,5;b\n", "-999", &["-", "1.5"]),
        ("v;w\n-99,9;a\n1,5;b\n", "-99.9", &["-", "1.5"]),
        ("v;w\n9.999,00;a\n1.000,5;b\n", "9999", &["-", "1000.5"]),
        ("v\n0.00\n1\n", "0", &["-", "1"]),
        ("v\n1e3\n1\n", "1000", &["-", "1"]),
        (
            "v\n9007199254740993\n9007199254740992\n",
            "9007199254740993.0",
            &["-", "9007199254740992"],
        ),
        ("v\n0.00\n2024-03-05\n", "0", &["-", "2024-03-05"]),
        // Another number, and a text that is none.
        ("v\n-999.1\n1\n", "-999", &["-999.1", "1"]),
        ("v\n1.5\n2\n", "1,5", &["-", "2"]),
    ] {
        let found = read_with(text, json!({"null_values": [entry]}));
        let first: Vec<String> = found
            .cells()
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(first, expected, "{text} {entry}");
    }
}

#[test]
fn a_text_column_has_the_null_values_as_they_are_given() {
    let found = read_with("v\n-999\n-999.0\nx\n", json!({"null_values": ["-999"]}));
    assert_eq!(found.cells().concat(), ["-", "-999.0", "x"]);
    let none = read("v\n-999\n0\n");
    assert_eq!(none.cells().concat(), ["-999", "0"]);
}

#[test]
fn a_null_value_does_not_show_how_numbers_are_written() {
    for (text, entry, decimal, expected) in [
        (
            "v;w\n1,234;a\n1.5;b\n2.5;c\n",
            "1,234",
            ".",
            &["-", "1.5", "2.5"][..],
        ),
        (
            "v;w\n1,234;a\n1,234;b\n2.5;c\n",
            "1,234",
            ".",
            &["-", "-", "2.5"],
        ),
        (
            "v;w\n-999,0;a\n-999,0;b\n2.5;c\n",
            "-999",
            ".",
            &["-", "-", "2.5"],
        ),
        (
            "v;w\n-999.00;a\n-999.00;b\n2,5;c\n",
            "-999",
            ",",
            &["-", "-", "2.5"],
        ),
        ("v;w\n-999,5;a\n1.5;b\n", "-999.5", ".", &["-", "1.5"]),
        ("v;w\n-1.234,5;a\n1.5;b\n", "-1234.5", ".", &["-", "1.5"]),
        (
            "v;w\nn.d.;a\nn.d.;b\n2,5;c\n",
            " n.d. ",
            ",",
            &["-", "-", "2.5"],
        ),
    ] {
        let found = read_with(text, json!({"null_values": [entry]}));
        let first: Vec<String> = found
            .cells()
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(first, expected, "{text}");
        assert_eq!(found.table.columns()[0].data_type, DataType::Float);
        assert_eq!(
            (found.codes(), &found.problems),
            (vec![], &vec![]),
            "{text}"
        );
        let found = found.table.reading().options.decimal.unwrap();
        assert_eq!(found.as_str(), decimal, "{text}");
    }
}

#[test]
fn a_number_that_is_a_null_value_in_one_style_does_not_choose_it() {
    // With groups it would be -999000, which nothing else in the file shows.
    for text in [
        "v;w\n-999.000;a\n1,5;b\n2,5;c\n3,5;d\n4,5;e\n",
        "v;w\n-999,000;a\n1.5;b\n2.5;c\n3.5;d\n4.5;e\n",
    ] {
        let found = read_with(text, json!({"null_values": ["-999"]}));
        assert_eq!(found.table.columns()[0].data_type, DataType::Text, "{text}");
        assert_eq!(found.codes(), [("text_numbers", "columns.v")]);
        let message = &found.table.doubts()[0].message;
        assert!(message.contains("row 2 has \"-999"), "{message}");
        assert_eq!(found.table.reading().options.thousands, Some(None));
    }
    // Either the value 9.999, or the null value.
    let found = read_with("v;w\n9.999;a\n5;b\n", json!({"null_values": ["9999"]}));
    assert_eq!(found.codes(), [("number_format", "decimal")]);
}

#[test]
fn a_cell_that_is_no_number_is_named_with_its_row() {
    for other in ["1,5", "2024-03-05", "03.04.2024", "true", "x"] {
        let file = format!("v;w\n1.5;a\n2.5;b\n3.5;c\n4.5;d\n{other};e\n");
        let found = read(&file);
        let message = &found.table.doubts()[0].message;
        let expected = format!("row 6 has \"{other}\"");
        assert!(message.contains(&expected), "{message}");
    }
}
