//! Values of every type, as they are displayed and stored in columns.

use serde_json::json;
use time::macros::{date, datetime};

use super::*;

/// A value of every type.
fn scalars() -> [(DataType, Scalar, Value); 9] {
    let id = Uuid::from_u128(7);
    [
        (DataType::String, Scalar::Text("a".to_owned()), json!("a")),
        (DataType::Text, Scalar::Text("b".to_owned()), json!("b")),
        (DataType::Integer, Scalar::Integer(-1), json!(-1)),
        (DataType::Float, Scalar::Float(0.5), json!(0.5)),
        (DataType::Boolean, Scalar::Boolean(true), json!(true)),
        (
            DataType::Datetime,
            Scalar::Datetime(datetime!(2026-03-01 12:00 UTC)),
            json!("2026-03-01T12:00:00Z"),
        ),
        (
            DataType::Date,
            Scalar::Date(date!(2026 - 03 - 01)),
            json!("2026-03-01"),
        ),
        (DataType::Uuid, Scalar::Uuid(id), json!(id.to_string())),
        (DataType::Json, Scalar::Json(json!([1])), json!([1])),
    ]
}

#[test]
fn types_have_names_that_read_back() {
    let names = DataType::ALL.map(DataType::as_str);
    assert_eq!(
        names,
        [
            "string", "text", "integer", "float", "boolean", "datetime", "date", "uuid", "json"
        ]
    );
    for data_type in DataType::ALL {
        assert_eq!(DataType::from_name(data_type.as_str()), Some(data_type));
        assert_eq!(data_type.to_string(), data_type.as_str());
    }
    assert_eq!(DataType::from_name("varchar"), None);
}

#[test]
fn keys_are_texts_whole_numbers_or_uuids() {
    let keys: Vec<DataType> = DataType::ALL
        .into_iter()
        .filter(|data_type| data_type.can_be_key())
        .collect();
    assert_eq!(
        keys,
        [
            DataType::String,
            DataType::Text,
            DataType::Integer,
            DataType::Uuid
        ]
    );
}

#[test]
fn values_are_shown_as_json_has_them_and_points_in_time_as_text() {
    for (_, scalar, json) in scalars() {
        assert_eq!(scalar.to_json(), json);
    }
}

#[test]
fn keys_are_shown_without_quotes() {
    let id = Uuid::from_u128(7);
    assert_eq!(KeyValue::Text("a b".to_owned()).to_string(), "a b");
    assert_eq!(KeyValue::Integer(-7).to_string(), "-7");
    assert_eq!(KeyValue::Uuid(id).to_string(), id.to_string());
}

#[test]
fn a_column_holds_values_and_nulls_of_its_type() {
    for (data_type, scalar, _) in scalars() {
        let mut column = Values::with_capacity(data_type, 2);
        assert!(column.is_empty(), "{data_type}");
        column.push(scalar.clone());
        column.push_null();
        assert!(!column.is_empty(), "{data_type}");
        assert_eq!(column.len(), 2);
        assert_eq!(column.get(0), Some(scalar.clone()));
        assert_eq!(column.get(1), None);
        assert_eq!(column.get(2), None);
        let mut whole = column.clone();
        whole.extend(&column);
        let values: Vec<Option<Scalar>> = (0..4).map(|index| whole.get(index)).collect();
        assert_eq!(values, [Some(scalar.clone()), None, Some(scalar), None]);
    }
}

#[test]
fn a_key_can_be_put_into_a_column_of_its_type() {
    for key in [
        KeyValue::Text("a".to_owned()),
        KeyValue::Integer(3),
        KeyValue::Uuid(Uuid::from_u128(7)),
    ] {
        let mut column = match key {
            KeyValue::Text(_) => Values::Text(vec![None, None]),
            KeyValue::Integer(_) => Values::Integer(vec![None, None]),
            KeyValue::Uuid(_) => Values::Uuid(vec![None, None]),
        };
        column.set_key(1, key.clone());
        assert_eq!(column.get(0), None);
        assert_eq!(column.get(1), Some(key.into()));
    }
}

/// A key of every type that keys have.
fn keys() -> [(DataType, KeyValue); 4] {
    [
        (DataType::String, KeyValue::Text("a".to_owned())),
        (DataType::Text, KeyValue::Text("b".to_owned())),
        (DataType::Integer, KeyValue::Integer(-1)),
        (DataType::Uuid, KeyValue::Uuid(Uuid::from_u128(7))),
    ]
}

#[test]
fn values_of_key_types_are_keys_and_no_others() {
    for (data_type, key) in keys() {
        let value = Scalar::from(key.clone());
        assert_eq!(value.clone().into_key(), Some(key.clone()));
        let mut column = Values::repeat(data_type, &value, 1);
        column.push_null();
        assert_eq!(column.key(0), Some(key));
        assert_eq!((column.key(1), column.key(2)), (None, None));
    }
    for (data_type, value, _) in scalars() {
        let column = Values::repeat(data_type, &value, 1);
        assert_eq!(column.key(0).is_some(), data_type.can_be_key());
        assert_eq!(value.into_key().is_some(), data_type.can_be_key());
    }
}

#[test]
fn a_generated_key_is_the_new_id_as_the_keys_type_stores_it() {
    let id = Uuid::from_u128(7);
    let generate = |data_type| KeyValue::generate(data_type, &mut || id);
    for data_type in DataType::ALL {
        let key = generate(data_type);
        assert_eq!(key.is_some(), data_type.is_generated_key(), "{data_type}");
    }
    assert_eq!(generate(DataType::Uuid), Some(KeyValue::Uuid(id)));
    let text = Some(KeyValue::Text(id.to_string()));
    assert_eq!(generate(DataType::String), text);
    assert_eq!(generate(DataType::Text), text);
}

#[test]
fn nulls_are_found_by_their_indices() {
    for (data_type, value, _) in scalars() {
        let mut column = Values::with_capacity(data_type, 4);
        assert_eq!(column.nulls(), [0_usize; 0]);
        for cell in [None, Some(value.clone()), None, Some(value)] {
            column.push_or_null(cell);
        }
        assert_eq!(column.nulls(), [0, 2], "{data_type}");
    }
}
