//! The rules of data writes, each as a sentence.

mod hidden;
mod ledger;
mod lookups;
mod points;
mod requests;
mod series;
mod stored_rows;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{cell::Cell, *};
use crate::{
    catalog::{Catalog, CatalogVersion, ColumnDefinition, SemanticCategory, TableDefinition},
    data::write::Reason,
    refusal::ErrorCode,
    scalar::{DataType, KeyValue},
};

fn column(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition::new(name, data_type)
}

fn reference(name: &str) -> ColumnDefinition {
    ColumnDefinition {
        references: Some(name.to_owned()),
        ..column(name, DataType::String)
    }
}

fn required(column: ColumnDefinition) -> ColumnDefinition {
    ColumnDefinition {
        is_nullable: false,
        ..column
    }
}

/// Samples with a required name and a default state, their measurements, their curves, and a raw
/// table with two references.
fn catalog() -> Catalog {
    let mut tables = Vec::new();
    for (name, category, columns) in [
        (
            "sample",
            SemanticCategory::Curated,
            vec![
                required(ColumnDefinition {
                    is_unique: true,
                    ..column("name", DataType::String)
                }),
                column("volume", DataType::Integer),
                column("tags", DataType::Json),
                ColumnDefinition {
                    default: Some(json!("new")),
                    ..column("state", DataType::String)
                },
            ],
        ),
        (
            "measurement",
            SemanticCategory::Curated,
            vec![
                required(reference("sample")),
                column("value", DataType::Float),
                column("taken_on", DataType::Date),
            ],
        ),
        (
            "curve",
            SemanticCategory::Raw,
            vec![
                required(reference("sample")),
                column("order", DataType::Integer),
                column("t", DataType::Float),
                required(column("od", DataType::Float)),
            ],
        ),
        (
            "link",
            SemanticCategory::Raw,
            vec![
                reference("sample"),
                reference("experiment"),
                column("v", DataType::Float),
            ],
        ),
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

fn table(name: &str, rows: &Value) -> TableWrite {
    let rows = rows.as_array().unwrap().iter();
    TableWrite {
        table: name.to_owned(),
        rows: rows.map(|row| row.as_object().unwrap().clone()).collect(),
        ..TableWrite::default()
    }
}

fn series(name: &str, parent: &Value, columns: &Value) -> SeriesWrite {
    let columns = columns
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, values)| {
            let cells = values.as_array().unwrap().iter().cloned().map(Cell::from);
            (name.clone(), cells.collect())
        })
        .collect();
    SeriesWrite {
        table: name.to_owned(),
        parent: Cell::from(parent.clone()),
        columns,
        parent_column: None,
    }
}

/// Plans with a database in which every id exists and every lookup finds the row "found".
fn plan(request: &WriteRequest) -> Result<WritePlan, Vec<Problem>> {
    let catalog = catalog();
    let checked = check(request, &catalog);
    let questions = checked.questions();
    let results = LookupResults {
        ids: questions
            .ids
            .iter()
            .map(|question| vec![true; question.keys.len()])
            .collect(),
        lookups: questions
            .lookups
            .iter()
            .map(|question| vec![RowMatch::One(KeyValue::Text("found".to_owned())); question.len])
            .collect(),
    };
    let mut next = 0_u128;
    checked.plan(&results, &mut || {
        next += 1;
        Uuid::from_u128(next)
    })
}

fn tables(tables: impl IntoIterator<Item = TableWrite>) -> WriteRequest {
    WriteRequest {
        tables: tables.into_iter().collect(),
        ..WriteRequest::default()
    }
}

fn many_series(series: impl IntoIterator<Item = SeriesWrite>) -> WriteRequest {
    WriteRequest {
        series: series.into_iter().collect(),
        ..WriteRequest::default()
    }
}

fn paths(request: &WriteRequest) -> Vec<String> {
    plan(request)
        .unwrap_err()
        .into_iter()
        .map(|problem| problem.path.unwrap_or_else(|| "null".to_owned()))
        .collect()
}

