//! Contract of [`labdata_ports::data::DataStore`]: versions of rows.

use labdata_domain::{
    catalog::{KeyedTable, TableDefinition},
    data::history::{RowVersion, versions},
    scalar::KeyValue,
};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::{curated, sample},
    data::{
        lab::{DataHarness, Lab},
        restore::{delete, restore, two_samples, update, write},
    },
    given::at,
};

/// The versions of a sample.
async fn sample_versions(lab: &Lab, id: &str) -> Vec<RowVersion> {
    let table = KeyedTable::of(lab.tables().await.table("sample").unwrap()).unwrap();
    let key = KeyValue::Text(id.to_owned());
    let history = lab.data.history(lab.organization, &table, &key).await;
    let history = history.unwrap();
    versions(history.deleted, &history.changes, history.current.as_ref())
}

fn operations(versions: &[RowVersion]) -> Vec<(u64, &str)> {
    let versions = versions.iter();
    versions
        .map(|it| (it.version, it.operation.as_str()))
        .collect()
}

crate::suite!(
    use data::history as data_history;

    /// An update names its execution, and leaves the one that created the row.
    async fn an_update_names_its_execution(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let created = lab
            .insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let by = |row: &Map<String, Value>| {
            (
                row["created_by_execution_id"].clone(),
                row["updated_by_execution_id"].clone(),
            )
        };
        let own = || Value::from(created.to_string());
        let rows = lab.find("sample", json!({})).await;
        assert_eq!(by(&rows[0]), (own(), own()));
        let updated = write(
            &lab,
            [update("sample", json!([{"id": "a", "volume": 2}]))],
            [],
        )
        .await;
        let rows = lab.find("sample", json!({})).await;
        assert_eq!(by(&rows[0]), (own(), Value::from(updated.to_string())));
    }

    /// Each change of a row makes a version with the values that it then had.
    async fn versions_tell_what_each_execution_changed(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let first = lab
            .insert("sample", json!([{"id": "a", "name": "a", "volume": 1}]))
            .await;
        let second = write(
            &lab,
            [update("sample", json!([{"id": "a", "volume": 2}]))],
            [],
        )
        .await;
        let third = write(&lab, [delete("sample", json!([{"id": "a"}]))], []).await;
        lab.insert("sample", json!([{"id": "a", "name": "new"}]))
            .await;
        let versions = sample_versions(&lab, "a").await;
        let expected = [
            (4, "created"),
            (3, "deleted"),
            (2, "updated"),
            (1, "created"),
        ];
        assert_eq!(operations(&versions), expected);
        let volume = |version: usize| {
            let (before, after) = &versions[version].changed["volume"];
            (before.as_f64(), after.as_f64())
        };
        assert_eq!(volume(1), (Some(2.0), None));
        assert_eq!(volume(2), (Some(1.0), Some(2.0)));
        assert_eq!(versions[2].values["volume"], 2.0);
        assert_eq!(versions[2].values["name"], json!("a"));
        let by: Vec<_> = versions[1..].iter().map(|it| it.execution).collect();
        assert_eq!(by, [Some(third), Some(second), Some(first)]);
        assert_eq!(operations(&sample_versions(&lab, "never").await), []);
    }

    /// A version that is forgotten is gone for good; the row stays.
    async fn versions_can_be_forgotten(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        for id in ["a", "b"] {
            write(
                &lab,
                [update("sample", json!([{"id": id, "volume": 2}]))],
                [],
            )
            .await;
        }
        let table = KeyedTable::of(lab.tables().await.table("sample").unwrap()).unwrap();
        let key = KeyValue::Text("a".to_owned());
        lab.data
            .forget_history(lab.organization, &table, &key)
            .await
            .unwrap();
        assert_eq!(
            operations(&sample_versions(&lab, "a").await),
            [(2, "updated")]
        );
        assert_eq!(sample_versions(&lab, "b").await.len(), 2);
    }

    /// Changes that are older than asked are deleted, a batch at a time.
    async fn old_changes_are_deleted(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let rows = json!([{"id": "a", "volume": 2}, {"id": "b", "volume": 2}]);
        write(&lab, [update("sample", rows)], []).await;
        for (before, deleted) in [(at(100), 0), (at(101), 1), (at(101), 1), (at(101), 0)] {
            assert_eq!(lab.data.sweep_history(before, 1).await.unwrap(), deleted);
        }
        let versions = sample_versions(&lab, "a").await;
        assert_eq!(operations(&versions), [(2, "updated")]);
    }

    /// Renamed tables and columns have their history; that of a dropped column is deleted.
    async fn history_follows_renames(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert(
            "sample",
            json!([{"id": "a", "name": "a", "volume": 1, "note": "x"}]),
        )
        .await;
        let execution = write(
            &lab,
            [update(
                "sample",
                json!([{"id": "a", "volume": 2, "note": "y"}]),
            )],
            [],
        )
        .await;
        let mut definition = TableDefinition {
            renamed_from: Some("sample".to_owned()),
            ..curated("vial", sample().columns)
        };
        "amount".clone_into(&mut definition.columns[1].name);
        definition.columns[1].renamed_from = Some("volume".to_owned());
        lab.define(&definition).await.unwrap();
        let dropped = lab
            .catalog
            .drop_column(lab.organization, "vial", "note", true, at(60));
        dropped.await.unwrap();
        restore(&lab, execution).await.unwrap();
        assert_eq!(lab.column("vial", "amount").await, [1.0]);
    }
);
