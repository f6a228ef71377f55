//! Contract of [`labdata_ports::data::DataStore`]: history of rows, and reverts that restore.

use labdata_domain::{
    catalog::{KeyedTable, TableDefinition},
    data::{
        history::{RowVersion, versions},
        restore::OnConflict,
        revert::RevertReport,
        write::{Mode, SeriesWrite, TableWrite},
    },
    ids::ExecutionId,
    scalar::KeyValue,
};
use labdata_ports::data::{Attribution, Restore, RevertError, RevertRequest};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::{curated, raw, reference, required, sample, unique},
    data::lab::{DataHarness, Lab, insert, request, series, table_write},
    fixtures::Executions,
    given::at,
};

/// Every row and point of the tables of a lab, the server's own columns included.
async fn state(lab: &Lab) -> Vec<(String, Vec<Map<String, Value>>)> {
    let mut state = Vec::new();
    for table in ["experiment", "sample", "measurement", "curve"] {
        state.push((table.to_owned(), lab.find(table, json!({})).await));
    }
    state
}

async fn write(
    lab: &Lab,
    tables: impl IntoIterator<Item = TableWrite>,
    series: impl IntoIterator<Item = SeriesWrite>,
) -> ExecutionId {
    let outcome = lab.write(request(tables, series)).await.unwrap();
    outcome.execution.unwrap()
}

fn restoring(lab: &Lab, execution: ExecutionId, on_conflict: OnConflict) -> RevertRequest {
    let undo = Attribution {
        target: Lab::new_execution("revert"),
        user: lab.user,
        api_key: lab.api_key,
        now: at(200),
        source: None,
    };
    RevertRequest {
        restore: Some(Restore { on_conflict, undo }),
        ..lab.reverting(execution)
    }
}

async fn restore(lab: &Lab, execution: ExecutionId) -> Result<RevertReport, RevertError> {
    let request = restoring(lab, execution, OnConflict::Refuse);
    lab.data.revert(lab.organization, &request).await
}

async fn restore_but_conflicts(lab: &Lab, execution: ExecutionId) -> RevertReport {
    let request = restoring(lab, execution, OnConflict::Skip);
    lab.data.revert(lab.organization, &request).await.unwrap()
}

/// The conflicts of a revert that is refused.
#[track_caller]
fn conflicts(result: Result<RevertReport, RevertError>) -> Vec<String> {
    match result {
        Err(RevertError::Conflicts(conflicts)) => conflicts,
        other => panic!("expected conflicts, got {other:?}"),
    }
}

pub(super) fn update(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Update, table, rows)
}

pub(super) fn delete(table: &str, rows: Value) -> TableWrite {
    TableWrite {
        cascade: true,
        ..table_write(Mode::Delete, table, rows)
    }
}