#[test]
fn a_label_resolves_to_the_key_of_the_earlier_row() {
    let plan = plan(&tables([
        table("sample", &json!([{ "_ref": "a", "name": "x" }])),
        table("measurement", &json!([{ "sample": "@a" }])),
    ]))
    .unwrap();
    let sample = plan.tables[0].inserted_keys().unwrap().get(0);
    let reference = plan.tables[1].table.column("sample").unwrap();
    assert!(sample.is_some());
    let given = plan.tables[1].given(reference).unwrap();
    assert_eq!(given.values.get(0), sample);
    assert_eq!(
        plan.labels,
        [("a".to_owned(), RowAddress { table: 0, row: 0 })]
    );
}

#[test]
fn unknown_later_duplicate_and_mistargeted_labels_are_problems_with_paths() {
    assert_eq!(
        paths(&tables([
            table(
                "measurement",
                &json!([{ "sample": "@nobody" }, { "sample": "@later" }, { "sample": "@e" }])
            ),
            table(
                "experiment",
                &json!([{ "_ref": "e", "name": "x" }, { "_ref": "e", "name": "y" }])
            ),
            table(
                "sample",
                &json!([{ "_ref": "later", "name": "z" }, { "_ref": 7, "name": "u" }])
            ),
        ])),
        [
            "tables[0].rows[0].sample",
            "tables[0].rows[1].sample",
            "tables[0].rows[2].sample",
            "tables[1].rows[1]._ref",
            "tables[2].rows[1]._ref",
        ]
    );
}

#[test]
fn every_wrong_cell_is_reported_not_only_the_first() {
    assert_eq!(
        paths(&tables([table(
            "sample",
            &json!([{ "name": 7, "volume": 1.5 }, { "volume": "1" }, { "name": null }, { "name": "ok", "colour": 1, "created_at": null }]),
        )])),
        [
            "tables[0].rows[0].name",
            "tables[0].rows[0].volume",
            "tables[0].rows[1]",
            "tables[0].rows[1].volume",
            "tables[0].rows[2].name",
            "tables[0].rows[3].colour",
            "tables[0].rows[3].created_at",
        ]
    );
}

