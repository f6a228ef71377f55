//! Checks and plans of requests, over tables with keys and references of every kind.

use super::*;
use time::OffsetDateTime;

use crate::scalar::{Scalar, Values};
use crate::{data::write::Reason, refusal::ErrorCode};

pub(super) fn text(value: &str) -> KeyValue {
    KeyValue::Text(value.to_owned())
}

fn message(name: &str, write: TableWrite) -> String {
    let problems = plan(&tables([write])).unwrap_err();
    let [problem] = problems.as_slice() else {
        panic!("{name}: {problems:?}");
    };
    problem.message.clone()
}

/// Parts of other parts, samples with a number as their key, and points between two carriers.
pub(super) fn parts() -> Catalog {
    let part = vec![ColumnDefinition {
        references: Some("part".to_owned()),
        ..column("base", DataType::String)
    }];
    let numbered = vec![
        ColumnDefinition {
            is_primary_key: true,
            ..column("number", DataType::Integer)
        },
        column("label", DataType::String),
        reference("experiment"),
    ];
    let remark = vec![ColumnDefinition {
        references: Some("numbered".to_owned()),
        ..column("numbered", DataType::Integer)
    }];
    let pair = vec![
        reference("part"),
        required(reference("carrier")),
        column("order", DataType::Integer),
        column("v", DataType::Float),
    ];
    let mut tables = Vec::new();
    for (name, category, columns) in [
        ("part", SemanticCategory::Curated, part),
        ("numbered", SemanticCategory::Curated, numbered),
        ("remark", SemanticCategory::Curated, remark),
        ("pair", SemanticCategory::Raw, pair),
    ] {
        let definition = TableDefinition {
            category,
            ..TableDefinition::new(name, columns)
        };
        let catalog = Catalog::new(CatalogVersion(1), tables.clone());
        tables.push(definition.resolve(&catalog).unwrap());
    }
    Catalog::new(CatalogVersion(1), tables)
}

/// Plans over [`parts`] with a database in which nothing exists.
fn plan_parts(request: &WriteRequest) -> Result<WritePlan, Vec<Problem>> {
    let catalog = parts();
    let checked = check(request, &catalog);
    checked.plan(&LookupResults::default(), &mut || Uuid::from_u128(9))
}

/// The ids that a request over [`parts`] asks for.
fn asked_ids(request: &WriteRequest) -> Vec<KeyValue> {
    let catalog = parts();
    let checked = check(request, &catalog);
    let questions = &checked.questions().ids;
    questions
        .iter()
        .flat_map(|question| question.keys.clone())
        .collect()
}

fn upsert(name: &str, key: Option<&[&str]>, rows: &Value) -> TableWrite {
    TableWrite {
        mode: Mode::Upsert,
        key: key.map(|key| key.iter().map(|name| (*name).to_owned()).collect()),
        ..table(name, rows)
    }
}

fn key_names(step: &TableStep) -> Vec<&str> {
    step.key.iter().map(|it| it.column.name.as_str()).collect()
}

/// The values of a column of a planned table write.
pub(super) fn values<'p>(plan: &'p WritePlan, step: usize, column: &str) -> &'p StepColumn {
    let step = &plan.tables[step];
    step.given(step.table.column(column).unwrap()).unwrap()
}

#[test]
fn cells_are_read_with_their_columns_type() {
    let id = Uuid::from_u128(7);
    for (value, data_type, expected) in [
        (json!(id.to_string()), DataType::Uuid, Ok(Scalar::Uuid(id))),
        (json!(true), DataType::Boolean, Ok(Scalar::Boolean(true))),
        (
            json!("2026-03-01"),
            DataType::Date,
            Ok(Scalar::Date(time::macros::date!(2026 - 03 - 01))),
        ),
        (
            json!("x"),
            DataType::Uuid,
            Err("must be a UUID as a string, not a string of another form"),
        ),
        (
            json!(1.5),
            DataType::Integer,
            Err("must be a whole number of 64 bits, not a number with a fraction or out of range"),
        ),
        (
            json!("1"),
            DataType::Float,
            Err("must be a number, not a string"),
        ),
    ] {
        let read = Cell::from(value).to_scalar(data_type);
        assert_eq!(read, expected.map(Some).map_err(str::to_owned));
    }
    assert_eq!(
        Cell::Float(f64::INFINITY).to_scalar(DataType::Float),
        Err("must be a number, not a number out of range".to_owned())
    );
    for cell in [Cell::Null, Cell::Absent] {
        assert_eq!(cell.to_scalar(DataType::Json), Ok(None));
    }
}

