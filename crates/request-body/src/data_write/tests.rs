//! Both readers of data writes: the one that streams, and the one that reports every problem.

use serde_json::{Map, Value, json};

use super::*;
use crate::{FieldPath, Problems};

fn stream(body: &[u8]) -> Option<DataWriteBody> {
    crate::json::stream(body)
}

fn slow(body: &Value) -> Option<DataWriteBody> {
    crate::read("body", body.clone()).ok()
}

#[test]
fn both_readers_understand_a_body_alike() {
    for body in [
        json!({}),
        json!({ "tables": null, "series": [], "dry_run": true }),
        json!({ "dry_run": null, "return_rows": "yes", "job_name": null, "unknown": { "a": [1] } }),
        json!({ "tables": [{ "table": "x", "rows": [], "mode": null, "key": null, "cascade": null,
            "on_match": null }] }),
        json!({ "tables": [{ "table": "sample", "mode": "upsert", "key": ["name"], "rows": [
            { "_ref": "a", "name": "x", "n": 1, "f": 0.5, "b": true, "z": null, "j": { "k": [1] } },
            { "name": "y", "l": [1, "a"], "big": 18_446_744_073_709_551_615_u64 }, {}] }] }),
        json!({ "series": [{ "table": "curve", "parent": { "name": "x" }, "parent_column": "s",
            "columns": { "a": [1, 2, null], "b": [1, 0.5, "x"], "c": [] } }], "return_rows": true }),
    ] {
        let streamed = stream(body.to_string().as_bytes());
        assert!(streamed.is_some(), "{body}");
        assert_eq!(streamed.map(sorted), slow(&body).map(sorted));
    }
}

/// One table's columns: their names and cells.
type Columns = Vec<(String, Vec<Cell>)>;

/// Maps of JSON values are sorted by key; the stream keeps the body's order.
fn sorted(mut body: DataWriteBody) -> (Vec<Columns>, DataWriteBody) {
    let rows = body
        .tables
        .iter_mut()
        .map(|table| {
            let mut columns: Vec<(String, Vec<Cell>)> = std::mem::take(&mut table.rows)
                .columns()
                .map(|column| (column.name.to_owned(), column.cells().cloned().collect()))
                .collect();
            columns.sort_by(|a, b| a.0.cmp(&b.0));
            columns
        })
        .collect();
    for series in &mut body.series {
        series.columns.sort_by(|a, b| a.0.cmp(&b.0));
    }
    (rows, body)
}

#[test]
fn both_readers_refuse_the_same_shapes() {
    for body in [
        json!([]),
        json!({ "tables": {} }),
        json!({ "tables": [{ "rows": [] }] }),
        json!({ "tables": [{ "table": "x", "rows": [1] }] }),
        json!({ "tables": [{ "table": "x", "rows": [], "mode": "merge" }] }),
        json!({ "tables": [{ "table": "x", "rows": [], "key": [1] }] }),
        json!({ "series": [{ "table": "x", "parent": 1.5, "columns": {} }] }),
        json!({ "series": [{ "table": "x", "parent": "a", "columns": { "v": 1 } }] }),
        json!({ "dry_run": "perhaps" }),
        json!({ "job_name": "a\0" }),
    ] {
        assert_eq!(stream(body.to_string().as_bytes()), None, "{body}");
        assert_eq!(slow(&body), None, "{body}");
    }
}

