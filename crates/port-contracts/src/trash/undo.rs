//! Contract of [`labdata_ports::trash::TrashStore`] and [`labdata_ports::data::DataStore`]: what is forgotten or purged is
//! nowhere, and what is undone while a table or a column is in the trash.

use labdata_domain::{
    catalog::{ColumnDefinition, TableDefinition},
    data::{
        changes::RowChange,
        history::{RowVersion, versions},
        restore::OnConflict,
        revert::RevertReport,
        write::{Mode, WriteRequest},
    },
    ids::ExecutionId,
    scalar::{DataType, KeyValue},
};
use labdata_ports::data::{Attribution, Restore, RevertError, RevertRequest};
use serde_json::{Value, json};

use super::{TrashHarness, TrashLab, renamed};
use crate::{
    Itself,
    catalog::definitions::{curated, required, sample},
    data::{
        lab::{Lab, insert, request, series, table_write},
        restore::{delete, update, write},
    },
    given::at,
};

/// Two samples, the first one with a note, and a curve of it.
async fn two_samples(harness: &Itself<impl TrashHarness>) -> TrashLab {
    let lab = TrashLab::over(&**harness).await;
    let samples = json!([
        {"id": "a", "name": "a", "volume": 1, "note": "Jane Secret"},
        {"id": "b", "name": "b", "volume": 2},
    ]);
    let points = series(
        "curve",
        json!("a"),
        json!({"time": [1, 2], "od": [0.5, 0.25]}),
    );
    write(&lab, [insert("sample", samples)], [points]).await;
    lab
}

fn restoring(lab: &Lab, execution: ExecutionId, on_conflict: OnConflict) -> RevertRequest {
    let undo = Attribution {
        target: Lab::new_execution("revert"),
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now: at(320),
        source: None,
    };
    RevertRequest {
        now: at(320),
        restore: Some(Restore { on_conflict, undo }),
        ..lab.reverting(execution)
    }
}

async fn restore(
    lab: &Lab,
    execution: ExecutionId,
    on_conflict: OnConflict,
) -> Result<RevertReport, RevertError> {
    let request = restoring(lab, execution, on_conflict);
    lab.data.revert(lab.organization, &request).await
}

/// Changes of an execution in a table as their lists have them: ids with their values before and after.
async fn images(lab: &Lab, execution: ExecutionId, table: &str) -> Vec<(String, Value, Value)> {
    let rows = lab.data.changed_rows(lab.organization, execution, table);
    let mut rows = rows.await.unwrap();
    rows.remove(&RowChange::Created);
    let value = |row: Option<labdata_domain::data::read::RowJson>| {
        row.map_or(Value::Null, |row| {
            serde_json::from_str(row.as_str()).unwrap()
        })
    };
    let rows = rows.into_values().flatten();
    rows.map(|row| (row.id, value(row.before), value(row.after)))
        .collect()
}

async fn sample_versions(lab: &Lab, id: &str) -> Vec<RowVersion> {
    let table = lab.tables().await.keyed_table("sample").unwrap();
    let key = KeyValue::Text(id.to_owned());
    let history = lab.data.history(lab.organization, &table, &key).await;
    let history = history.unwrap();
    versions(history.deleted, &history.changes, history.current.as_ref())
}

/// Forgets a sample as the use case does; returns whether anything was known.
async fn forget(lab: &TrashLab, id: &str) -> bool {
    let table = lab.tables().await.keyed_table("sample").unwrap();
    let key = KeyValue::Text(id.to_owned());
    let in_trash = lab.trash.forget_row(lab.organization, &table, &key).await;
    let stored = lab
        .data
        .forget_history(lab.organization, &table, &key)
        .await;
    in_trash.unwrap() | stored.unwrap()
}

/// A column of the samples by their ids.
async fn by_id(lab: &Lab, column: &str) -> Vec<(String, Value)> {
    let rows = lab.find("sample", json!({})).await.into_iter();
    let mut values: Vec<_> = rows
        .map(|mut row| {
            let id = row["id"].as_str().unwrap().to_owned();
            (id, row.remove(column).unwrap())
        })
        .collect();
    values.sort_by(|one, other| one.0.cmp(&other.0));
    values
}

