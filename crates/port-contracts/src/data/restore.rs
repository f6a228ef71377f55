//! Contract of [`labdata_ports::data::DataStore`]: reverts that restore.

use labdata_domain::{
    data::{
        restore::OnConflict,
        revert::RevertReport,
        write::{Mode, SeriesWrite, TableWrite},
    },
    ids::ExecutionId,
};
use labdata_ports::data::{Attribution, Restore, RevertError, RevertRequest};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::sample,
    data::lab::{DataHarness, Lab, insert, request, series, table_write},
    fixtures::Executions,
    given::at,
};

/// Every row and point of the tables of a lab, the server's own columns included.
pub(super) async fn state(lab: &Lab) -> Vec<(String, Vec<Map<String, Value>>)> {
    let mut state = Vec::new();
    for table in ["experiment", "sample", "measurement", "curve"] {
        state.push((table.to_owned(), lab.find(table, json!({})).await));
    }
    state
}

pub(crate) async fn write(
    lab: &Lab,
    tables: impl IntoIterator<Item = TableWrite>,
    series: impl IntoIterator<Item = SeriesWrite>,
) -> ExecutionId {
    let outcome = lab.write(request(tables, series)).await.unwrap();
    outcome.execution.unwrap()
}

pub(super) fn restoring(
    lab: &Lab,
    execution: ExecutionId,
    on_conflict: OnConflict,
) -> RevertRequest {
    let undo = Attribution {
        target: Lab::new_execution("revert"),
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now: at(200),
        source: None,
    };
    RevertRequest {
        restore: Some(Restore { on_conflict, undo }),
        ..lab.reverting(execution)
    }
}

pub(super) async fn restore(
    lab: &Lab,
    execution: ExecutionId,
) -> Result<RevertReport, RevertError> {
    let request = restoring(lab, execution, OnConflict::Refuse);
    lab.data.revert(lab.organization, &request).await
}

pub(super) async fn restore_but_conflicts(lab: &Lab, execution: ExecutionId) -> RevertReport {
    let request = restoring(lab, execution, OnConflict::Skip);
    lab.data.revert(lab.organization, &request).await.unwrap()
}

/// The conflicts of a revert that is refused.
#[track_caller]
pub(super) fn conflicts(result: Result<RevertReport, RevertError>) -> Vec<String> {
    match result {
        Err(RevertError::Conflicts(conflicts)) => conflicts,
        other => panic!("expected conflicts, got {other:?}"),
    }
}

pub(crate) fn update(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Update, table, rows)
}

pub(crate) fn delete(table: &str, rows: Value) -> TableWrite {
    TableWrite {
        cascade: true,
        ..table_write(Mode::Delete, table, rows)
    }
}

