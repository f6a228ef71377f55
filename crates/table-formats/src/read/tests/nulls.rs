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
