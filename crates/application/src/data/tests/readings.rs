//! Readings by an import of files that may be read in several ways.

use labdata_domain::scalar::DataType;
use labdata_table_formats::read::ReadOptions;
use serde_json::{Value, json};

use super::import_file;

/// Imports a text into a table of these columns; returns a value per row and column, or path and message of the problems.
fn import_with(
    text: &str,
    columns: &[(&str, DataType)],
    options: &Value,
) -> Result<Vec<Vec<Value>>, Vec<(String, String)>> {
    let options = ReadOptions::from_json(options.as_object().unwrap()).unwrap();
    let rows = import_file(text.as_bytes().to_vec(), columns, options).map_err(|problems| {
        let problems = problems.into_iter();
        let pairs = problems.map(|it| (it.path.unwrap_or_default(), it.message));
        pairs.collect::<Vec<_>>()
    })?;
    let rows = rows.into_iter().map(|row| {
        let cells = row.into_iter();
        cells
            .map(|cell| cell.map_or(Value::Null, |value| value.to_json()))
            .collect()
    });
    Ok(rows.collect())
}

fn import(
    text: &str,
    columns: &[(&str, DataType)],
) -> Result<Vec<Vec<Value>>, Vec<(String, String)>> {
    import_with(text, columns, &json!({}))
}

#[track_caller]
fn is_refused(
    found: Result<Vec<Vec<Value>>, Vec<(String, String)>>,
    paths: &[&str],
) -> Vec<String> {
    let problems = found.unwrap_err();
    let found: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, paths, "{problems:?}");
    problems.into_iter().map(|(_, message)| message).collect()
}

#[test]
fn a_line_whose_fields_are_all_columns_is_the_header() {
    let texts = [("name", DataType::String), ("note", DataType::Text)];
    let rows = import("name,note\nq1,hello\nq2,5\nq3,6\n", &texts).unwrap();
    assert_eq!(rows[0], [json!("q1"), json!("hello")]);
    for text in [
        "List of,May\nName;Note\nA;x, y\nB;z, w\n",
        "Report, May\nname,note\nA,\"x, y\"\nB,\"z, w\"\n",
        "Operator,Smith\nPlate,7\n\nname,note\nA,\"x, y\"\nB,\"z, w\"\n",
        "name,note\n\nA,\"x, y\"\nB,\"z, w\"\n",
    ] {
        let rows = import(text, &texts).unwrap();
        assert_eq!(rows, [["A", "x, y"], ["B", "z, w"]], "{text}");
    }
    let numbers = [("x", DataType::Integer), ("y", DataType::Integer)];
    assert_eq!(import("x,y\n1,0\n", &numbers).unwrap(), [[1, 0]]);
    let one = [("name", DataType::Text)];
    assert_eq!(
        import("name\n\nBob\nAl\n", &one).unwrap(),
        [["Bob"], ["Al"]]
    );
}

#[test]
fn problems_of_cells_are_not_hidden_by_a_doubt_about_the_header() {
    let columns = [("name", DataType::String), ("n", DataType::Integer)];
    is_refused(import("name,n\nq1,abc\nq2,2\n", &columns), &["rows[2].n"]);
    let float = [("a", DataType::Float)];
    is_refused(import("a\n(5)\n6\n", &float), &["rows[2].a"]);
    is_refused(import("a\nA\n6\n7\n", &float), &["rows[2].a"]);
    let rows = import("a\n\"\"\n1.5\n2.5\n", &float).unwrap();
    assert_eq!(rows, [[json!(null)], [json!(1.5)], [json!(2.5)]]);
    let big = import("n\n9223372036854775808\n", &[("n", DataType::Integer)]);
    let messages = is_refused(big, &["rows[2].n"]);
    assert!(
        messages[0].ends_with("not \"9223372036854775808\""),
        "{messages:?}"
    );
    let integer = [("n", DataType::Integer)];
    let rows = import("n\n9007199254740993.0\n", &integer).unwrap();
    assert_eq!(rows, [[9_007_199_254_740_993_i64]]);
    is_refused(import("n\n9007199254740993.5\n", &integer), &["rows[2].n"]);
}

#[test]
fn dates_in_another_form_than_iso_8601_need_their_format() {
    let date = [("day", DataType::Date)];
    for (text, format) in [
        ("01.02.2024", "\"%d.%m.%Y\""),
        ("13/02/2024", "\"%d/%m/%Y\""),
        ("02/13/2024", "\"%m/%d/%Y\""),
        ("1 Jan 2024", "\"%d %b %Y\""),
        ("3/5/2024", "\"%d/%m/%Y\" or \"%m/%d/%Y\""),
    ] {
        for file in [
            format!("day\n{text}\n"),
            format!("day\n2024-01-31\n{text}\n"),
        ] {
            let line = file.lines().count();
            let messages = is_refused(import(&file, &date), &[&format!("rows[{line}].day")]);
            let advice = format!("date_format {format} reads this column");
            assert!(messages[0].ends_with(&advice), "{messages:?}");
        }
    }
    let mixed = is_refused(
        import("day\n01.02.2024\n02/13/2024\n", &date),
        &["rows[2].day", "rows[3].day"],
    );
    assert!(
        mixed.iter().all(|message| !message.contains("date_format")),
        "{mixed:?}"
    );
    let given = json!({"date_format": "%d.%m.%Y"});
    let rows = import_with("day\n01.02.2024\n2024-02-03\n", &date, &given).unwrap();
    assert_eq!(rows, [["2024-02-01"], ["2024-02-03"]]);
    let swapped = import_with(
        "day\n2024-03-05\n",
        &date,
        &json!({"date_format": "%Y-%d-%m"}),
    );
    assert_eq!(swapped.unwrap(), [["2024-05-03"]]);
    let at = [("at", DataType::Datetime)];
    let messages = is_refused(import("at\n01.02.2024 14:22\n", &at), &["rows[2].at"]);
    assert!(messages[0].contains("%d.%m.%Y"), "{messages:?}");
    // A text is as it is.
    let text = import("day\n01.02.2024\n", &[("day", DataType::Text)]).unwrap();
    assert_eq!(text, [["01.02.2024"]]);
}

#[test]
fn iso_8601_is_read_in_all_its_forms() {
    let date = [("day", DataType::Date)];
    let rows = import(
        "day\n20240101\n2024-001\n2024-W01-1\n2024001\n2024-01-01\n",
        &date,
    );
    assert_eq!(rows.unwrap(), vec![["2024-01-01"]; 5]);
    let at = [("at", DataType::Datetime)];
    let rows = import(
        "at\n2024-01-01T10Z\n20240101T100000Z\n2024-01-01 11:00:00+0100\n2024-01-01T10:00Z\n",
        &at,
    );
    assert_eq!(rows.unwrap(), vec![["2024-01-01T10:00:00Z"]; 4]);
    let outside = "at\n9999-12-31T23:30:00-01:00\n0001-01-01T00:00:00+01:00\n";
    let zone = json!({"timezone": "Europe/Berlin"});
    is_refused(
        import_with(outside, &at, &zone),
        &["rows[2].at", "rows[3].at"],
    );
    // Numbers and codes elsewhere.
    let texts = [("code", DataType::Text)];
    let rows = import("code\n20240101\n2024-001\n", &texts).unwrap();
    assert_eq!(rows, [["20240101"], ["2024-001"]]);
}