/// Two samples with a measurement and a curve each.
pub(super) async fn two_samples(harness: &Itself<impl DataHarness>) -> Lab {
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

crate::suite!(
    use data::restore as data_restore;

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
        let mut executions = vec![execution];
        for expected in [&before, &after, &before, &after] {
            let report = restore(&lab, execution).await.unwrap();
            assert_eq!(report.warnings, [""; 0]);
            assert_eq!(&state(&lab).await, expected);
            execution = report.undo_execution.unwrap();
            // Only what is not undone in turn counts as reverted: every other one, from the last on.
            let mut holds = true;
            for execution in executions.iter().rev() {
                let reverted = lab.changes(*execution).await.reverted;
                assert_eq!(reverted.is_some(), holds);
                holds = !holds;
            }
            if expected == &before {
                let again = restore(&lab, executions[0]).await.unwrap();
                assert_eq!((again.warnings, again.undo_execution), (Vec::new(), None));
            }
            executions.push(execution);
            assert_eq!(lab.execution(execution).await.job_name.as_str(), "revert");
        }
    }

    /// Rows that another execution changed since are refused, or stay with a warning; with a created row its series.
    async fn later_changes_of_others_are_conflicts(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let tables = [
            update(
                "sample",
                json!([{"id": "a", "volume": 9}, {"id": "b", "volume": 9}]),
            ),
            insert("sample", json!([{"id": "new", "name": "new"}])),
        ];
        let curve = series("curve", json!("new"), json!({"time": [7]}));
        let execution = write(&lab, tables, [curve]).await;
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
        let sentences = |what: &str| {
            [
                format!(
                    "1 series of \"curve\" {what} (new): the rows that they belong to stay as they are"
                ),
                format!(
                    "2 rows of \"sample\" {what} (a, new): another execution changed them since"
                ),
            ]
        };
        let refused = conflicts(restore(&lab, execution).await);
        assert_eq!(refused, sentences("cannot be restored"));
        assert_eq!(state(&lab).await, after);
        let report = restore_but_conflicts(&lab, execution).await;
        assert_eq!((report.restored_count, report.deleted_count), (1, 0));
        assert_eq!(
            (report.raws_deleted_count, lab.count("curve").await),
            (0, 5)
        );
        assert_eq!(report.warnings, sentences("were left as they are"));
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

    /// A row that exists again under its key is a conflict, but rows and series that reference it come back.
    async fn what_references_an_existing_row_comes_back(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let execution = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        lab.insert("sample", json!([{"id": "b", "name": "other"}]))
            .await;
        let report = restore_but_conflicts(&lab, execution).await;
        assert_eq!((report.restored_count, report.raws_restored_count), (1, 2));
        assert_eq!(
            report.warnings,
            [
                "1 rows of \"sample\" were left as they are (b): another execution changed them since"
            ]
        );
        assert_eq!(lab.column("sample", "name").await, ["a", "other"]);
        assert_eq!(lab.column("measurement", "sample").await, ["a", "b"]);
    }

    /// Earlier values that the definition does not permit any more are a conflict.
    async fn constraints_since_are_conflicts(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let note = |a: Value, b: Value| {
            update(
                "sample",
                json!([{"id": "a", "note": a}, {"id": "b", "note": b}]),
            )
        };
        let first = write(&lab, [note(json!("x"), json!("x"))], []).await;
        let second = write(&lab, [note(json!("y"), json!("z"))], []).await;
        let third = write(&lab, [delete("sample", json!([{"id": "b"}]))], []).await;
        let mut definition = sample();
        definition.columns[2].is_unique = true;
        definition.columns[2].is_nullable = false;
        lab.define(&definition).await.unwrap();
        restore(&lab, third).await.unwrap();
        let expected = |ids: &str, reason: &str| {
            let count = ids.split(", ").count();
            format!("{count} rows of \"sample\" cannot be restored ({ids}): {reason}")
        };
        let taken = "another row has a value of theirs that must be unique";
        let refused = conflicts(restore(&lab, second).await);
        assert_eq!(refused, [expected("a, b", taken)]);
        let report = restore_but_conflicts(&lab, second).await;
        assert_eq!((report.restored_count, report.warnings.len()), (0, 1));
        write(&lab, [delete("sample", json!([{"id": "a"}]))], []).await;
        // Alone, it may have its value.
        restore(&lab, second).await.unwrap_err();
        assert_eq!(restore_but_conflicts(&lab, second).await.restored_count, 1);
        let missing = "they have no value in a column that needs one by now";
        let refused = conflicts(restore(&lab, first).await);
        assert!(refused.contains(&expected("b", missing)), "{refused:?}");
        let report = restore_but_conflicts(&lab, first).await;
        assert_eq!((report.restored_count, report.warnings.len()), (0, 2));
        assert_eq!(lab.column("sample", "note").await, ["x"]);
    }

    /// A row that the execution deleted and created again becomes what it was, and was not skipped.
    async fn a_row_that_was_created_again_is_not_skipped(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let before = state(&lab).await;
        let open = harness.execution(lab.organization, at(0), None).await.id;
        lab.write_under(open, request([delete("sample", json!([{"id": "b"}]))], []))
            .await
            .unwrap();
        for _ in 0..2 {
            let again = insert(
                "sample",
                json!([{"id": "b", "name": "new"}, {"id": "c", "name": "c"}]),
            );
            lab.write_under(open, request([again], [])).await.unwrap();
            let gone = delete("sample", json!([{"id": "b"}, {"id": "c"}]));
            lab.write_under(open, request([gone], [])).await.unwrap();
        }
        let again = insert("sample", json!([{"id": "b", "name": "new"}]));
        lab.write_under(open, request([again], [])).await.unwrap();
        let report = restore(&lab, open).await.unwrap();
        // What is left of `c` is that it was created.
        assert_eq!((report.restored_count, report.skipped_count), (2, 1));
        assert_eq!(report.warnings, [""; 0]);
        assert_eq!(state(&lab).await, before);
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
        // By its parent, as chunks of series are the store's own.
        assert_eq!(
            conflicts(restore(&lab, execution).await),
            [
                "1 series of \"curve\" cannot be restored (a): another execution has written their series since"
            ]
        );
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