/// Bytes within a text of an unknown field, of a known one and of a row.
#[test]
fn bytes_that_are_not_utf_8_are_refused_wherever_they_are() {
    for body in [
        &b"{\"unknown\": \"\xff\"}"[..],
        b"{\"unknown\": [{\"\xff\": 1}]}",
        b"{\"job_name\": \"\xc3\x28\"}",
        b"{\"tables\": [{\"table\": \"x\", \"rows\": [{\"a\": \"\xff\"}]}]}",
    ] {
        assert_eq!(stream(body), None);
        let problems = Problems::default();
        let read: Option<DataWriteBody> =
            crate::json::read(body, &FieldPath::root("body", &problems));
        assert_eq!(read, None);
        let problems = problems.explain(&Map::new());
        assert_eq!(problems.len(), 1);
        assert!(
            problems
                .iter()
                .all(|problem| problem.r#type == "json_invalid")
        );
    }
}

#[test]
fn a_number_that_would_become_zero_is_refused() {
    let body = br#"{"tables": [{"table": "x", "rows": [{"a": 1e-400}]}]}"#;
    assert_eq!(stream(body), None);
    let problems = Problems::default();
    let read: Option<DataWriteBody> = crate::json::read(body, &FieldPath::root("body", &problems));
    assert_eq!(read, None);
    let problems = problems.explain(&Map::new());
    assert_eq!(problems[0].r#type, "json_invalid");
    let zeros = br#"{"tables": [{"table": "x", "rows": [{"a": 0e-400, "b": "1e-400"}]}]}"#;
    assert!(stream(zeros).is_some());
}

#[test]
fn what_an_unknown_field_holds_is_checked_as_json() {
    for body in ["{\"unknown\": 1e999}", "{\"unknown\": \"\\ud800\"}"] {
        assert_eq!(stream(body.as_bytes()), None, "{body}");
        assert!(serde_json::from_str::<Value>(body).is_err(), "{body}");
    }
}

#[test]
fn the_last_of_two_equal_fields_counts() {
    let body = br#"{"dry_run": true, "dry_run": false}"#;
    assert_eq!(stream(body), None);
    let problems = Problems::default();
    let read: Option<DataWriteBody> = crate::json::read(body, &FieldPath::root("body", &problems));
    assert_eq!(read.map(|body| body.dry_run), Some(false));
}

#[test]
fn an_integer_beyond_64_bits_is_refused_in_values_that_are_stored_as_json() {
    let rows = |value: &str| {
        format!("{{\"tables\": [{{\"table\": \"x\", \"rows\": [{{}}, {{\"meta\": {value}}}]}}]}}")
    };
    let series = |value: &str| {
        format!(
            "{{\"series\": [{{\"table\": \"x\", \"parent\": \"a\", \"columns\": {{\"meta\": [{value}]}}}}]}}"
        )
    };
    let number = "123456789012345678901234567890";
    for (body, path) in [
        (
            rows(&format!("{{\"count\": {number}}}")),
            "tables[0].rows[1].meta.count",
        ),
        (rows(&format!("[1, {number}]")), "tables[0].rows[1].meta[1]"),
        (
            series(&format!("{{\"count\": {number}}}")),
            "series[0].columns.meta[0].count",
        ),
        (rows("[-9223372036854775809]"), "tables[0].rows[1].meta[0]"),
    ] {
        assert_eq!(stream(body.as_bytes()), None, "{body}");
        let problems = Problems::default();
        let at = FieldPath::root("body", &problems);
        let read: Option<DataWriteBody> = crate::json::read(body.as_bytes(), &at);
        assert_eq!(read, None, "{body}");
        let problems = problems.explain(&Map::new());
        assert!(
            format!("{problems:?}").contains(path),
            "{problems:?} lack {path}"
        );
    }
    // The column's type decides about a value that is a number, with the other problems of the write.
    for body in [rows(number), series(number), rows("[18446744073709551615]")] {
        assert!(stream(body.as_bytes()).is_some(), "{body}");
    }
}

#[test]
fn a_number_that_no_float_holds_is_named_with_its_path() {
    let table = |value: &str| {
        format!(
            "{{\"tables\": [{{\"table\": \"x\", \"rows\": [{{\"a\": 1}}, {{\"a\": {value}}}]}}]}}"
        )
    };
    let series = |value: &str| {
        format!(
            "{{\"series\": [{{\"table\": \"x\", \"parent\": \"a\", \"columns\": {{\"v\": [1, {value}]}}}}]}}"
        )
    };
    let long = "9".repeat(400);
    for (body, message) in [
        (
            table("1e400"),
            "number out of range at tables[0].rows[1].a: 1e400 is beyond",
        ),
        (
            table("{\"b\": [-1e999]}"),
            "number out of range at tables[0].rows[1].a.b[0]: -1e999 is",
        ),
        (
            series(&long),
            "number out of range at series[0].columns.v[1]: 9999",
        ),
        (
            series("1e-400"),
            "number too small at series[0].columns.v[1]: 1e-400 would become 0",
        ),
        ("{\"unknown\": 1e999}".to_owned(), "at unknown: 1e999"),
    ] {
        let problems = Problems::default();
        let at = FieldPath::root("body", &problems);
        let read: Option<DataWriteBody> = crate::json::read(body.as_bytes(), &at);
        assert_eq!(read, None, "{body}");
        let problems = format!("{:?}", problems.explain(&Map::new()));
        assert!(problems.contains(message), "{problems} lack {message}");
    }
    // Another error of the same text.
    let problems = Problems::default();
    let at = FieldPath::root("body", &problems);
    let read: Option<DataWriteBody> = crate::json::read(b"{\"a\": x, \"b\": 1e400}", &at);
    assert_eq!(read, None);
    let problems = format!("{:?}", problems.explain(&Map::new()));
    assert!(!problems.contains("1e400"), "{problems}");
}