/// Two samples with a measurement and a curve each.
async fn two_samples(harness: &Itself<impl DataHarness>) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let samples = json!([{"id": "a", "name": "a", "volume": 0.1, "note": "ä\"\\n"}, {"id": "b", "name": "b"}]);
    let measurements =
        json!([{"id": "1", "sample": "a", "value": 1.5}, {"id": "2", "sample": "b"}]);
    let curves = ["a", "b"].map(|id| {
        series(
            "curve",
            json!(id),
            json!({"time": [0.5, 1], "od": [null, 0.25]}),
        )
    });
    let tables = [
        insert("sample", samples),
        insert("measurement", measurements),
    ];
    write(&lab, tables, curves).await;
    lab
}

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
    use data::restore as data_restore;

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

    /// Updated rows get their earlier values back, deleted ones return with what was deleted with them.
    async fn updated_and_deleted_rows_come_back(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let before = state(&lab).await;
        let tables = [
            update(
                "sample",
                json!([{"id": "a", "volume": null, "note": "other", "name": "c"}]),
            ),
            delete("sample", json!([{"id": "b"}])),
            insert("sample", json!([{"id": "new", "name": "a"}])),
            insert("measurement", json!([{"sample": "new"}])),
        ];
        let execution = write(&lab, tables, []).await;
        let report = restore(&lab, execution).await.unwrap();
        assert_eq!((report.restored_count, report.raws_restored_count), (3, 2));
        assert_eq!((report.deleted_count, report.skipped_count), (2, 0));
        assert_eq!(report.warnings, [""; 0]);
        assert_eq!(state(&lab).await, before);
        assert_eq!(
            restore(&lab, execution).await.unwrap(),
            RevertReport::default()
        );
    }

    /// Replaced series return, new ones go.
    async fn replaced_series_come_back(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        lab.insert("sample", json!([{"id": "c", "name": "c"}]))
            .await;
        let before = state(&lab).await;
        let curves = ["a", "c"].map(|id| series("curve", json!(id), json!({"time": [7, 8, 9]})));
        let execution = write(&lab, [], curves).await;
        let report = restore(&lab, execution).await.unwrap();
        assert_eq!(
            (report.raws_restored_count, report.raws_deleted_count),
            (2, 6)
        );
        assert_eq!(state(&lab).await, before);
    }

    /// The undo is another execution, which can be reverted in turn, and so on.
    async fn an_undo_can_be_undone(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let before = state(&lab).await;
        let tables = [
            update("sample", json!([{"id": "a", "volume": 9}])),
            delete("sample", json!([{"id": "b"}])),
            insert("sample", json!([{"id": "new", "name": "new"}])),
        ];
        let curves = ["a", "new"].map(|id| series("curve", json!(id), json!({"time": [7]})));
        let mut execution = write(&lab, tables, curves).await;
        let after = state(&lab).await;
        for expected in [&before, &after, &before, &after] {
            let report = restore(&lab, execution).await.unwrap();
            assert_eq!(report.warnings, [""; 0]);
            assert_eq!(&state(&lab).await, expected);
            execution = report.undo_execution.unwrap();
            assert_eq!(lab.execution(execution).await.job_name.as_str(), "revert");
        }
    }

    /// What another execution changed since is refused, or stays with a warning.
    async fn later_changes_of_others_are_conflicts(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let tables = [
            update(
                "sample",
                json!([{"id": "a", "volume": 9}, {"id": "b", "volume": 9}]),
            ),
            insert("sample", json!([{"id": "new", "name": "new"}])),
        ];
        let execution = write(&lab, tables, []).await;
        write(
            &lab,
            [update(
                "sample",
                json!([{"id": "a", "note": "x"}, {"id": "new", "note": "x"}]),
            )],
            [],
        )
        .await;
        let after = state(&lab).await;
        let sentence = "(a, new): another execution changed them since";
        let refused = conflicts(restore(&lab, execution).await);
        assert_eq!(
            refused,
            [format!(
                "2 rows of \"sample\" cannot be restored {sentence}"
            )]
        );
        assert_eq!(state(&lab).await, after);
        let report = restore_but_conflicts(&lab, execution).await;
        assert_eq!((report.restored_count, report.deleted_count), (1, 0));
        assert_eq!(
            report.warnings,
            [format!(
                "2 rows of \"sample\" were left as they are {sentence}"
            )]
        );
        let volumes = lab.column("sample", "volume").await;
        let volumes: Vec<Option<f64>> = volumes.iter().map(Value::as_f64).collect();
        assert_eq!(volumes, [Some(9.0), None, None]);
    }

    /// A later change that was undone is no conflict.
    async fn undone_changes_of_others_do_not_count(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let before = state(&lab).await;
        let first = write(
            &lab,
            [update("sample", json!([{"id": "a", "volume": 9}]))],
            [],
        )
        .await;
        let second = write(
            &lab,
            [update("sample", json!([{"id": "a", "volume": 10}]))],
            [],
        )
        .await;
        assert_eq!(conflicts(restore(&lab, first).await).len(), 1);
        restore(&lab, second).await.unwrap();
        restore(&lab, first).await.unwrap();
        assert_eq!(state(&lab).await, before);
    }

    /// A row that another one references stays, and so does one whose own references are gone.
    async fn references_decide_what_comes_back(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let tables = [
            insert("sample", json!([{"id": "new", "name": "new"}])),
            delete("measurement", json!([{"id": "2"}])),
        ];
        let execution = write(&lab, tables, []).await;
        lab.insert("measurement", json!([{"id": "3", "sample": "new"}]))
            .await;
        write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        let after = state(&lab).await;
        assert_eq!(conflicts(restore(&lab, execution).await).len(), 2);
        let report = restore_but_conflicts(&lab, execution).await;
        assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
        assert_eq!(state(&lab).await, after);
    }

    /// A deleted row whose unique value another row has since stays deleted.
    async fn a_value_that_is_taken_stays_with_its_row(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let execution = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        lab.insert("sample", json!([{"id": "other", "name": "b"}]))
            .await;
        let refused = conflicts(restore(&lab, execution).await);
        assert!(
            refused.iter().any(|it| it.contains("must be unique")),
            "{refused:?}"
        );
        // With the row stay the points and the measurement that belong to it.
        let report = restore_but_conflicts(&lab, execution).await;
        assert_eq!((report.restored_count, report.raws_restored_count), (0, 0));
    }

    /// Values that must be unique return also where rows have exchanged them.
    async fn exchanged_unique_values_come_back(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let before = state(&lab).await;
        let open = harness.execution(lab.organization, at(0), None).await.id;
        for (id, name) in [("a", "x"), ("b", "a"), ("a", "b")] {
            let rows = update("sample", json!([{"id": id, "name": name}]));
            lab.write_under(open, request([rows], [])).await.unwrap();
        }
        restore(&lab, open).await.unwrap();
        assert_eq!(state(&lab).await, before);
    }

    /// A series that another execution wrote in place of the execution's own stays.
    async fn a_series_that_was_replaced_since_stays(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let curve = |time: f64| [series("curve", json!("a"), json!({"time": [time]}))];
        let execution = write(&lab, [], curve(7.0)).await;
        write(&lab, [], curve(8.0)).await;
        let after = state(&lab).await;
        assert_eq!(conflicts(restore(&lab, execution).await).len(), 1);
        assert_eq!(
            restore_but_conflicts(&lab, execution)
                .await
                .raws_restored_count,
            0
        );
        assert_eq!(state(&lab).await, after);
    }

    /// A dry run reports what the revert would do, and does nothing.
    async fn a_dry_run_of_a_restore_changes_nothing(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let execution = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        let after = state(&lab).await;
        let dry_run = RevertRequest {
            dry_run: true,
            ..restoring(&lab, execution, OnConflict::Refuse)
        };
        let displayed = lab.data.revert(lab.organization, &dry_run).await.unwrap();
        assert_eq!(state(&lab).await, after);
        let report = restore(&lab, execution).await.unwrap();
        assert_eq!(
            displayed,
            RevertReport {
                undo_execution: None,
                ..report
            }
        );
    }

    /// Of tables without history created rows are deleted; the rest cannot return, and is warned of.
    async fn tables_without_history_are_warned_of(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = TableDefinition {
            history: false,
            ..curated(
                "reading",
                vec![
                    unique("name", labdata_domain::scalar::DataType::String),
                    reference("sample"),
                ],
            )
        };
        let points = TableDefinition {
            history: false,
            ..raw(
                "trace",
                vec![
                    reference("reading"),
                    required("time", labdata_domain::scalar::DataType::Float),
                ],
            )
        };
        lab.define(&rows).await.unwrap();
        lab.define(&points).await.unwrap();
        let readings = json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]);
        let traces = ["a", "b"].map(|id| series("trace", json!(id), json!({"time": [1]})));
        write(&lab, [insert("reading", readings)], traces).await;
        let tables = [
            update("reading", json!([{"id": "a", "name": "c"}])),
            delete("reading", json!([{"id": "b"}])),
            insert("reading", json!([{"id": "new", "name": "new"}])),
        ];
        let execution = write(
            &lab,
            tables,
            [series("trace", json!("a"), json!({"time": [2]}))],
        )
        .await;
        let report = restore(&lab, execution).await.unwrap();
        assert_eq!((report.deleted_count, report.restored_count), (1, 0));
        let not_undone =
            |what: &str| format!("not undone: {what}, whose earlier values are not stored");
        let expected = [
            not_undone("1 deleted rows of \"reading\""),
            not_undone("1 updated rows of \"reading\""),
            not_undone("1 points deleted with their rows of \"trace\""),
            not_undone("1 replaced series of \"trace\""),
        ];
        assert_eq!(report.warnings, expected);
        assert_eq!(lab.column("reading", "name").await, ["c"]);
    }

    /// Another organization's execution is not found, and what it did stays.
    async fn another_organization_restores_nothing(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let execution = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        let after = state(&lab).await;
        let other = Lab::named(harness, "another lab").await;
        other.define_tables().await;
        assert!(matches!(
            restore(&other, execution).await,
            Err(RevertError::Port(_))
        ));
        assert_eq!(state(&lab).await, after);
    }
);

