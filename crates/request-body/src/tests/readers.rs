//! Messages compared word for word with pydantic 2's answers to the same values.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    FieldPath, Problems, Reader,
    readers::{
        any, boolean, choice, datetime, float, integer, list, map_of, object, storable, text, uuid,
    },
};

fn kinds(value: &Value, read: impl Fn(Value, &FieldPath<'_>) -> bool) -> Vec<(String, String)> {
    let problems = Problems::default();
    let fits = read(value.clone(), &FieldPath::root("body", &problems));
    assert_eq!(fits, problems.is_empty(), "{value}");
    let documents = [("body".to_owned(), value.clone())].into_iter().collect();
    problems
        .explain(&documents)
        .into_iter()
        .map(|problem| (problem.r#type, problem.msg))
        .collect()
}

#[track_caller]
fn refused<T>(reader: &impl Reader<Output = T>, values: &[Value], kind: &str, message: &str) {
    for value in values {
        let found = kinds(value, |value, at| reader.read(value, at).is_some());
        assert_eq!(found, [(kind.to_owned(), message.to_owned())], "{value}");
    }
}

#[track_caller]
fn reads<T: PartialEq + std::fmt::Debug>(reader: &impl Reader<Output = T>, pairs: Vec<(Value, T)>) {
    for (value, expected) in pairs {
        let problems = Problems::default();
        let found = reader.read(value, &FieldPath::root("body", &problems));
        assert_eq!(found, Some(expected));
    }
}

#[test]
fn texts() {
    let not_text = "Input should be a valid string";
    refused(
        &text(..),
        &[json!(1), json!(null), json!([])],
        "string_type",
        not_text,
    );
    let short = "String should have at least 1 character";
    refused(&text(1..), &[json!("")], "string_too_short", short);
    let long = "String should have at most 2 characters";
    refused(
        &text(..=2),
        &[json!("abc"), json!("äöü")],
        "string_too_long",
        long,
    );
    let nul = "Value error, text cannot hold NUL characters";
    refused(&text(..), &[json!("a\0")], "value_error", nul);
    reads(&text(1..=2), vec![(json!("äö"), "äö".to_owned())]);
}

#[test]
fn whole_numbers() {
    let read = || integer(1..=1000);
    let fraction = "Input should be a valid integer, got a number with a fractional part";
    refused(&read(), &[json!(1.5)], "int_from_float", fraction);
    let parsing = "Input should be a valid integer, unable to parse string as an integer";
    let texts = [
        json!("abc"),
        json!("1.5"),
        json!(""),
        json!("9e9"),
        json!("-"),
        json!(".0"),
    ];
    refused(&read(), &texts, "int_parsing", parsing);
    let other = "Input should be a valid integer";
    refused(
        &read(),
        &[json!([]), json!(null), json!({})],
        "int_type",
        other,
    );
    let most = "Input should be less than or equal to 1000";
    let huge: Value = serde_json::from_str("10000000000000000000000000000000000000000").unwrap();
    refused(&read(), &[json!(1001), huge], "less_than_equal", most);
    let least = "Input should be greater than or equal to 1";
    refused(
        &read(),
        &[json!(0), json!("-7")],
        "greater_than_equal",
        least,
    );
    let fitting = [
        json!(5),
        json!(5.0),
        json!("5"),
        json!(" 5 "),
        json!("+5"),
        json!("5.0"),
    ];
    reads(
        &read(),
        fitting.into_iter().map(|value| (value, 5)).collect(),
    );
    let limits = [i64::MIN, i64::MAX];
    reads(
        &integer(i64::MIN..=i64::MAX),
        limits.map(|limit| (json!(limit), limit)).to_vec(),
    );
}

#[test]
fn numbers() {
    let parsing = "Input should be a valid number, unable to parse string as a number";
    refused(
        &float(),
        &[json!("x"), json!("nan"), json!("1e-400")],
        "float_parsing",
        parsing,
    );
    refused(
        &float(),
        &[json!([]), json!(null)],
        "float_type",
        "Input should be a valid number",
    );
    reads(
        &float(),
        vec![(json!(1), 1.0), (json!("1.5"), 1.5), (json!(-2.5), -2.5)],
    );
}

#[test]
fn truths() {
    let parsing = "Input should be a valid boolean, unable to interpret input";
    let unclear = [json!("maybe"), json!(" true"), json!(2), json!("")];
    refused(&boolean(), &unclear, "bool_parsing", parsing);
    let other = [json!([]), json!(null), json!(0.5)];
    refused(
        &boolean(),
        &other,
        "bool_type",
        "Input should be a valid boolean",
    );
    let yes = [
        json!(true),
        json!(1),
        json!(1.0),
        json!("YES"),
        json!("t"),
        json!("on"),
    ];
    reads(
        &boolean(),
        yes.into_iter().map(|value| (value, true)).collect(),
    );
    let no = [
        json!(false),
        json!(0),
        json!("No"),
        json!("f"),
        json!("off"),
    ];
    reads(
        &boolean(),
        no.into_iter().map(|value| (value, false)).collect(),
    );
}

#[test]
fn choices() {
    let message = "Input should be 'a', 'b' or 'c'";
    let read = choice([("a", 1), ("b", 2), ("c", 3)]);
    refused(
        &read,
        &[json!("x"), json!(1), json!(null), json!("A")],
        "enum",
        message,
    );
    reads(&read, vec![(json!("b"), 2)]);
    refused(
        &choice([("a", 1)]),
        &[json!("x")],
        "enum",
        "Input should be 'a'",
    );
    refused(
        &choice([("a", 1), ("b", 2)]),
        &[json!("x")],
        "enum",
        "Input should be 'a' or 'b'",
    );
}

#[test]
fn uuids() {
    let other = "UUID input should be a string, bytes or UUID object";
    refused(
        &uuid::<Uuid>(),
        &[json!(1), json!(null)],
        "uuid_type",
        other,
    );
    let cut = "Input should be a valid UUID, \
               invalid group length in group 4: expected 12, found 11";
    refused(
        &uuid::<Uuid>(),
        &[json!("0191d5a4-0000-7000-8000-00000000000")],
        "uuid_parsing",
        cut,
    );
    let id = Uuid::from_u128(7);
    reads(
        &uuid::<Uuid>(),
        vec![(json!(id), id), (json!(id.simple().to_string()), id)],
    );
}

#[test]
fn points_in_time() {
    let other = "Input should be a valid datetime";
    refused(
        &datetime(),
        &[json!([]), json!(null), json!(true)],
        "datetime_type",
        other,
    );
    let short = "Input should be a valid datetime or date, input is too short";
    refused(
        &datetime(),
        &[json!("soon"), json!("")],
        "datetime_from_date_parsing",
        short,
    );
    let aware = "Input should have timezone info";
    let naive = [json!("2030-01-01T00:00:00"), json!("2030-01-01")];
    refused(&datetime(), &naive, "timezone_aware", aware);
    let form = "Input should be a valid datetime or date, \
                expected a form such as 2026-03-01T12:00:00Z";
    let wrong = [json!("2030-13-01T00:00:00Z"), json!("2030-01-01T25:00:00Z")];
    refused(&datetime(), &wrong, "datetime_from_date_parsing", form);
}

#[test]
fn lists_and_maps() {
    let other = "Input should be a valid list";
    refused(
        &list(text(..)),
        &[json!(1), json!({}), json!(null)],
        "list_type",
        other,
    );
    let empty = "List should have at least 1 item after validation, not 0";
    refused(&list(any()).of(1..=2), &[json!([])], "too_short", empty);
    let many = "List should have at most 2 items after validation, not 3";
    refused(
        &list(any()).of(1..=2),
        &[json!([1, 2, 3])],
        "too_long",
        many,
    );
    let map = "Input should be a valid dictionary";
    refused(&map_of(text(..)), &[json!([]), json!(1)], "dict_type", map);
    refused(&object(), &[json!([]), json!("x")], "dict_type", map);
    let nul = "Value error, text cannot hold NUL characters";
    let hidden = [json!({"a": [{"b": "\0"}]}), json!({"\0": 1})];
    refused(&storable(object()), &hidden, "value_error", nul);
}