#[test]
fn the_most_rows_and_values_are_accepted() {
    let rows: Vec<Value> = (0..MAX_ROWS)
        .map(|number| json!({ "name": number.to_string() }))
        .collect();
    let rows = plan(&tables([table("sample", &Value::from(rows))])).unwrap();
    assert_eq!(rows.tables[0].len, MAX_ROWS);
    let values: Vec<Value> = (0..MAX_SERIES_VALUES).map(Value::from).collect();
    let curve = series("curve", &json!("S1"), &json!({ "od": values }));
    let points = plan(&many_series([curve])).unwrap();
    assert_eq!(points.series[0].points, MAX_SERIES_VALUES);
}

#[test]
fn a_label_is_a_text_that_is_not_empty_and_has_no_nul() {
    let form = "a label must not be empty, nor hold NUL characters";
    for (label, expected) in [
        (json!(""), form),
        (json!("a\0b"), form),
        (json!(7), "a label must be a string, not a number"),
        (json!([]), "a label must be a string, not a list"),
    ] {
        let rows = json!([{ "_ref": label, "name": "a" }]);
        let text = message("label", table("sample", &rows));
        assert!(text.contains(expected), "{text}");
    }
    let rows = json!([{ "_ref": null, "name": "a" }, { "_ref": "b", "name": "b" }]);
    let plan = plan(&tables([table("sample", &rows)])).unwrap();
    let labels: Vec<&str> = plan.labels.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(labels, ["b"]);
}

#[test]
fn unknown_columns_say_what_they_may_have_meant() {
    for (name, rows, expected) in [
        (
            "sample",
            json!([{ "name": "a", "colour": 1 }]),
            "\"sample\" has no column \"colour\"",
        ),
        (
            "sample",
            json!([{ "name": "a", "created_at": null }]),
            "column \"created_at\" is maintained by the server and cannot be written",
        ),
        (
            "measurement",
            json!([{ "sample": "S1", "colour": 1 }]),
            "\"measurement\" has no column \"colour\"",
        ),
        (
            "measurement",
            json!([{ "sample": "S1", "sample_id": "S1" }]),
            "\"measurement\" has no column \"sample_id\"; the reference is called \"sample\"",
        ),
    ] {
        assert_eq!(message(name, table(name, &rows)), expected);
    }
}

#[test]
fn a_write_without_a_tables_name_is_none_to_a_hidden_table() {
    let unnamed = message("unnamed", table("", &json!([{ "name": "a" }])));
    assert_eq!(unnamed, "there is no table \"\"");
}

#[test]
fn nulls_are_refused_where_a_column_is_required() {
    let name = message("sample", table("sample", &json!([{ "name": null }])));
    assert_eq!(name, "must not be null");
    let parent = message(
        "measurement",
        table("measurement", &json!([{ "sample": null }])),
    );
    assert_eq!(parent, "must not be null");
    let optional = tables([table("part", &json!([{ "base": null, "id": "P1" }]))]);
    assert!(plan_parts(&optional).is_ok());
}

#[test]
fn a_key_names_columns_once_and_its_cells_are_not_null() {
    let twice = upsert("sample", Some(&["name", "name"]), &json!([]));
    assert_eq!(message("twice", twice), "column \"name\" is given twice");
    let null = upsert(
        "sample",
        Some(&["volume"]),
        &json!([{ "name": "a", "volume": null }]),
    );
    let text = message("null", null);
    assert!(text.contains("null matches no row"), "{text}");
    // Rows without any key are one problem of the key, not the same key twice.
    let none = TableWrite {
        mode: Mode::Delete,
        key: Some(Vec::new()),
        ..table("sample", &json!([{}, {}]))
    };
    assert_eq!(message("none", none), "a key needs at least one column");
}

