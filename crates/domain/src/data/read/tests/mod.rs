//! The rules of reads, each as a sentence.

mod order;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use time::macros::{date, datetime};
use uuid::Uuid;

use super::*;
use crate::{
    catalog::{CatalogVersion, Column, Origin, SemanticCategory, Table},
    scalar::{DataType, KeyValue, Scalar, Values},
};

fn column(name: &str, data_type: DataType) -> Column {
    Column {
        id: None,
        name: name.to_owned(),
        description: None,
        label: None,
        unit: None,
        data_type,
        is_primary_key: false,
        is_nullable: true,
        is_unique: false,
        default: None,
        references: None,
    }
}

fn reference(name: &str, target: &str) -> Column {
    Column {
        references: Some(target.to_owned()),
        ..column(name, DataType::String)
    }
}

fn table(name: &str, key: DataType, columns: Vec<Column>) -> Table {
    let key = Column {
        is_primary_key: true,
        ..column("id", key)
    };
    Table {
        id: None,
        name: name.to_owned(),
        description: None,
        category: SemanticCategory::Curated,
        origin: Origin::Organization,
        columns: std::iter::once(key).chain(columns).collect(),
        unique_together: Vec::new(),
        history: true,
        access: crate::catalog::TableAccess::default(),
    }
}

/// Parts of parts, a table with a column of every type, one whose names hold double underscores,
/// and points.
fn catalog() -> Catalog {
    let every_type = DataType::ALL.map(|data_type| column(data_type.as_str(), data_type));
    let points = Table {
        category: SemanticCategory::Raw,
        columns: vec![reference("part", "part"), column("od", DataType::Float)].into(),
        ..table("points", DataType::String, vec![])
    };
    let tables = vec![
        table(
            "part",
            DataType::String,
            vec![
                reference("whole", "part"),
                reference("experiment", "experiment"),
                column("size", DataType::Integer),
            ],
        ),
        table("every", DataType::Uuid, every_type.to_vec()),
        table(
            "odd",
            DataType::Integer,
            vec![
                column("size__gt", DataType::Integer),
                reference("a__b", "part"),
                column("a__b__size", DataType::Text),
            ],
        ),
        points,
    ];
    Catalog::new(CatalogVersion(1), tables)
}

fn target(name: &str) -> ReadTarget {
    let catalog = catalog();
    ReadTarget::find(&catalog, name, false)
        .or_else(|| ReadTarget::find(&catalog, name, true))
        .unwrap()
}

fn plan(name: &str, filters: &Value) -> Result<ReadPlan, Vec<String>> {
    let selection = RowSelection {
        filters: filters.as_object().unwrap().clone(),
        limit: 10,
        ..RowSelection::default()
    };
    ReadPlan::new(target(name), &catalog(), selection)
}

fn condition(name: &str, key: &str, value: &Value) -> Condition {
    let mut plan = plan(name, &json!({ key: value })).unwrap();
    plan.conditions.remove(0)
}

fn refusal(name: &str, key: &str, value: &Value) -> String {
    plan(name, &json!({ key: value })).unwrap_err().join("; ")
}

/// The references that a filter follows, and the column that it reaches, by their names in SQL.
fn path(condition: &Condition) -> Vec<&str> {
    let hops = condition.hops.iter().map(|hop| hop.sql_column.as_str());
    hops.chain([condition.field.sql_name.as_str()]).collect()
}

#[test]
fn own_core_and_platform_tables_are_found_by_their_kind() {
    let catalog = catalog();
    let found = |name, core| {
        let target = ReadTarget::find(&catalog, name, core);
        target.map(|target| target.name().to_owned())
    };
    assert_eq!(found("part", false).as_deref(), Some("part"));
    assert_eq!(found("part", true), None);
    assert_eq!(found("experiment", true).as_deref(), Some("experiment"));
    assert_eq!(found("experiment", false), None);
    assert_eq!(found("job", true).as_deref(), Some("job"));
    assert_eq!(found("job", false), None);
    assert_eq!(found("nowhere", true), None);
}