#[test]
fn unknown_ids_and_lookups_without_exactly_one_row_are_problems() {
    let catalog = catalog();
    let checked = check(
        &tables([table(
            "measurement",
            &json!([{ "sample": "nobody" }, { "sample": { "name": "a" } }, { "sample": { "name": "b" } }, { "sample": { "colour": 1 } }, { "sample": {} }]),
        )]),
        &catalog,
    );
    assert_eq!(checked.questions().ids.len(), 1);
    assert_eq!(checked.questions().lookups.len(), 1);
    let results = LookupResults {
        ids: vec![vec![false]],
        lookups: vec![vec![RowMatch::None, RowMatch::Several]],
    };
    let problems = checked.plan(&results, &mut Uuid::nil).unwrap_err();
    let paths: Vec<&str> = problems
        .iter()
        .filter_map(|problem| problem.path.as_deref())
        .collect();
    assert_eq!(
        paths,
        (0..5)
            .map(|row| format!("tables[0].rows[{row}].sample"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_id_given_earlier_in_the_request_needs_no_question() {
    let catalog = catalog();
    let checked = check(
        &tables([
            table("sample", &json!([{ "id": "S1", "name": "x" }])),
            table("measurement", &json!([{ "sample": "S1" }])),
        ]),
        &catalog,
    );
    assert!(checked.questions().is_empty());
}

#[test]
fn defaults_fill_absent_cells_of_created_rows_only() {
    let planned = plan(&tables([table(
        "sample",
        &json!([{ "name": "a" }, { "name": "b", "state": "old" }]),
    )]))
    .unwrap();
    let state = planned.tables[0].table.column("state").unwrap().clone();
    assert_eq!(
        *planned.tables[0].given(&state).unwrap().values,
        crate::scalar::Values::Text(vec![Some("new".into()), Some("old".into())])
    );
    let update = TableWrite {
        mode: Mode::Update,
        ..table("sample", &json!([{ "id": "S1", "name": "a" }]))
    };
    let planned = plan(&tables([update])).unwrap();
    assert!(planned.tables[0].given(&state).is_none());
}

#[test]
fn keys_of_upserts_updates_and_deletes_are_checked() {
    let keyed = |mode, key: &[&str], rows: Value| TableWrite {
        mode,
        key: Some(key.iter().map(|name| (*name).to_owned()).collect()),
        ..table("sample", &rows)
    };
    assert_eq!(
        paths(&tables([
            keyed(Mode::Upsert, &["name", "colour"], json!([])),
            keyed(Mode::Update, &["tags"], json!([])),
            keyed(Mode::Delete, &[], json!([])),
            keyed(
                Mode::Upsert,
                &["name"],
                json!([{ "volume": 1 }, { "name": "a" }, { "name": "a" }])
            ),
            keyed(
                Mode::Delete,
                &["name"],
                json!([{ "name": "a", "volume": 1 }])
            ),
        ])),
        [
            "tables[0].key[1]",
            "tables[1].key[0]",
            "tables[2].key",
            "tables[3].rows[0]",
            "tables[3].rows[2]",
            "tables[4].rows[0].volume",
        ]
    );
}

#[test]
fn the_same_key_twice_in_one_insert_is_a_problem() {
    assert_eq!(
        paths(&tables([table(
            "sample",
            &json!([{ "id": "S1", "name": "a" }, { "id": "S1", "name": "b" }])
        )])),
        ["tables[0].rows[1].id"]
    );
}

#[test]
fn tables_that_cannot_be_written_say_why() {
    for (name, why) in [
        ("nowhere", "no table"),
        ("job", "read only"),
        ("curve", "series"),
    ] {
        let problems = plan(&tables([table(name, &json!([]))])).unwrap_err();
        assert_eq!(problems[0].path.as_deref(), Some("tables[0].table"));
        assert!(problems[0].message.contains(why), "{}", problems[0].message);
    }
}

#[test]
fn equal_keys_are_found_by_value_in_any_spelling() {
    let keyed = |table_name: &str, key: &[&str], rows: Value| TableWrite {
        mode: Mode::Upsert,
        key: Some(key.iter().map(|name| (*name).to_owned()).collect()),
        ..table(table_name, &rows)
    };
    let labelled = table("sample", &json!([{ "_ref": "a", "name": "a" }]));
    let upserted = keyed("sample", &["name"], json!([{ "_ref": "b", "name": "b" }]));
    let samples = json!([
        { "sample": "@a", "value": 0.0 }, { "sample": "@a", "value": -0.0 },
        { "sample": "@b", "value": 1 }, { "sample": "@b", "value": 1.0 },
        { "sample": "@a", "value": 1 }, { "sample": "@b", "value": 2 },
    ]);
    let dates = json!([
        { "sample": "@a", "taken_on": "2026-03-01" }, { "sample": "@b", "taken_on": "2026-03-01" },
        { "sample": "@a", "taken_on": "2026-03-02" }, { "sample": "@a", "taken_on": "2026-03-01" },
    ]);
    let problems = plan(&tables([
        labelled,
        upserted,
        keyed("measurement", &["sample", "value"], samples),
        keyed("measurement", &["taken_on", "sample"], dates),
    ]))
    .unwrap_err();
    assert_eq!(
        problems,
        [
            Problem::at(
                "tables[2].rows[1]",
                Reason::new(
                    ErrorCode::DuplicateKey,
                    "has the same key (sample, value) as rows[0] of this table write"
                )
            ),
            Problem::at(
                "tables[2].rows[3]",
                Reason::new(
                    ErrorCode::DuplicateKey,
                    "has the same key (sample, value) as rows[2] of this table write"
                )
            ),
            Problem::at(
                "tables[3].rows[3]",
                Reason::new(
                    ErrorCode::DuplicateKey,
                    "has the same key (taken_on, sample) as rows[0] of this table write"
                )
            ),
        ]
    );
}

#[test]
fn more_rows_or_values_than_allowed_are_a_problem_of_the_request() {
    let rows: Vec<Value> = (0..=MAX_ROWS)
        .map(|n| json!({ "name": n.to_string() }))
        .collect();
    assert_eq!(
        paths(&tables([table("sample", &Value::from(rows))])),
        ["null"]
    );
    let values: Vec<Value> = (0..=MAX_SERIES_VALUES).map(Value::from).collect();
    assert_eq!(
        paths(&many_series([series(
            "curve",
            &json!("S1"),
            &json!({ "od": values })
        )])),
        ["null"]
    );
}

#[test]
fn problems_past_one_hundred_are_counted() {
    let rows: Vec<Value> = (0..500).map(|_| json!({ "name": 1 })).collect();
    let problems = plan(&tables([table("sample", &Value::from(rows))])).unwrap_err();
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems[100].message, "and 400 more problems");
}