#[test]
fn rows_with_equal_values_in_all_key_columns_are_the_same_row() {
    let rows = json!([
        { "name": "a", "volume": 1 },
        { "name": "a", "volume": 2 },
        { "name": "a", "volume": 1 },
    ]);
    let write = upsert("sample", Some(&["name", "volume"]), &rows);
    assert_eq!(
        message("same", write),
        "has the same key (name, volume) as rows[0] of this table write"
    );
}

#[test]
fn columns_that_every_row_gives_are_marked_so() {
    let rows = json!([{ "name": "a", "volume": 1 }, { "name": "b" }]);
    let plan = plan(&tables([table("sample", &rows)])).unwrap();
    assert_eq!(values(&plan, 0, "name").provided, None);
    let volume = values(&plan, 0, "volume");
    assert_eq!(volume.provided, Some(vec![true, false]));
    assert_eq!(*volume.values, Values::Integer(vec![Some(1), None]));
}

#[test]
fn defaults_of_columns_that_no_row_gives_count_for_created_rows() {
    let rows = json!([{ "id": "S1", "name": "a" }]);
    for mode in [Mode::Insert, Mode::Upsert] {
        let write = TableWrite {
            mode,
            ..table("sample", &rows)
        };
        let plan = plan(&tables([write])).unwrap();
        let state = values(&plan, 0, "state");
        assert_eq!(*state.values, Values::Text(vec![Some("new".into())]));
        assert_eq!(state.provided, Some(vec![false]));
        let volume = plan.tables[0].table.column("volume").unwrap();
        assert!(plan.tables[0].given(volume).is_none());
    }
}

#[test]
fn an_id_is_known_in_the_rows_behind_the_one_that_gives_it() {
    let chain = table(
        "part",
        &json!([{ "base": null, "id": "P1" }, { "base": "P1", "id": "P2" }]),
    );
    assert_eq!(asked_ids(&tables([chain.clone()])), []);
    let plan = plan_parts(&tables([chain])).unwrap();
    let base = values(&plan, 0, "base");
    assert_eq!(*base.values, Values::Text(vec![None, Some("P1".into())]));
    assert_eq!(base.late, []);
    let itself = table("part", &json!([{ "base": "P1", "id": "P1" }]));
    assert_eq!(asked_ids(&tables([itself])), [text("P1")]);
    let later = table("part", &json!([{ "base": "P2" }, { "id": "P2" }]));
    assert_eq!(asked_ids(&tables([later])), [text("P2")]);
}

#[test]
fn an_upserted_id_is_known_by_whatever_key_rows_are_matched() {
    for key in [
        None,
        Some(&["number"][..]),
        Some(&["label"]),
        Some(&["number", "label"]),
    ] {
        let numbered = upsert("numbered", key, &json!([{ "number": 7, "label": "a" }]));
        let asked = asked_ids(&tables([
            numbered,
            table("remark", &json!([{ "numbered": 7 }])),
        ]));
        assert_eq!(asked, [], "{key:?}");
    }
}

#[test]
fn a_label_of_the_same_insert_is_known_and_of_an_upsert_is_not_yet() {
    let rows = json!([{ "_ref": "a", "base": null, "id": "P1" }, { "base": "@a", "id": "P2" }]);
    let inserted = plan_parts(&tables([table("part", &rows)])).unwrap();
    let base = values(&inserted, 0, "base");
    assert_eq!(*base.values, Values::Text(vec![None, Some("P1".into())]));
    assert_eq!(base.late, []);
    let upserted = plan_parts(&tables([upsert("part", None, &rows)])).unwrap();
    let base = values(&upserted, 0, "base");
    assert_eq!(*base.values, Values::Text(vec![None, None]));
    let address = RowAddress { table: 0, row: 0 };
    assert_eq!(base.late, [LateKey { index: 1, address }]);
}

