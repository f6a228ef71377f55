//! Contract of [`labdata_ports::catalog::CatalogStore`]. The domain checks definitions; these
//! clauses cover their execution.

pub mod columns;
pub mod definitions;
pub mod drops;
pub mod scripted;

use std::sync::Arc;

use labdata_domain::{
    catalog::{
        CatalogChange, CatalogRefusal, ColumnDefinition, Table, TableDefinition, Violation,
        core_tables,
    },
    scalar::DataType,
};
use labdata_ports::catalog::DefineError;
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::definitions::{
        column, curated, curve, key, measurement, raw, reference, required, sample, unique,
    },
    data::lab::{
        DataHarness, Lab, assert_problems, assert_problems_are, insert, repeated, request, series,
        violated_key,
    },
    given::at,
};

/// Fails unless the call was refused with exactly this refusal.
#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    result: Result<T, DefineError>,
    expected: &CatalogRefusal,
) {
    match result {
        Err(DefineError::Refused(refusal)) => assert_eq!(refusal, *expected),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A column without a value that needs one.
fn null(table: &str, column: &str) -> Violation {
    Violation::Null {
        table: table.to_owned(),
        column: column.to_owned(),
    }
}

/// The table without ids, which the store gives.
fn without_ids(table: &Table) -> Table {
    let mut table = Table {
        id: None,
        ..table.clone()
    };
    table.columns.update(|column| column.id = None);
    table
}

/// A definition with further columns.
pub(crate) fn with(
    mut definition: TableDefinition,
    columns: Vec<ColumnDefinition>,
) -> TableDefinition {
    definition.columns.extend(columns);
    definition
}

/// Fails unless the domain refuses a definition for a reason that names what it is about, the store
/// responds with that refusal, and nothing changes.
async fn assert_unchanged_by(lab: &Lab, definition: &TableDefinition, about: &str) {
    let refusal = CatalogChange::towards(definition, &*lab.tables().await).unwrap_err();
    assert!(refusal.to_string().contains(about), "{refusal}");
    assert_refused_unchanged(lab, definition, &refusal).await;
}

/// Fails unless a definition is refused because stored rows violate it, and nothing changes.
async fn assert_violated_by(lab: &Lab, definition: &TableDefinition, violation: Violation) {
    assert_refused_unchanged(lab, definition, &CatalogRefusal::Violation(violation)).await;
}

async fn assert_refused_unchanged(
    lab: &Lab,
    definition: &TableDefinition,
    expected: &CatalogRefusal,
) {
    let before = lab.tables().await;
    assert_refused(lab.define(definition).await, expected);
    let after = lab.tables().await;
    assert_eq!(before.version, after.version);
    assert_eq!(
        before.table(&definition.name),
        after.table(&definition.name)
    );
}

crate::suite!(
    use catalog;

    /// An organization begins with exactly the tables that every organization has.
    async fn a_new_organization_has_the_core_tables(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let tables: Vec<Table> = lab
            .tables()
            .await
            .tables()
            .iter()
            .map(|table| (**table).clone())
            .collect();
        assert_eq!(tables, core_tables());
        lab.insert(
            "experiment",
            json!([{"name": "growth", "metadata": {"strain": "K-12"}}]),
        )
        .await;
        assert_eq!(lab.column("experiment", "name").await, ["growth"]);
    }

    /// The response and the catalog have every part of the definition, and ids for table and columns.
    async fn a_defined_table_reads_back(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        lab.define(&sample()).await.unwrap();
        let mut columns: Vec<ColumnDefinition> = DataType::ALL
            .into_iter()
            .map(|data_type| column(&format!("a_{data_type}"), data_type))
            .collect();
        columns.push(key("number", DataType::Integer));
        columns.push(ColumnDefinition {
            default: Some(json!(1.5)),
            ..required("volume", DataType::Float)
        });
        columns.push(ColumnDefinition {
            default: Some(json!({"a": "it's"})),
            ..column("more", DataType::Json)
        });
        columns.push(ColumnDefinition {
            description: None,
            ..unique("code", DataType::Uuid)
        });
        columns.push(reference("sample"));
        columns.push(reference("experiment"));
        let everything = TableDefinition {
            unique_together: vec![vec!["a_string".to_owned(), "sample".to_owned()]],
            ..curated("everything", columns)
        };
        for definition in [everything, curve()] {
            let expected = definition.resolve(&*lab.tables().await).unwrap();
            let answered = lab.define(&definition).await.unwrap();
            assert_eq!(without_ids(&answered), expected);
            let stands = lab.tables().await;
            assert_eq!(stands.table(&definition.name), Some(&answered));
            assert!(answered.id.is_some());
            for column in &definition.columns {
                assert!(
                    answered.column(&column.name).unwrap().id.is_some(),
                    "{}",
                    column.name
                );
            }
        }
    }

    /// Every valid name can be defined, written and read, SQL keywords included.
    async fn names_may_be_keywords_of_sql(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let columns = ["order", "group", "user", "primary", "null", "limit", "row"];
        let definition = curated(
            "select",
            columns
                .iter()
                .map(|name| column(name, DataType::Text))
                .collect(),
        );
        lab.define(&definition).await.unwrap();
        let row =
            json!({"order": "'; drop table x; --", "group": "\\ \" %", "null": "$1", "row": "é"});
        lab.insert("select", json!([row])).await;
        let found = lab
            .find("select", json!({"order": "'; drop table x; --"}))
            .await;
        let found = found.first().unwrap();
        for (name, value) in row.as_object().unwrap() {
            assert_eq!(found.get(name), Some(value), "{name}");
        }
    }

    /// A snapshot is never older than the call, and every change increments its version.
    async fn every_change_is_seen_at_once_and_counts_a_version(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let other = Lab::named(harness, "lab").await;
        let first = other.tables().await;
        lab.define(&sample()).await.unwrap();
        let second = other.tables().await;
        assert!(second.version > first.version && second.table("sample").is_some());
        lab.define(&with(sample(), vec![column("ph", DataType::Float)]))
            .await
            .unwrap();
        let third = other.tables().await;
        assert!(third.version > second.version);
        assert!(third.table("sample").unwrap().column("ph").is_some());
        lab.catalog
            .drop_table(lab.organization, "sample", false, at(50))
            .await
            .unwrap();
        let fourth = other.tables().await;
        assert!(fourth.version > third.version && fourth.table("sample").is_none());
        assert!(first.table("sample").is_none(), "a picture never changes");
    }

    /// Defining an existing table again returns it, ids included, and retains the version.
    async fn the_same_definition_again_changes_nothing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let before = lab.tables().await;
        for definition in [sample(), measurement(), curve()] {
            let answered = lab.define(&definition).await.unwrap();
            assert_eq!(before.table(&definition.name), Some(&answered));
        }
        assert_eq!(lab.tables().await.version, before.version);
        assert_eq!(lab.column("sample", "name").await, ["a"]);
    }

    /// New nullable columns come last, existing columns keep their ids, rows keep their values.
    async fn a_new_column_is_added_and_stored_rows_are_null_there(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a", "volume": 1.5}]))
            .await;
        let points = series(
            "curve",
            json!({"name": "a"}),
            json!({"time": [0, 1], "od": [0.1, 0.2]}),
        );
        lab.write(request([], [points])).await.unwrap();
        for definition in [sample(), curve()] {
            let before = Arc::clone(lab.tables().await.table(&definition.name).unwrap());
            let widened = with(definition, vec![column("ph", DataType::Float)]);
            let after = lab.define(&widened).await.unwrap();
            assert_eq!(after.id, before.id);
            assert!(after.columns.starts_with(&before.columns));
            assert_eq!(after.columns.last().unwrap().name, "ph");
        }
        assert_eq!(lab.column("sample", "volume").await, [1.5]);
        assert_eq!(lab.column("sample", "ph").await, [Value::Null]);
        assert_eq!(lab.column("curve", "od").await, [0.1, 0.2]);
        assert_eq!(lab.column("curve", "ph").await, [Value::Null, Value::Null]);
        lab.insert("sample", json!([{"name": "b", "ph": 7}])).await;
        assert_eq!(lab.find("sample", json!({"ph": 7})).await.len(), 1);
    }

    /// A new column with a default may be required: rows that are stored get the default.
    async fn a_new_column_with_a_default_fills_stored_rows(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let unit = ColumnDefinition {
            default: Some(json!("µl")),
            ..required("unit", DataType::String)
        };
        lab.define(&with(sample(), vec![unit])).await.unwrap();
        lab.insert(
            "sample",
            json!([{"name": "b"}, {"name": "c", "unit": "ml"}]),
        )
        .await;
        assert_eq!(lab.column("sample", "unit").await, ["ml", "µl", "µl"]);
    }

    /// A required column without default is refused while there are rows, which have no value for it.
    async fn a_new_required_column_needs_an_empty_table(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        assert_violated_by(
            &lab,
            &with(sample(), vec![required("ph", DataType::Float)]),
            null("sample", "ph"),
        )
        .await;
        lab.define(&with(
            measurement(),
            vec![required("unit", DataType::String)],
        ))
        .await
        .unwrap();
    }

    /// A column becomes required only if no stored row is null there.
    async fn a_column_with_nulls_cannot_become_required(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert(
            "sample",
            json!([{"name": "a", "volume": 1, "note": "x"}, {"name": "b", "note": "y"}]),
        )
        .await;
        let with_required = |column: &str| {
            let mut definition = sample();
            let columns = definition
                .columns
                .iter_mut()
                .filter(|defined| defined.name == column);
            columns.for_each(|column| column.is_nullable = false);
            definition
        };
        assert_violated_by(&lab, &with_required("volume"), null("sample", "volume")).await;
        lab.define(&with_required("note")).await.unwrap();
        let refused = lab
            .write(request([insert("sample", json!([{"name": "c"}]))], []))
            .await;
        assert_problems(refused);
    }

    /// A column becomes unique only when no stored values repeat; from then on it is.
    async fn a_column_that_repeats_values_cannot_become_unique(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = json!([
            {"name": "a", "volume": 1, "note": "x"},
            {"name": "b", "volume": 1, "note": "y"},
            {"name": "c", "volume": 2},
            {"name": "d", "volume": 3},
        ]);
        lab.insert("sample", rows).await;
        let with_unique = |column: &str| {
            let mut definition = sample();
            let columns = definition
                .columns
                .iter_mut()
                .filter(|defined| defined.name == column);
            columns.for_each(|column| column.is_unique = true);
            definition
        };
        let key = violated_key("sample", "sample_volume_key", "volume", "1");
        assert_violated_by(&lab, &with_unique("volume"), Violation::Repeated(key)).await;
        // Null equals nothing, so it may repeat.
        lab.define(&with_unique("note")).await.unwrap();
        assert_problems_are(
            lab.write(request(
                [insert("sample", json!([{"name": "e", "note": "x"}]))],
                [],
            ))
            .await,
            &[repeated("sample", "sample_note_key", "note", "x")],
        );
    }

    /// Columns become unique together only when no stored values repeat; from then on they are.
    async fn a_group_of_columns_that_repeats_cannot_become_unique(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}, {"name": "b"}]))
            .await;
        let (a, b) = (lab.sample("a").await, lab.sample("b").await);
        let grouped = TableDefinition {
            unique_together: vec![vec!["sample".to_owned(), "value".to_owned()]],
            ..measurement()
        };
        let rows = json!([{"sample": a, "value": 1}, {"sample": b, "value": 1}, {"sample": a, "value": 2}]);
        lab.insert("measurement", rows).await;
        let twice = lab
            .insert("measurement", json!([{"sample": a, "value": 2}]))
            .await;
        let (constraint, columns) = ("measurement_sample_id_value_key", "sample_id, value");
        let key = violated_key("measurement", constraint, columns, &format!("{a}, 2"));
        assert_violated_by(&lab, &grouped, Violation::Repeated(key)).await;
        lab.revert(twice).await.unwrap();
        lab.define(&grouped).await.unwrap();
        let again = json!([{"sample": a, "value": 2}]);
        assert_problems_are(
            lab.write(request([insert("measurement", again)], [])).await,
            &[repeated(
                "measurement",
                constraint,
                columns,
                &format!("{a}, 2"),
            )],
        );
        lab.insert("measurement", json!([{"sample": b, "value": 2}]))
            .await;
    }

    /// A definition may be loosened, and rows that it permits are accepted from then on.
    async fn constraints_that_are_taken_back_hold_no_more(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let together = vec!["name".to_owned(), "volume".to_owned()];
        lab.define(&TableDefinition {
            unique_together: vec![together],
            ..sample()
        })
        .await
        .unwrap();
        lab.insert("sample", json!([{"name": "a", "volume": 1}]))
            .await;
        let loose = curated(
            "sample",
            vec![
                column("name", DataType::String),
                column("volume", DataType::Float),
                column("note", DataType::Text),
            ],
        );
        lab.define(&loose).await.unwrap();
        lab.insert("sample", json!([{"name": "a", "volume": 1}, {"volume": 1}]))
            .await;
        assert_eq!(lab.count("sample").await, 3);
    }

    /// A column cannot be left out, nor get a type that its values do not convert to, and a table stays
    /// of its kind.
    async fn what_would_lose_data_is_refused(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let without_note = curated(
            "sample",
            sample()
                .columns
                .into_iter()
                .filter(|column| column.name != "note")
                .collect(),
        );
        assert_unchanged_by(&lab, &without_note, "note").await;
        let mut retyped = sample();
        retyped
            .columns
            .iter_mut()
            .for_each(|column| column.data_type = DataType::Uuid);
        assert_unchanged_by(&lab, &retyped, "volume").await;
        assert_unchanged_by(
            &lab,
            &raw("measurement", measurement().columns),
            "measurement",
        )
        .await;
    }

    /// An invalid definition is refused, and no table is created.
    async fn a_wrong_definition_is_refused(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        assert_unchanged_by(&lab, &curated("carrier", vec![]), "carrier").await;
        assert_unchanged_by(
            &lab,
            &curated("plate", vec![reference("nowhere")]),
            "nowhere",
        )
        .await;
        assert_unchanged_by(
            &lab,
            &curated("plate", vec![column("created_at", DataType::Date)]),
            "created_at",
        )
        .await;
    }
);