crate::suite!(
    use trash::undo as trash_undo;

    /// Neither lists of changes nor a revert have the values of a forgotten row and of its earlier series.
    async fn a_forgotten_row_is_nowhere(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let rows = json!([{"id": "a", "note": "anon"}, {"id": "b", "note": "kept"}]);
        let points = series("curve", json!("a"), json!({"time": [7]}));
        let execution = write(&lab, [update("sample", rows)], [points]).await;
        assert!(forget(&lab, "a").await);
        let images = images(&lab, execution, "sample").await;
        assert_eq!(images[0], ("a".to_owned(), Value::Null, Value::Null));
        assert_eq!(images[1].2["note"], json!("kept"));
        let report = restore(&lab, execution, OnConflict::Refuse).await.unwrap();
        assert_eq!((report.restored_count, report.raws_restored_count), (1, 0));
        assert_eq!(
            report.warnings,
            [
                "not undone: 1 replaced series of \"curve\", whose earlier values are not stored",
                "not undone: 1 updated rows of \"sample\", whose earlier values are not stored",
            ]
        );
    }

    /// The same of a row that was deleted with its series, also where the raw table or a column of it is in the trash.
    async fn series_of_a_forgotten_row_are_nowhere(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let points = series("curve", json!("b"), json!({"time": [3], "od": [0.125]}));
        write(&lab, [], [points]).await;
        let execution = write(
            &lab,
            [delete("sample", json!([{"id": "a"}, {"id": "b"}]))],
            [],
        )
        .await;
        let od = lab.try_drop_column("curve", "od").await.unwrap();
        assert!(forget(&lab, "a").await);
        lab.restore(od).await.unwrap();
        let curve = lab.try_drop("curve", true).await.unwrap();
        assert!(forget(&lab, "b").await);
        lab.restore(curve).await.unwrap();
        assert!(!forget(&lab, "b").await, "nothing of it is stored");
        let report = restore(&lab, execution, OnConflict::Refuse).await.unwrap();
        assert_eq!((report.restored_count, report.raws_restored_count), (0, 0));
        assert_eq!(
            report.warnings,
            [
                "not undone: 3 points deleted with their rows of \"curve\", whose earlier values are not stored",
                "not undone: 2 deleted rows of \"sample\", whose earlier values are not stored",
            ]
        );
    }

    /// A row that never was is not known, one that is or was is.
    async fn an_unknown_row_is_not_forgotten(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        assert!(!forget(&lab, "never").await);
        assert!(forget(&lab, "a").await, "it exists");
        assert!(forget(&lab, "b").await, "it has a history");
    }

    /// Lists of changes follow new names, show no column that was dropped, and show it again when it is restored.
    async fn lists_of_changes_follow_columns(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let rows = json!([{"id": "a", "note": "anon", "volume": 5}]);
        let execution = write(&lab, [update("sample", rows)], []).await;
        let mut definition = sample();
        "remark".clone_into(&mut definition.columns[2].name);
        definition.columns[2].renamed_from = Some("note".to_owned());
        lab.define(&definition).await.unwrap();
        let before = images(&lab, execution, "sample").await;
        assert_eq!(
            (&before[0].1["remark"], &before[0].2["remark"]),
            (&json!("Jane Secret"), &json!("anon"))
        );
        let remark = lab.try_drop_column("sample", "remark").await.unwrap();
        let without = images(&lab, execution, "sample").await;
        assert_eq!(without[0].1.get("remark"), None);
        assert_eq!(without[0].1["volume"].as_f64(), Some(1.0));
        lab.restore(remark).await.unwrap();
        assert_eq!(images(&lab, execution, "sample").await, before);
        let remark = lab.try_drop_column("sample", "remark").await.unwrap();
        lab.trash.purge(lab.organization, remark).await.unwrap();
        let dropped = lab
            .catalog
            .drop_column(lab.organization, "sample", "volume", true, at(330));
        dropped.await.unwrap();
        let rest = format!("{:?}", images(&lab, execution, "sample").await);
        assert!(!rest.contains("Jane") && !rest.contains("volume"), "{rest}");
    }

    /// Lists of changes show no values of a table that was dropped, and show them again when it is restored.
    async fn lists_of_changes_follow_tables(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let note = curated("remark", vec![required("text", DataType::Text)]);
        let execution = async || {
            lab.define(&note).await.unwrap();
            write(
                &lab,
                [insert("remark", json!([{"id": "1", "text": "Jane"}]))],
                [],
            )
            .await;
            write(
                &lab,
                [update("remark", json!([{"id": "1", "text": "anon"}]))],
                [],
            )
            .await
        };
        let first = execution().await;
        let before = images(&lab, first, "remark").await;
        assert_eq!(before[0].1["text"], json!("Jane"));
        let id = lab.try_drop("remark", true).await.unwrap();
        assert_eq!(images(&lab, first, "remark").await, []);
        // Another table takes the name, and is renamed.
        let second = execution().await;
        lab.define(&renamed(note.clone(), "comment")).await.unwrap();
        lab.restore(id).await.unwrap();
        assert_eq!(images(&lab, first, "remark").await, before);
        let after = images(&lab, second, "comment").await;
        assert_eq!(after[0].1["text"], json!("Jane"));
        let id = lab.try_drop("remark", true).await.unwrap();
        lab.trash.purge(lab.organization, id).await.unwrap();
        assert_eq!(images(&lab, first, "remark").await, []);
        let dropped = lab
            .catalog
            .drop_table(lab.organization, "comment", true, at(340));
        dropped.await.unwrap();
        assert_eq!(images(&lab, second, "comment").await, []);
    }

    /// Versions that were recorded while a column was in the trash have its value when it is back.
    async fn versions_of_the_meantime_have_the_value(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let volume = lab.try_drop_column("sample", "volume").await.unwrap();
        write(
            &lab,
            [update("sample", json!([{"id": "a", "note": "x"}]))],
            [],
        )
        .await;
        write(
            &lab,
            [update("sample", json!([{"id": "a", "note": "y"}]))],
            [],
        )
        .await;
        let execution = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        lab.restore(volume).await.unwrap();
        for (id, expected) in [("a", 1.0), ("b", 2.0)] {
            let versions = sample_versions(&lab, id).await;
            let volumes = versions.iter().map(|it| it.values["volume"].as_f64());
            assert!(
                volumes.clone().all(|it| it == Some(expected)),
                "{id}: {versions:?}"
            );
        }
        let changed = sample_versions(&lab, "a").await;
        assert!(
            changed[..2]
                .iter()
                .all(|it| !it.changed.contains_key("volume"))
        );
        let report = restore(&lab, execution, OnConflict::Refuse).await.unwrap();
        assert_eq!((report.restored_count, report.warnings), (1, Vec::new()));
        let volumes = by_id(&lab, "volume").await;
        let volumes: Vec<_> = volumes.iter().map(|(_, value)| value.as_f64()).collect();
        assert_eq!(volumes, [Some(1.0), Some(2.0)]);
    }

    /// The same of series.
    async fn series_of_the_meantime_have_the_value(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let before = lab.rows("curve").await;
        let od = lab.try_drop_column("curve", "od").await.unwrap();
        let points = series("curve", json!("a"), json!({"time": [9]}));
        let execution = write(&lab, [], [points]).await;
        lab.restore(od).await.unwrap();
        restore(&lab, execution, OnConflict::Refuse).await.unwrap();
        assert_eq!(lab.rows("curve").await, before);
    }

    /// A row that is created in the meantime under the key of another one has the default, that one's versions its value.
    async fn another_row_of_a_key_has_its_own_value(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let with_default = ColumnDefinition {
            default: Some(json!(7)),
            ..required("volume", DataType::Float)
        };
        let mut definition = sample();
        definition.columns[1] = with_default;
        for history in [true, false] {
            let name = if history { "vial" } else { "flask" };
            let table = TableDefinition {
                name: name.to_owned(),
                history,
                ..definition.clone()
            };
            lab.define(&table).await.unwrap();
            let rows = json!([
                {"id": "a", "name": "a", "volume": 1},
                {"id": "b", "name": "b", "volume": 2},
            ]);
            write(&lab, [insert(name, rows)], []).await;
            let volume = lab.try_drop_column(name, "volume").await.unwrap();
            write(&lab, [delete(name, json!([{"id": "a"}]))], []).await;
            let plan = lab.plan(request(
                [insert(name, json!([{"id": "a", "name": "new"}]))],
                [],
            ));
            let plan = plan.await.unwrap();
            let again = lab
                .apply(&plan, Lab::new_execution("some job"), at(305))
                .await;
            again.unwrap();
            write(&lab, [update(name, json!([{"id": "b", "note": "x"}]))], []).await;
            lab.restore(volume).await.unwrap();
            let rows = lab.rows(name).await;
            let mut volumes: Vec<_> = rows
                .iter()
                .map(|row| (row["id"].as_str().unwrap(), row["volume"].as_f64().unwrap()))
                .collect();
            volumes.sort_by(|one, other| one.0.cmp(other.0));
            assert_eq!(volumes, [("a", 7.0), ("b", 2.0)], "{name}");
        }
    }

    /// A row that is deleted and comes back in the meantime has its value when the column is back.
    async fn a_row_that_came_back_has_its_value(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let first = write(&lab, [delete("sample", json!([{"id": "a"}]))], []).await;
        let volume = lab.try_drop_column("sample", "volume").await.unwrap();
        let second = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        for execution in [second, first] {
            let report = restore(&lab, execution, OnConflict::Refuse).await.unwrap();
            assert_eq!((report.restored_count, report.warnings), (1, Vec::new()));
        }
        lab.restore(volume).await.unwrap();
        let volumes = by_id(&lab, "volume").await;
        let volumes: Vec<_> = volumes.iter().map(|(_, value)| value.as_f64()).collect();
        assert_eq!(volumes, [Some(1.0), Some(2.0)]);
        assert_eq!(lab.count("curve").await, 2);
    }

    /// The same of a row that a write restored; that the column is away is no obstacle to it.
    async fn a_row_that_a_write_restored_has_its_value(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        write(&lab, [delete("sample", json!([{"id": "a"}]))], []).await;
        let volume = lab.try_drop_column("sample", "volume").await.unwrap();
        write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        let rows = json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]);
        let restored = WriteRequest {
            restores: true,
            ..request([table_write(Mode::Upsert, "sample", rows)], [])
        };
        lab.write(restored).await.unwrap();
        lab.restore(volume).await.unwrap();
        let volumes = by_id(&lab, "volume").await;
        let volumes: Vec<_> = volumes.iter().map(|(_, value)| value.as_f64()).collect();
        assert_eq!(volumes, [Some(1.0), Some(2.0)]);
        let versions = sample_versions(&lab, "b").await;
        assert!(
            versions
                .iter()
                .all(|it| it.values["volume"].as_f64() == Some(2.0))
        );
    }

    /// A row whose earlier value is of a column in the trash is a conflict, and is restored once the column is back.
    async fn a_column_in_the_trash_is_a_conflict(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let rows = json!([{"id": "a", "volume": 9}, {"id": "b", "note": "x"}]);
        let execution = write(&lab, [update("sample", rows)], []).await;
        let volume = lab.try_drop_column("sample", "volume").await.unwrap();
        let sentence =
            "(a): a column that is in the trash has values of theirs; restore or purge it first";
        match restore(&lab, execution, OnConflict::Refuse).await {
            Err(RevertError::Conflicts(conflicts)) => assert_eq!(
                conflicts,
                [format!(
                    "1 rows of \"sample\" cannot be restored {sentence}"
                )]
            ),
            other => panic!("expected conflicts, got {other:?}"),
        }
        let report = restore(&lab, execution, OnConflict::Skip).await.unwrap();
        assert_eq!(report.restored_count, 1);
        assert_eq!(
            report.warnings,
            [format!(
                "1 rows of \"sample\" were left as they are {sentence}"
            )]
        );
        lab.restore(volume).await.unwrap();
        let report = restore(&lab, execution, OnConflict::Refuse).await.unwrap();
        assert_eq!((report.restored_count, report.warnings), (1, Vec::new()));
        assert_eq!(by_id(&lab, "volume").await[0].1.as_f64(), Some(1.0));
    }

    /// Writes to a table in the trash are undone once it is restored, by either kind of revert.
    async fn a_table_in_the_trash_is_reverted_later(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        for restores in [false, true] {
            let rows = [
                insert("sample", json!([{"id": "new", "name": "new"}])),
                insert("measurement", json!([{"id": "1", "value": 1}])),
            ];
            let execution = write(&lab, rows, []).await;
            let revert = async || {
                let request = if restores {
                    restoring(&lab, execution, OnConflict::Refuse)
                } else {
                    lab.reverting(execution)
                };
                lab.data.revert(lab.organization, &request).await.unwrap()
            };
            let measurement = lab.try_drop("measurement", true).await.unwrap();
            for deleted in [1, 0] {
                let report = revert().await;
                assert_eq!(report.deleted_count, deleted);
                assert_eq!(report.in_trash, ["measurement"]);
                assert_eq!(report.warnings, [""; 0]);
                assert_eq!(lab.changes(execution).await.reverted, None);
            }
            lab.restore(measurement).await.unwrap();
            let report = revert().await;
            assert_eq!((report.deleted_count, report.skipped_count), (1, 0));
            assert_eq!(report.in_trash, [""; 0]);
            assert_eq!(lab.count("measurement").await, 0);
            assert!(lab.changes(execution).await.reverted.is_some());
            assert_eq!(revert().await, RevertReport::default());
        }
    }

    /// Writes to a table that is purged count as undone.
    async fn a_purged_table_is_nothing_to_revert(harness: &Itself<impl TrashHarness>) {
        let lab = two_samples(harness).await;
        let execution = lab.insert("measurement", json!([{"id": "1"}])).await;
        let measurement = lab.try_drop("measurement", true).await.unwrap();
        lab.revert(execution).await.unwrap();
        restore(&lab, execution, OnConflict::Skip).await.unwrap();
        assert_eq!(lab.changes(execution).await.reverted, None);
        // Once it is purged, nothing is left to undo.
        lab.trash
            .purge(lab.organization, measurement)
            .await
            .unwrap();
        let report = lab.revert(execution).await.unwrap();
        assert_eq!((report.skipped_count, report.in_trash), (1, Vec::new()));
        assert!(lab.changes(execution).await.reverted.is_some());
    }
);