#[test]
fn late_keys_are_filled_in_from_earlier_steps_and_from_the_steps_own_rows() {
    let request = tables([
        upsert("part", None, &json!([{ "_ref": "a", "id": "P0" }])),
        upsert(
            "part",
            None,
            &json!([
                { "_ref": "b", "base": "@a", "id": "P1" },
                { "base": "@b", "id": "P2" },
            ]),
        ),
    ]);
    let plan = plan_parts(&request).unwrap();
    let step = &plan.tables[1];
    let base = step.table.column("base").unwrap();
    let done = [TableOutcome {
        ids: vec![text("stored")],
        ..TableOutcome::default()
    }];
    let unwritten = ResolvedColumns::new(step, &[]).unwrap_err();
    assert_eq!(unwritten[0].path.as_deref(), Some("tables[0].rows[0]"));
    let mut resolved = ResolvedColumns::new(step, &done).unwrap();
    let base_of = |resolved: &ResolvedColumns<'_>| {
        let column = resolved.iter().find(|column| column.column() == base);
        column.unwrap().values.clone().into_owned()
    };
    let earlier = Values::Text(vec![Some("stored".into()), None]);
    assert_eq!(base_of(&resolved), earlier);
    assert!(resolved.clone().fill_own(&[]).is_err());
    resolved.fill_own(&[text("own"), text("other")]).unwrap();
    let all = Values::Text(vec![Some("stored".into()), Some("own".into())]);
    assert_eq!(base_of(&resolved), all);
}

#[test]
fn an_upserted_row_without_a_key_that_can_be_generated_has_one_problem() {
    let rows = json!([{ "label": "a" }]);
    let write = upsert("numbered", Some(&["label"]), &rows);
    let plan = plan_parts(&tables([write])).unwrap();
    let step = &plan.tables[0];
    assert_eq!(key_names(step), ["label"]);
    let problems = step.assign_matches(vec![RowMatch::None]).unwrap_err();
    let text = "matches no row, and cannot be created: the required column \"number\" is missing";
    assert_eq!(
        problems,
        [Problem::at(
            "tables[0].rows[0]",
            Reason::new(ErrorCode::MissingValue, text)
        )]
    );
    let found = RowMatch::One(MatchedRow {
        key: KeyValue::Integer(3),
        updated_at: OffsetDateTime::UNIX_EPOCH,
    });
    let matched = step.assign_matches(vec![found]).unwrap();
    assert_eq!(matched.keys, [KeyValue::Integer(3)]);
}

#[test]
fn steps_say_by_which_columns_they_match() {
    let insert = plan(&tables([table("sample", &json!([{ "name": "a" }]))])).unwrap();
    assert!(insert.tables[0].key.is_empty());
    for mode in [Mode::Upsert, Mode::Update, Mode::Delete] {
        let write = TableWrite {
            mode,
            key: Some(vec!["volume".to_owned(), "name".to_owned()]),
            ..table("sample", &json!([{ "name": "a", "volume": 1 }]))
        };
        let plan = plan(&tables([write])).unwrap();
        assert_eq!(key_names(&plan.tables[0]), ["volume", "name"]);
    }
}

#[test]
fn a_key_column_that_no_row_gives_stays_a_condition() {
    let write = TableWrite {
        mode: Mode::Delete,
        key: Some(vec!["volume".to_owned(), "name".to_owned()]),
        ..table("sample", &json!([]))
    };
    let plan = plan(&tables([write])).unwrap();
    assert_eq!(key_names(&plan.tables[0]), ["volume", "name"]);
}

#[test]
fn empty_rows_and_series_are_told_from_full_ones() {
    let mut rows = Rows::default();
    assert!(rows.is_empty());
    rows.begin_row();
    assert!(!rows.is_empty());
    let mut values = SeriesValues::default();
    assert!(values.is_empty());
    values.push(Cell::Null);
    assert!(!values.is_empty());
}

#[test]
fn problems_are_found_without_a_database_where_every_lookup_would_succeed() {
    let request = |volume: Value| WriteRequest {
        tables: vec![
            table("sample", &json!([{ "name": "x", "volume": volume }])),
            table(
                "measurement",
                &json!([{ "sample": { "name": "y" } }, { "sample": "0189c0de" }]),
            ),
        ],
        series: ["y", "z"]
            .map(|name| series("curve", &json!({ "name": name }), &json!({ "od": [0.1] })))
            .into(),
        ..WriteRequest::default()
    };
    assert_eq!(check(&request(json!(1)), &catalog()).problems(), []);
    assert_eq!(
        check(&request(json!("much")), &catalog()).problems(),
        [Problem::at(
            "tables[0].rows[0].volume",
            Reason::new(
                ErrorCode::WrongType,
                "must be a whole number of 64 bits, not a string"
            )
        )]
    );
}