#[test]
fn a_position_reads_back_and_garbage_does_not() {
    let positions = [
        RowPosition::Key(KeyValue::Text("a/b ü".to_owned())),
        RowPosition::Key(KeyValue::Text(String::new())),
        RowPosition::Key(KeyValue::Integer(-7)),
        RowPosition::Key(KeyValue::Uuid(Uuid::from_u128(7))),
        RowPosition::Point { chunk: 9, place: 1 },
    ];
    let values = [
        None,
        Some(Scalar::Text("\"ü".to_owned())),
        Some(Scalar::Integer(i64::MIN)),
        Some(Scalar::Float(0.1 + 0.2)),
        Some(Scalar::Float(1e17)),
        Some(Scalar::Boolean(false)),
        Some(Scalar::Datetime(datetime!(1926-03-01 12:00:00.000001 UTC))),
        Some(Scalar::Date(date!(2024 - 02 - 29))),
        Some(Scalar::Uuid(Uuid::from_u128(7))),
    ];
    for row in positions {
        let ordered = values.iter().cloned().map(|value| OrderedValue {
            term: "-volume".to_owned(),
            value,
        });
        for ordered in [Vec::new(), ordered.collect()] {
            let row = row.clone();
            let position = Position { ordered, row };
            assert_eq!(Position::decode(&position.encode()), Some(position));
        }
    }
    for garbage in [
        "",
        "x",
        "ix",
        "i",
        "u7",
        "p1",
        "p1/x",
        "px/1",
        "ta\0",
        "ü",
        "o",
        "o[]",
        r#"o["ta"]"#,
        r#"o["ta",[]]"#,
        r#"o["ta",[[]]]"#,
        r#"o["ta\u0000",[["x"]]]"#,
        r#"o["ta",[["x","text"]]]"#,
        r#"o["ta",[["x","text",1]]]"#,
        r#"o["ta",[["x","text","\u0000"]]]"#,
        r#"o["ta",[["x","none",1]]]"#,
    ] {
        let text = URL_SAFE_NO_PAD.encode(garbage);
        assert_eq!(Position::decode(&text), None, "{garbage:?}");
    }
    assert_eq!(Position::decode("not base64!"), None);
}

#[test]
fn a_cursor_belongs_to_tables_with_its_kind_of_key() {
    let positions = [
        RowPosition::Key(KeyValue::Text("a".to_owned())),
        RowPosition::Key(KeyValue::Integer(1)),
        RowPosition::Key(KeyValue::Uuid(Uuid::from_u128(1))),
        RowPosition::Point { chunk: 1, place: 1 },
    ];
    for (name, fitting) in [
        ("part", 0),
        ("odd", 1),
        ("every", 2),
        ("job", 2),
        ("table", 1),
        ("points", 3),
    ] {
        for (index, position) in positions.iter().enumerate() {
            let after = Some(Position::from(position.clone()));
            let selection = RowSelection {
                after: after.clone(),
                ..RowSelection::default()
            };
            let plan = ReadPlan::new(target(name), &catalog(), selection);
            if index == fitting {
                assert_eq!(plan.unwrap().after, after);
            } else {
                assert_eq!(plan.unwrap_err(), ["the cursor belongs to another list"]);
            }
        }
    }
}

#[test]
fn a_plan_has_the_limit_and_all_conditions() {
    let filters = json!({"size__gt": 1, "whole": "p"});
    let plan = plan("part", &filters).unwrap();
    assert_eq!((plan.limit, plan.conditions.len()), (10, 2));
}

