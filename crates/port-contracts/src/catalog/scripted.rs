//! Contract of [`labdata_ports::catalog::CatalogStore`]: tables that scripts make, types and names.

use labdata_domain::{
    catalog::{
        CatalogRefusal, ColumnDefinition, DefinitionMode, SemanticCategory, TableDefinition,
    },
    scalar::DataType,
};
use serde_json::{Value, json};

use super::assert_refused;
use crate::{
    Itself,
    catalog::definitions::{column, curated, curve, key, measurement, reference, required, sample},
    data::lab::{DataHarness, Lab, assert_problems_are, insert, repeated, request, series},
};

fn ensured(definition: TableDefinition) -> TableDefinition {
    TableDefinition {
        mode: DefinitionMode::Ensure,
        ..definition
    }
}

fn renamed(from: &str, definition: TableDefinition) -> TableDefinition {
    TableDefinition {
        renamed_from: Some(from.to_owned()),
        ..definition
    }
}

/// Values of each type that becomes text, and their texts.
pub(crate) fn texts() -> [(DataType, Vec<Value>, Vec<&'static str>); 7] {
    [
        (
            DataType::Integer,
            vec![json!(-7), json!(9_007_199_254_740_993_i64)],
            vec!["-7", "9007199254740993"],
        ),
        (
            DataType::Float,
            vec![json!(2), json!(0.1), json!(1e15), json!(1.5e-7)],
            vec!["2", "0.1", "1e+15", "1.5e-07"],
        ),
        (DataType::Boolean, vec![json!(true)], vec!["true"]),
        (
            DataType::Datetime,
            vec![json!("2026-03-01T13:00:00.25+01:00")],
            vec!["2026-03-01T12:00:00.25Z"],
        ),
        (
            DataType::Date,
            vec![json!("2026-03-01")],
            vec!["2026-03-01"],
        ),
        (
            DataType::Uuid,
            vec![json!("019C0000-0000-7000-8000-00000000000A")],
            vec!["019c0000-0000-7000-8000-00000000000a"],
        ),
        (
            DataType::Json,
            vec![json!({"bb": [1, "x"], "a": null})],
            vec!["{\"a\": null, \"bb\": [1, \"x\"]}"],
        ),
    ]
}

crate::suite!(
    use catalog::scripted as catalog_scripted;

    /// Label and unit of a column read back, may change, and are part of the definition.
    async fn labels_and_units_read_back(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let shown = |label: Option<&str>, unit: Option<&str>| {
            let volume = ColumnDefinition {
                label: label.map(str::to_owned),
                unit: unit.map(str::to_owned),
                ..column("volume", DataType::Float)
            };
            curated("sample", vec![volume])
        };
        for (label, unit) in [
            (Some("Volumen (µl)"), Some("uL")),
            (Some("Volume"), Some("mL")),
            (None, None),
        ] {
            lab.define(&shown(label, unit)).await.unwrap();
            let stored = lab.tables().await;
            let volume = stored.table("sample").unwrap().column("volume").unwrap();
            assert_eq!(
                (volume.label.as_deref(), volume.unit.as_deref()),
                (label, unit)
            );
        }
        let before = lab.tables().await.version;
        lab.define(&shown(None, None)).await.unwrap();
        assert_eq!(lab.tables().await.version, before);
    }

    /// A definition that only ensures makes the table, adds what is missing, and changes nothing else.
    async fn an_ensured_table_is_made_widened_and_otherwise_left_alone(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::empty(harness).await;
        let made = lab.define(&ensured(sample())).await.unwrap();
        assert_eq!(lab.define(&sample()).await.unwrap(), made);
        lab.insert("sample", json!([{"name": "a", "volume": 1}]))
            .await;
        let before = lab.tables().await.version;
        let narrow = curated("sample", vec![column("volume", DataType::Float)]);
        assert_eq!(lab.define(&ensured(narrow)).await.unwrap(), made);
        assert_eq!(lab.tables().await.version, before);
        let wider = curated("sample", vec![column("ph", DataType::Float)]);
        let widened = lab.define(&ensured(wider)).await.unwrap();
        assert!(widened.columns.starts_with(&made.columns));
        assert_eq!(widened.columns.last().unwrap().name, "ph");
        assert_eq!(lab.column("sample", "ph").await, [Value::Null]);
        let other = ensured(curated("sample", vec![column("volume", DataType::Integer)]));
        let refusal = "column \"volume\" is of type float, not integer".to_owned();
        assert_refused(
            lab.define(&other).await,
            &CatalogRefusal::Definition(vec![refusal]),
        );
    }

    /// A column of any type becomes text: what reads showed of its values.
    async fn values_of_every_type_become_text(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        for category in SemanticCategory::ALL {
            for (index, (data_type, values, texts)) in texts().into_iter().enumerate() {
                let name = format!("{}_{index}", category.as_str());
                let definition = |data_type| TableDefinition {
                    category,
                    ..curated(
                        &name,
                        vec![
                            reference("experiment"),
                            column("order", DataType::Integer),
                            column("value", data_type),
                        ],
                    )
                };
                lab.define(&definition(data_type)).await.unwrap();
                let values: Vec<Value> = values.into_iter().chain([Value::Null]).collect();
                if category == SemanticCategory::Raw {
                    let experiment = json!([{"id": name, "name": name}]);
                    lab.insert("experiment", experiment).await;
                    let points = series(&name, json!(name), json!({"value": values}));
                    lab.write(request([], [points])).await.unwrap();
                } else {
                    let rows = values.iter().zip(0..);
                    let rows: Vec<Value> = rows
                        .map(|(value, order)| json!({"order": order, "value": value}))
                        .collect();
                    lab.insert(&name, json!(rows)).await;
                }
                lab.define(&definition(DataType::Text)).await.unwrap();
                let rows = lab.find(&name, json!({})).await;
                let mut found: Vec<(i64, Value)> = rows
                    .iter()
                    .map(|row| (row["order"].as_i64().unwrap(), row["value"].clone()))
                    .collect();
                found.sort_by_key(|(order, _)| *order);
                let expected: Vec<Value> = texts
                    .into_iter()
                    .map(Value::from)
                    .chain([Value::Null])
                    .collect();
                let found: Vec<Value> = found.into_iter().map(|(_, value)| value).collect();
                assert_eq!(found, expected, "{name}: {data_type}");
            }
        }
    }

    /// Integers become floats and dates midnights, with what the column promises.
    async fn numbers_and_dates_widen_with_their_rules(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let defined = |count: DataType, day: DataType| {
            let count = ColumnDefinition {
                is_unique: true,
                default: Some(json!(3)),
                ..required("count", count)
            };
            curated("plate", vec![count, column("day", day)])
        };
        lab.define(&defined(DataType::Integer, DataType::Date))
            .await
            .unwrap();
        lab.insert(
            "plate",
            json!([{"id": "a", "count": 1, "day": "2026-03-01"}]),
        )
        .await;
        lab.define(&defined(DataType::Float, DataType::Datetime))
            .await
            .unwrap();
        lab.insert("plate", json!([{"id": "b"}, {"id": "c", "count": 0.5}]))
            .await;
        assert_eq!(lab.column("plate", "count").await, [0.5, 1.0, 3.0]);
        let days = lab.column("plate", "day").await;
        assert_eq!(
            days,
            [json!("2026-03-01T00:00:00Z"), Value::Null, Value::Null]
        );
        let again = lab
            .write(request([insert("plate", json!([{"count": 0.5}]))], []))
            .await;
        assert_problems_are(
            again,
            &[repeated("plate", "plate_count_key", "count", "0.5")],
        );
    }

    /// A value that its new type cannot store exactly refuses the change; nothing is changed then.
    async fn a_value_without_an_exact_counterpart_keeps_the_type(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let large = 9_007_199_254_740_992_i64;
        let counted = |data_type| curated("counted", vec![column("count", data_type)]);
        lab.define(&counted(DataType::Integer)).await.unwrap();
        // It has 15 digits that count, and all the same no float equals it.
        let round = 123_456_789_012_345_000_i64;
        let exact = [0, 7, large, 1 << 60, i64::MIN];
        let rows: Vec<Value> = exact
            .into_iter()
            .chain([round, large + 1, -large - 1, large + 3])
            .map(|count| json!({"count": count}))
            .collect();
        lab.insert("counted", json!(rows)).await;
        let before = lab.tables().await;
        let inexact = |table: &str, values: &[i64]| CatalogRefusal::Inexact {
            table: table.to_owned(),
            column: "count".to_owned(),
            data_type: DataType::Float,
            values: values.iter().map(ToString::to_string).collect(),
        };
        assert_refused(
            lab.define(&counted(DataType::Float)).await,
            &inexact("counted", &[-large - 1, large + 1, large + 3, round]),
        );
        assert_eq!(lab.tables().await.version, before.version);
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let points = |data_type| TableDefinition {
            category: SemanticCategory::Raw,
            ..curated(
                "points",
                vec![reference("sample"), column("count", data_type)],
            )
        };
        lab.define(&points(DataType::Integer)).await.unwrap();
        let values = series(
            "points",
            json!("a"),
            json!({"count": [large + 1, null, large + 1]}),
        );
        lab.write(request([], [values])).await.unwrap();
        assert_refused(
            lab.define(&points(DataType::Float)).await,
            &inexact("points", &[large + 1]),
        );
        assert_eq!(lab.column("points", "count").await.len(), 3);
    }

    /// A key that no row is referenced by becomes a text, by which rows are found, changed and reverted.
    async fn a_key_becomes_a_text(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let rack = |data_type| {
            curated(
                "rack",
                vec![key("number", data_type), column("note", DataType::Text)],
            )
        };
        lab.define(&rack(DataType::Integer)).await.unwrap();
        let made = lab
            .insert("rack", json!([{"number": 7}, {"number": 10}]))
            .await;
        lab.define(&rack(DataType::String)).await.unwrap();
        lab.insert("rack", json!([{"number": "B"}])).await;
        assert_eq!(lab.column("rack", "number").await, ["10", "7", "B"]);
        assert_eq!(lab.find("rack", json!({"number": "7"})).await.len(), 1);
        assert_eq!(lab.revert(made).await.unwrap().deleted_count, 2);
        assert_eq!(lab.column("rack", "number").await, ["B"]);
    }

    /// A renamed table retains rows, points, ids and constraints; references follow it, and what was
    /// written under its former name can be reverted.
    async fn a_renamed_table_keeps_its_rows_and_what_refers_to_it(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let written = lab
            .insert("sample", json!([{"id": "a", "name": "a", "volume": 1}]))
            .await;
        let measured = json!([{"sample": "a", "value": 1}]);
        let measured_under = lab.insert("measurement", measured).await;
        let points = series(
            "curve",
            json!("a"),
            json!({"time": [0, 1], "od": [0.1, 0.2]}),
        );
        let curve_written = lab.write(request([], [points])).await.unwrap();
        let before = lab.tables().await;
        let specimen = TableDefinition {
            name: "specimen".to_owned(),
            ..renamed("sample", sample())
        };
        let after = lab.define(&specimen).await.unwrap();
        assert_eq!(after.id, before.table("sample").unwrap().id);
        assert_eq!(after.columns, before.table("sample").unwrap().columns);
        let tables = lab.tables().await;
        assert!(tables.table("sample").is_none());
        let targets: Vec<&str> = tables
            .referencing("specimen")
            .map(|(table, _)| table.name.as_str())
            .collect();
        assert_eq!(targets, ["measurement", "curve"]);
        assert_eq!(lab.column("specimen", "volume").await, [1.0]);
        let again = lab
            .write(request([insert("specimen", json!([{"name": "a"}]))], []))
            .await;
        assert_problems_are(
            again,
            &[repeated("specimen", "specimen_name_key", "name", "a")],
        );
        let found = lab.find("measurement", json!({"sample__name": "a"})).await;
        assert_eq!(found.len(), 1);
        // A raw table, its own constraints and its series.
        let trace = TableDefinition {
            name: "trace".to_owned(),
            ..renamed("curve", {
                let mut curve = curve();
                for column in &mut curve.columns {
                    if column.references.is_some() {
                        column.references = Some("specimen".to_owned());
                    }
                }
                curve
            })
        };
        lab.define(&trace).await.unwrap();
        assert_eq!(lab.column("trace", "od").await, [0.1, 0.2]);
        let points = series("trace", json!("a"), json!({"time": [0], "od": [0.3]}));
        lab.write(request([], [points])).await.unwrap();
        assert_eq!(lab.column("trace", "od").await, [0.3]);
        // The same definitions again change nothing, and the former name is free.
        let version = lab.tables().await.version;
        lab.define(&specimen).await.unwrap();
        assert_eq!(lab.tables().await.version, version);
        let both = lab.define(&sample()).await;
        assert!(both.unwrap().id != after.id);
        let refused =
            "table \"sample\" cannot be renamed to \"specimen\": there is a table of this name";
        assert_refused(
            lab.define(&specimen).await,
            &CatalogRefusal::Definition(vec![refused.to_owned()]),
        );
        let measured = curated("measurement", {
            let mut columns = measurement().columns;
            for column in &mut columns {
                if column.references.is_some() {
                    column.references = Some("specimen".to_owned());
                }
            }
            columns
        });
        let unchanged = lab.tables().await.version;
        lab.define(&TableDefinition {
            description: measurement().description,
            ..measured
        })
        .await
        .unwrap();
        assert_eq!(lab.tables().await.version, unchanged);
        let report = lab.revert(curve_written.execution.unwrap()).await.unwrap();
        assert_eq!(report.deleted_count, 0);
        let report = lab.revert(measured_under).await.unwrap();
        assert_eq!(report.deleted_count, 1);
        let report = lab.revert(written).await.unwrap();
        assert_eq!(report.deleted_count, 1);
    }
);
