//! Messages of doubts, and the columns that they concern.

use super::*;

#[track_caller]
fn doubt(text: &str, message: &str, columns: &[usize]) {
    let found = read(text);
    let doubt = &found.table.doubts()[0];
    assert_eq!(
        (doubt.message.as_str(), doubt.columns.as_slice()),
        (message, columns)
    );
    assert_eq!(doubt.to_json()["message"], message);
}

#[test]
fn a_doubt_about_the_header_names_its_lines() {
    doubt(
        "1,2\n3,4\n",
        "no line has names of columns only; line 1 may be the header, or the table may have none",
        &[],
    );
    doubt(
        "Report of,May\nname,vol\nA1,1.5\nA2,2.5\n",
        "line 1 may be the header, and so may line 2",
        &[],
    );
    doubt(
        "Units,n,Units\nx,1,y\n",
        "columns 1 and 3 have the same header \"Units\"",
        &[0, 2],
    );
    // Of the columns that are read.
    doubt(
        "x,,Units,Units\ny,,1,2\n",
        "columns 2 and 3 have the same header \"Units\"",
        &[1, 2],
    );
    doubt(
        "t,od\n0,0.5\n\nEnd\n",
        "the table ends on line 2; line 4 and those below it are of another form",
        &[],
    );
}

#[test]
fn a_doubt_about_numbers_names_three_columns_and_one_of_them() {
    let groups = "may have decimals or groups of three digits";
    for (text, names, columns) in [
        ("a;b\n1.234;x\n", "\"a\" written like 1.234", &[0][..]),
        ("a;b\nx;1,234\n", "\"b\" written like 1,234", &[1]),
        (
            "a;b;c;d;e\n1.234;x;1.234;1.234;1.234\n",
            "\"a\", \"c\", \"d\" written like 1.234",
            &[0, 2, 3, 4],
        ),
        // A column of texts has no numbers that another style could change.
        (
            "a;b\n1.234;1.234\nx;2.345\n",
            "\"b\" written like 1.234",
            &[1],
        ),
    ] {
        doubt(text, &format!("numbers of {names} {groups}"), columns);
    }
}

#[test]
fn a_given_or_decided_style_leaves_no_doubt_about_numbers() {
    let text = "a;b\n1.234;x\n";
    for (given, cell) in [
        (json!({"decimal": "."}), Some("1.234")),
        (json!({"decimal": ",", "thousands": "."}), Some("1234")),
        (json!({"thousands": "."}), Some("1234")),
        (json!({"thousands": ""}), Some("1.234")),
        (json!({"decimal": ","}), None),
    ] {
        let found = read_with(text, given.clone());
        match cell {
            Some(cell) => assert_eq!(
                (found.codes(), found.cells()[0][0].as_str()),
                (vec![], cell)
            ),
            None => assert_eq!(found.codes(), [("number_format", "decimal")], "{given}"),
        }
    }
    for (text, cells) in [
        ("a;b\n1.234,5;x\n2.345;y\n", ["1234.5", "2345"]),
        ("a;b\n1,234.5;x\n2,345;y\n", ["1234.5", "2345"]),
        ("a;b\n1.2345;x\n2.345;y\n", ["1.2345", "2.345"]),
        ("a;b\n1.234.567;x\n2.345;y\n", ["1234567", "2345"]),
    ] {
        let found = clear(text).1;
        assert_eq!(
            [found[0][0].as_str(), found[1][0].as_str()],
            cells,
            "{text}"
        );
    }
}

#[test]
fn a_doubt_about_texts_among_numbers_names_the_first_of_them() {
    let numbers = "x,1.5\n".repeat(8);
    for first in ["high", "1,5 %x", "2024-03-05"] {
        let found = read(format!("n,od\nx,1\n\"x\",\"{first}\"\nx,low\n{numbers}"));
        let message = &found.table.doubts()[0].message;
        assert!(
            message.contains(&format!("row 3 has \"{first}\"")),
            "{message}"
        );
    }
}