#[test]
fn every_wrong_filter_is_reported() {
    let filters = json!({"size": "x", "nothing": 1, "whole": "p"});
    let problems = plan("part", &filters).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn columns_are_named_as_in_writes_or_as_in_sql() {
    for (key, sql_name) in [
        ("size", "size"),
        ("id", "id"),
        ("whole", "whole_id"),
        ("whole_id", "whole_id"),
        ("created_at", "created_at"),
    ] {
        let condition = condition("part", key, &json!(null));
        assert_eq!(path(&condition), [sql_name]);
        assert_eq!(condition.test, Test::IsNull(true));
    }
    assert_eq!(
        path(&condition("job", "archived", &json!(true))),
        ["archived"]
    );
    for (name, key) in [
        ("part", "colour"),
        ("part", "size_id"),
        ("points", "created_at"),
        ("job", "created_by"),
        ("job", "id__name"),
    ] {
        let problem = refusal(name, key, &json!(null));
        assert!(problem.contains("has no such column"), "{key}: {problem}");
    }
}

#[test]
fn references_are_followed_up_to_five_times() {
    let name = condition("part", "experiment__name", &json!("x"));
    assert_eq!(path(&name), ["experiment_id", "name"]);
    assert_eq!(name.hops[0].table.name, "experiment");
    assert_eq!(name.field.data_type, DataType::String);
    let of_points = condition("points", "part__whole__size__lt", &json!(3));
    assert_eq!(path(&of_points), ["part_id", "whole_id", "size"]);
    assert_eq!(of_points.test, Test::Less(Scalar::Integer(3)));
    let deep = |hops: usize| format!("{}size", "whole__".repeat(hops));
    assert_eq!(condition("part", &deep(5), &json!(1)).hops.len(), 5);
    assert!(refusal("part", &deep(6), &json!(1)).contains("no such column"));
    assert!(refusal("part", "size__whole", &json!(1)).contains("no such column"));
}

#[test]
fn a_columns_own_name_comes_before_a_path_or_a_test() {
    let column = condition("odd", "size__gt", &json!(1));
    assert_eq!(path(&column), ["size__gt"]);
    assert_eq!(column.test, Test::Equals(Scalar::Integer(1)));
    let both = condition("odd", "size__gt__gt", &json!(1));
    assert_eq!(both.test, Test::Greater(Scalar::Integer(1)));
    assert_eq!(
        path(&condition("odd", "a__b__size", &json!("x"))),
        ["a__b__size"]
    );
    assert_eq!(
        path(&condition("odd", "a__b__experiment__name", &json!("x"))),
        ["a__b_id", "experiment_id", "name"]
    );
}

#[test]
fn each_operator_is_its_test() {
    let at = datetime!(2026-03-01 12:00 UTC);
    let day = || Scalar::Datetime(at);
    let text = "2026-03-01T12:00:00Z";
    for (operator, test) in [
        ("", Test::Equals(day())),
        ("__gt", Test::Greater(day())),
        ("__gte", Test::GreaterOrEqual(day())),
        ("__lt", Test::Less(day())),
        ("__lte", Test::LessOrEqual(day())),
    ] {
        let key = format!("datetime{operator}");
        assert_eq!(condition("every", &key, &json!(text)).test, test);
        assert!(refusal("every", &key, &json!("today")).contains("must be a datetime"));
    }
    assert_eq!(
        condition("every", "integer__in", &json!([1, 2])).test,
        Test::In(Values::Integer(vec![Some(1), Some(2)]))
    );
    for (value, wanted) in [(json!(true), true), (json!(false), false)] {
        let null = condition("every", "json__isnull", &value).test;
        assert_eq!(null, Test::IsNull(wanted));
    }
    assert_eq!(
        condition("every", "text__contains", &json!("a%")).test,
        Test::Contains("a%".to_owned())
    );
    assert_eq!(
        condition("every", "string__contains", &json!("")).test,
        Test::Contains(String::new())
    );
}

#[test]
fn null_is_found_by_itself_and_nowhere_else() {
    assert_eq!(
        condition("every", "json", &json!(null)).test,
        Test::IsNull(true)
    );
    for (key, value) in [
        ("integer__gt", json!(null)),
        ("integer__in", json!([1, null])),
    ] {
        let problem = refusal("every", key, &value);
        assert!(
            problem.contains("null is tested with __isnull"),
            "{problem}"
        );
    }
}

#[test]
fn values_that_a_test_does_not_take_are_refused() {
    for (key, value, text) in [
        ("integer", json!("1"), "must be a whole number"),
        ("integer__in", json!(1), "must be a list of values"),
        ("integer__in", json!(["1"]), "must be a whole number"),
        ("integer__isnull", json!(1), "must be true or false"),
        ("text__contains", json!(1), "must be a string"),
        ("text__contains", json!("a\0"), "without NUL"),
        ("integer__contains", json!("1"), "needs a string column"),
        ("json", json!({}), "only be tested with __isnull"),
        ("json__in", json!([1]), "only be tested with __isnull"),
        ("json__contains", json!("a"), "needs a string column"),
    ] {
        let problem = refusal("every", key, &value);
        assert!(problem.contains(text), "{key}: {problem}");
        assert!(problem.starts_with(&format!("filter \"{key}\": ")));
    }
}

#[test]
fn rows_are_the_text_of_a_json_object() {
    let map = json!({"a": 1}).as_object().unwrap().clone();
    for row in [
        RowJson::from_map(&map),
        RowJson::from_rendered(r#"{"a":1}"#.to_owned()),
    ] {
        assert_eq!(row.as_str(), r#"{"a":1}"#);
        assert_eq!(row.into_string(), r#"{"a":1}"#);
    }
}

#[test]
fn the_parent_of_a_series_may_have_a_key_of_any_kind() {
    let id = Uuid::from_u128(7);
    for (data_type, text, expected) in [
        (DataType::Uuid, id.to_string(), KeyValue::Uuid(id)),
        (DataType::Integer, "-7".to_owned(), KeyValue::Integer(-7)),
        (
            DataType::String,
            "-7".to_owned(),
            KeyValue::Text("-7".to_owned()),
        ),
    ] {
        let parent = table("parent", data_type, vec![]);
        let points = Table {
            category: SemanticCategory::Raw,
            columns: vec![Column {
                data_type,
                ..reference("parent", "parent")
            }]
            .into(),
            ..table("points", DataType::String, vec![])
        };
        let catalog = Catalog::new(CatalogVersion(1), vec![parent, points]);
        let plan = SeriesPlan::new(&catalog, "points", None, &text).unwrap();
        assert_eq!(plan.parent, expected);
        if data_type != DataType::String {
            let missing = SeriesPlan::new(&catalog, "points", None, "x").unwrap_err();
            assert_eq!(missing, SeriesRefusal::NoParent);
        }
    }
}

#[test]
fn null_passes_no_test_but_the_one_for_null() {
    let text = Scalar::Text("a".to_owned());
    let list = Values::repeat(DataType::String, &text, 1);
    let tests = [
        Test::Equals(text.clone()),
        Test::In(list),
        Test::Greater(text.clone()),
        Test::GreaterOrEqual(text.clone()),
        Test::Less(text.clone()),
        Test::LessOrEqual(text.clone()),
        Test::Contains(String::new()),
    ];
    for test in tests {
        assert!(!test.accepts(None), "{test:?}");
    }
    assert!(Test::IsNull(true).accepts(None));
    assert!(!Test::IsNull(true).accepts(Some(&text)));
    assert!(Test::IsNull(false).accepts(Some(&text)));
    assert!(!Test::IsNull(false).accepts(None));
}

#[test]
fn limits_divide_values_of_every_ordered_type() {
    let ordered = [
        (Scalar::Text("Z".to_owned()), Scalar::Text("a".to_owned())),
        (Scalar::Integer(-1), Scalar::Integer(1)),
        (Scalar::Float(-0.5), Scalar::Float(0.5)),
        (Scalar::Boolean(false), Scalar::Boolean(true)),
        (
            Scalar::Datetime(datetime!(2026-01-01 00:00 UTC)),
            Scalar::Datetime(datetime!(2026-01-01 00:00:00.000001 UTC)),
        ),
        (
            Scalar::Date(date!(2026 - 01 - 01)),
            Scalar::Date(date!(2026 - 01 - 02)),
        ),
        (
            Scalar::Uuid(Uuid::from_u128(1)),
            Scalar::Uuid(Uuid::from_u128(2)),
        ),
    ];
    for (low, high) in ordered {
        let accepted = |test: fn(Scalar) -> Test, limit: &Scalar| {
            [&low, &high].map(|value| test(limit.clone()).accepts(Some(value)))
        };
        assert_eq!(accepted(Test::Greater, &low), [false, true], "{low:?}");
        assert_eq!(accepted(Test::GreaterOrEqual, &low), [true, true]);
        assert_eq!(accepted(Test::GreaterOrEqual, &high), [false, true]);
        assert_eq!(accepted(Test::Less, &high), [true, false]);
        assert_eq!(accepted(Test::LessOrEqual, &high), [true, true]);
        assert_eq!(accepted(Test::LessOrEqual, &low), [true, false]);
        assert_eq!(accepted(Test::Equals, &low), [true, false]);
    }
    let (text, number) = (Scalar::Text("1".to_owned()), Scalar::Integer(1));
    assert!(!Test::LessOrEqual(text).accepts(Some(&number)));
}

#[test]
fn a_part_of_a_text_is_found_without_regard_to_case() {
    let part = Test::Contains("SÜD".to_owned());
    assert!(part.accepts(Some(&Scalar::Text("im Südwesten".to_owned()))));
    assert!(!part.accepts(Some(&Scalar::Text("im Norden".to_owned()))));
    assert!(!Test::Contains("1".to_owned()).accepts(Some(&Scalar::Integer(1))));
}