/// Numbers that look random and are the same for the same seed.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // Constants of Knuth's MMIX generator; the upper bits are the better ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// One of a few keys, so that writes meet.
    fn key(&mut self) -> String {
        format!("k{}", self.below(6))
    }

    pub(super) fn write(&mut self) -> (Vec<TableWrite>, Vec<SeriesWrite>) {
        let (key, other, value) = (self.key(), self.key(), self.below(100));
        let sample = json!([{"id": key, "name": other, "volume": value}]);
        let measurement = json!([{"id": key, "sample": other, "value": value}]);
        let table = match self.below(9) {
            0 => insert("sample", sample),
            1 => insert("measurement", measurement),
            2 => update("sample", sample),
            3 => update("measurement", measurement),
            4 => table_write(Mode::Upsert, "sample", sample),
            5 => TableWrite {
                key: Some(vec!["name".to_owned()]),
                ..table_write(
                    Mode::Upsert,
                    "sample",
                    json!([{"name": other, "volume": value}]),
                )
            },
            6 => delete("sample", json!([{"id": key}])),
            7 => delete("measurement", json!([{"id": key}])),
            _ => {
                let times: Vec<u64> = (0..self.below(4)).collect();
                let curve = series("curve", json!(key), json!({ "time": times }));
                return (Vec::new(), vec![curve]);
            }
        };
        (vec![table], Vec::new())
    }
}

/// Executions of random writes over three related tables are undone, redone and undone again: each time
/// everything is as it was, keys, points and the server's own columns included.
pub async fn random_executions_are_undone<H: DataHarness>(harness: &H, seed: u64) {
    let lab = Lab::named(harness, &format!("lab {seed}")).await;
    lab.define_tables().await;
    let mut numbers = Numbers(seed);
    let mut reached = Vec::new();
    for _ in 0..4 {
        let before = state(&lab).await;
        let execution = harness.execution(lab.organization, at(0), None).await.id;
        for _ in 0..=numbers.below(8) {
            let (tables, series) = numbers.write();
            // Some ask for what cannot be; they change nothing.
            let _ = lab.write_under(execution, request(tables, series)).await;
        }
        reached.push((execution, before, state(&lab).await));
    }
    for (execution, before, after) in reached.into_iter().rev() {
        let mut undone = execution;
        for expected in [&before, &after, &before] {
            let report = restore(&lab, undone).await;
            let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            assert_eq!(&state(&lab).await, expected, "seed {seed}");
            let Some(undo) = report.undo_execution else {
                break;
            };
            undone = undo;
        }
    }
}
