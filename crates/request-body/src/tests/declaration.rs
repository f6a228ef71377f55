//! Declared shapes: reader, schema and streaming reader agree.

use serde_json::{Value, json};

use crate::{
    ProblemKind, Shape, ShapeProblem, fields::*, json_schema, path::MAX_PROBLEMS, read, readers::*,
    shape,
};

shape! {
    /// Two numbers.
    ///
    /// And more.
    #[derive(Debug, PartialEq)]
    struct Pair {
        /// Not nine.
        left: i64 = required(integer(0..=9)),
        right: Vec<i64> = or(json!([]), list(integer(0..=9))),
        /// Remarks,
        /// on two lines.
        note: Option<String> = optional(text(..)),
        limit: u32 = or(50, unsigned(1..=1_000)),
        kind: Option<u8> = optional(choice([("a", 1), ("b", 2)])),
        inner: Option<Inner> = optional(shape::<Inner>()),
    }
    rules |at| {
        if *left == Some(9) {
            at.field("left").report(ProblemKind::value_error("nine is taken"));
        }
    }
}

shape! {
    /// A shape within another.
    #[derive(Debug, PartialEq)]
    struct Inner {
        name: String = required(text(1..)),
    }
}

fn stream(body: &Value) -> Option<Pair> {
    crate::json::stream(body.to_string().as_bytes())
}

fn places(problems: &[ShapeProblem]) -> Vec<Value> {
    problems.iter().map(|problem| json!(problem.loc)).collect()
}

#[test]
fn every_problem_is_told_at_its_place_with_its_value() {
    let problems = read::<Pair>("body", json!({"right": [1, "x", 10], "note": 5})).unwrap_err();
    assert_eq!(
        places(&problems),
        [
            json!(["body", "left"]),
            json!(["body", "right", 1]),
            json!(["body", "right", 2]),
            json!(["body", "note"]),
        ]
    );
    let inputs: Vec<&Value> = problems.iter().map(|problem| &problem.input).collect();
    let whole = json!({"right": [1, "x", 10], "note": 5});
    assert_eq!(inputs, [&whole, &json!("x"), &json!(10), &json!(5)]);
}

#[test]
fn what_fits_is_read_and_unknown_fields_are_ignored() {
    let pair = read::<Pair>("body", json!({"left": 1, "note": null, "unknown": [1]})).unwrap();
    assert_eq!((pair.left, pair.right), (1, Vec::new()));
    assert_eq!(
        places(&read::<Pair>("body", json!({"left": 9})).unwrap_err()),
        [json!(["body", "left"])]
    );
}

#[test]
fn past_a_thousand_problems_a_last_one_counts_the_rest() {
    let body = json!({"left": 1, "right": vec!["x"; 5_000]});
    let problems = read::<Pair>("body", body).unwrap_err();
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    let last = problems.last().unwrap();
    assert_eq!(last.r#type, "too_many_problems");
    assert_eq!(last.msg, "4000 more problems were left out");
}

#[test]
fn a_field_given_as_null_means_an_absent_one() {
    let absent = json!({"left": 1});
    let null = json!({
        "left": 1, "right": null, "note": null, "limit": null, "kind": null, "inner": null
    });
    let pair = read::<Pair>("body", absent.clone()).unwrap();
    assert_eq!((&pair.right, pair.limit), (&Vec::new(), 50));
    assert_eq!(read::<Pair>("body", null.clone()).unwrap(), pair);
    assert_eq!(stream(&absent), Some(read::<Pair>("body", absent).unwrap()));
    assert_eq!(stream(&null), Some(read::<Pair>("body", null).unwrap()));
}

#[test]
fn both_readers_accept_the_same() {
    for body in [
        json!({"left": "5", "right": [1.0], "limit": "7", "kind": "b", "x": {"y": [null, "z"]}}),
        json!({"left": 0, "inner": {"name": "n", "more": 1}}),
        json!({"left": 9}),
        json!({"left": 10}),
        json!({"right": []}),
        json!({"left": 1, "limit": 0}),
        json!({"left": 1, "kind": "c"}),
        json!({"left": 1, "inner": {}}),
        json!({"left": 1, "inner": []}),
        json!([]),
        json!([1, []]),
        json!("left"),
    ] {
        assert_eq!(
            stream(&body),
            read::<Pair>("body", body.clone()).ok(),
            "{body}"
        );
    }
}

#[test]
fn a_rule_between_fields_is_reported_beside_other_problems() {
    let problems = read::<Pair>("body", json!({"left": 9, "note": 5})).unwrap_err();
    assert_eq!(
        places(&problems),
        [json!(["body", "note"]), json!(["body", "left"])]
    );
}

#[test]
fn the_schema_says_what_the_reader_enforces() {
    assert_eq!(
        json_schema::<Pair>(),
        json!({
            "type": "object",
            "description": "Two numbers.\n\nAnd more.",
            "required": ["left"],
            "properties": {
                "left": {
                    "type": "integer", "minimum": 0, "maximum": 9, "description": "Not nine."
                },
                "right": {
                    "type": ["array", "null"],
                    "items": { "type": "integer", "minimum": 0, "maximum": 9 },
                    "default": []
                },
                "note": { "type": ["string", "null"], "description": "Remarks,\non two lines." },
                "limit": {
                    "type": ["integer", "null"], "minimum": 1, "maximum": 1_000, "default": 50
                },
                "kind": { "type": ["string", "null"], "enum": ["a", "b", null] },
                "inner": {
                    "type": ["object", "null"],
                    "description": "A shape within another.",
                    "required": ["name"],
                    "properties": { "name": { "type": "string", "minLength": 1 } },
                },
            },
        })
    );
}

shape! {
    /// A list's query string.
    #[derive(Debug)]
    struct ListQuery {
        pair: Inner = group::<Inner>(),
        page: labdata_domain::page::PageRequest = page(Some(50)),
    }
}

#[test]
fn a_group_adds_its_fields_to_the_shape() {
    let query = read::<ListQuery>("query", json!({"name": "n", "limit": "7"})).unwrap();
    assert_eq!((query.pair.name.as_str(), query.page.limit), ("n", Some(7)));
    let names: Vec<&str> = ListQuery::properties(&mut crate::Definitions::new(""))
        .iter()
        .map(|property| property.name)
        .collect();
    assert_eq!(names, ["name", "limit", "cursor"]);
    let problems = read::<ListQuery>("query", json!({"limit": "0", "cursor": "?"})).unwrap_err();
    assert_eq!(
        places(&problems),
        [
            json!(["query", "name"]),
            json!(["query", "limit"]),
            json!(["query", "cursor"])
        ]
    );
}
