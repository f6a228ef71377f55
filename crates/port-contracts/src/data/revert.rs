//! Contract of [`labdata_ports::data::DataStore`]: reverting an execution.

use labdata_domain::{
    catalog::TableDefinition,
    data::{
        revert::{Blocker, RevertReport},
        write::{Mode, TableWrite},
    },
    executions::FinalStatus,
    ids::ExecutionId,
};
use labdata_ports::{PortError, data::RevertError};
use serde_json::json;

use crate::{
    Itself,
    catalog::definitions::{curated, reference},
    data::{
        lab::{DataHarness, Lab, insert, labelled_sample, request, series, table_write},
        restore::{delete, restore},
    },
    fixtures::Executions,
    given::{self, at},
};

/// The report without warnings.
const fn counts(report: &RevertReport) -> (u64, u64, u64) {
    (
        report.deleted_count,
        report.raws_deleted_count,
        report.skipped_count,
    )
}

/// Writes under a new execution, which succeeds.
async fn write(
    lab: &Lab,
    tables: impl IntoIterator<Item = TableWrite>,
    series: impl IntoIterator<Item = labdata_domain::data::write::SeriesWrite>,
) -> ExecutionId {
    lab.write(request(tables, series))
        .await
        .unwrap()
        .execution
        .unwrap()
}

/// Fails unless there is no such execution.
#[track_caller]
fn assert_not_found(result: Result<RevertReport, RevertError>) {
    match result {
        Err(RevertError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
}

crate::suite!(
    use data::revert as data_revert;

    /// All rows of all tables that the execution created are deleted, with their series.
    async fn created_rows_and_their_points_go(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let tables = [
            insert(
                "sample",
                json!([labelled_sample("a"), labelled_sample("b")]),
            ),
            insert("measurement", json!([{"sample": "@a"}])),
            insert("experiment", json!([{"name": "growth"}])),
        ];
        let execution = write(
            &lab,
            tables,
            [series("curve", json!("@a"), json!({"time": [0, 1, 2]}))],
        )
        .await;
        let report = lab.revert(execution).await.unwrap();
        assert_eq!(
            report,
            RevertReport {
                deleted_count: 4,
                raws_deleted_count: 3,
                ..RevertReport::default()
            }
        );
        for table in ["sample", "measurement", "experiment", "curve"] {
            assert_eq!(lab.count(table).await, 0, "{table}");
        }
    }

    /// Only what this execution wrote goes, also where several wrote to the same tables.
    async fn rows_of_other_executions_stay(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let sample = |name: &str| [insert("sample", json!([labelled_sample(name)]))];
        let points = |name: &str| {
            [series(
                "curve",
                json!(format!("@{name}")),
                json!({"time": [0, 1]}),
            )]
        };
        write(&lab, sample("a"), points("a")).await;
        let execution = write(&lab, sample("b"), points("b")).await;
        write(&lab, sample("c"), points("c")).await;
        assert_eq!(counts(&lab.revert(execution).await.unwrap()), (1, 2, 0));
        assert_eq!(lab.column("sample", "name").await, ["a", "c"]);
        assert_eq!(lab.count("curve").await, 4);
    }

    /// Rows of one execution are deleted in any order of references, cycles included.
    async fn rows_that_reference_each_other_go_together(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let step: TableDefinition = curated("step", vec![reference("step"), reference("sample")]);
        lab.define(&step).await.unwrap();
        let open = harness.execution(lab.organization, at(0), None).await.id;
        let rows = json!([{"id": "1", "_ref": "1"}, {"id": "2", "step": "@1", "_ref": "2"}, {"id": "3", "step": "@2"}]);
        lab.write_under(open, request([insert("step", rows)], []))
            .await
            .unwrap();
        // A circle.
        let circle = table_write(Mode::Update, "step", json!([{"id": "1", "step": "3"}]));
        lab.write_under(open, request([circle], [])).await.unwrap();
        assert_eq!(lab.revert(open).await.unwrap().deleted_count, 3);
        assert_eq!(lab.count("step").await, 0);
    }

    /// An execution that wrote nothing can be reverted, to no effect.
    async fn an_execution_that_wrote_nothing_reverts_to_zeros(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = harness.execution(lab.organization, at(0), None).await;
        assert_eq!(
            lab.revert(execution.id).await.unwrap(),
            RevertReport::default()
        );
    }

    /// A second revert finds nothing.
    async fn a_second_revert_returns_zeros(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = [insert("sample", json!([labelled_sample("a")]))];
        let execution = write(
            &lab,
            rows,
            [series("curve", json!("@a"), json!({"time": [0]}))],
        )
        .await;
        lab.revert(execution).await.unwrap();
        assert_eq!(counts(&lab.revert(execution).await.unwrap()), (0, 0, 0));
    }

    /// A plain revert deletes rows that an undo of an earlier revert brought back, and then finds none.
    async fn rows_that_an_undo_brought_back_are_reverted_again(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert(
            "sample",
            json!([labelled_sample("a"), labelled_sample("b")]),
        );
        let curve = series("curve", json!("@a"), json!({"time": [0, 1, 2]}));
        let execution = write(&lab, [rows], [curve]).await;
        let reverted = restore(&lab, execution).await.unwrap();
        restore(&lab, reverted.undo_execution.unwrap())
            .await
            .unwrap();
        assert_eq!(lab.count("sample").await, 2);
        let report = lab.revert(execution).await.unwrap();
        let expected = RevertReport {
            deleted_count: 2,
            raws_deleted_count: 3,
            ..RevertReport::default()
        };
        assert_eq!(report, expected);
        assert_eq!(
            (lab.count("sample").await, lab.count("curve").await),
            (0, 0)
        );
        assert_eq!(
            lab.revert(execution).await.unwrap(),
            RevertReport::default()
        );
    }

    /// A second revert takes a row that was deleted when the first one skipped it, and was restored since.
    async fn rows_that_another_revert_restored_are_reverted(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let deletion = write(&lab, [delete("sample", json!([{"id": "a"}]))], []).await;
        assert_eq!(lab.revert(execution).await.unwrap().skipped_count, 1);
        assert_eq!(restore(&lab, deletion).await.unwrap().restored_count, 1);
        let report = lab.revert(execution).await.unwrap();
        assert_eq!((report.deleted_count, report.skipped_count), (1, 0));
        assert_eq!(lab.count("sample").await, 0);
    }

    /// Values and keys of reverted rows are free again.
    async fn what_was_reverted_can_be_written_again(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        for _ in 0..2 {
            let execution = lab
                .insert("sample", json!([{"id": "a", "name": "a"}]))
                .await;
            assert_eq!(counts(&lab.revert(execution).await.unwrap()), (1, 0, 0));
        }
    }

    /// An execution whose revert was undone can be reverted again, with a new time, and also without its earlier values.
    async fn what_was_undone_can_be_reverted_again(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let new = insert("sample", json!([{"id": "new", "name": "new"}]));
        let execution = write(&lab, [new], []).await;
        let undo = restore(&lab, execution).await.unwrap().undo_execution;
        restore(&lab, undo.unwrap()).await.unwrap();
        assert_eq!(lab.changes(execution).await.reverted, None);
        let report = lab.revert(execution).await.unwrap();
        assert_eq!(report.deleted_count, 1);
        assert!(lab.changes(execution).await.reverted.is_some());
    }

    /// A revert does not end an execution: it may write on, and what it writes then is reverted then.
    async fn a_running_execution_stays_running(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let open = harness.execution(lab.organization, at(0), None).await;
        for name in ["a", "b"] {
            let rows = insert("sample", json!([{ "name": name }]));
            lab.write_under(open.id, request([rows], [])).await.unwrap();
            assert_eq!(counts(&lab.revert(open.id).await.unwrap()), (1, 0, 0));
            assert_eq!(lab.execution(open.id).await, open);
        }
        lab.executions
            .close(lab.organization, open.id, FinalStatus::Failed, at(150))
            .await
            .unwrap();
        assert_eq!(counts(&lab.revert(open.id).await.unwrap()), (0, 0, 0));
    }

    /// A row of another execution that references a created row stops the revert; nothing changes.
    async fn rows_of_other_executions_that_reference_block(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert(
                "sample",
                json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
            )
            .await;
        let other = lab
            .insert(
                "measurement",
                json!([{"id": "m1", "sample": "a"}, {"id": "m2", "sample": "a"}]),
            )
            .await;
        match lab.revert(execution).await {
            Err(RevertError::Blocked(blockers)) => {
                let expected = Blocker {
                    table: "measurement".to_owned(),
                    count: 2,
                    ids: vec!["m1".to_owned(), "m2".to_owned()],
                };
                assert_eq!(blockers, [expected]);
            }
            result => panic!("expected a blocker, got {result:?}"),
        }
        assert_eq!(
            (lab.count("sample").await, lab.count("measurement").await),
            (2, 2)
        );
        lab.revert(other).await.unwrap();
        assert_eq!(counts(&lab.revert(execution).await.unwrap()), (2, 0, 0));
    }

    /// A series that another execution wrote to a created row goes with the row, with a warning.
    async fn points_of_another_execution_go_with_a_warning(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        write(
            &lab,
            [],
            [series("curve", json!("a"), json!({"time": [0, 1]}))],
        )
        .await;
        let report = lab.revert(execution).await.unwrap();
        assert_eq!(counts(&report), (1, 2, 0));
        assert_eq!(
            report.warnings,
            ["1 series of \"curve\" that another execution wrote were deleted with their rows"]
        );
        assert_eq!(lab.count("curve").await, 0);
    }

    /// A series that the execution wrote to a row of another one is not undone.
    async fn a_series_of_an_earlier_row_stays(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let execution = write(
            &lab,
            [],
            [series("curve", json!("a"), json!({"time": [0, 1]}))],
        )
        .await;
        let report = lab.revert(execution).await.unwrap();
        assert_eq!(counts(&report), (0, 0, 0));
        assert_eq!(
            report.warnings,
            ["not undone: 1 series written to rows that existed before of \"curve\""]
        );
        assert_eq!(lab.count("curve").await, 2);
    }

    /// Created rows that no longer exist are counted as skipped.
    async fn rows_that_no_longer_exist_are_skipped(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows =
            json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}, {"id": "c", "name": "c"}]);
        let execution = lab.insert("sample", rows).await;
        write(
            &lab,
            [table_write(
                Mode::Delete,
                "sample",
                json!([{"id": "a"}, {"id": "c"}]),
            )],
            [],
        )
        .await;
        assert_eq!(counts(&lab.revert(execution).await.unwrap()), (1, 0, 2));
        assert_eq!(counts(&lab.revert(execution).await.unwrap()), (0, 0, 0));
    }

    /// Of a row that the execution created and deleted, with its series, nothing is left to undo, and so of one that it
    /// created again.
    async fn rows_of_its_own_that_are_gone_are_no_warnings(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let open = harness.execution(lab.organization, at(0), None).await.id;
        let rows = || {
            insert(
                "sample",
                json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
            )
        };
        let curve = series("curve", json!("a"), json!({"time": [0, 1]}));
        let update = table_write(Mode::Update, "sample", json!([{"id": "a", "volume": 1}]));
        let gone = TableWrite {
            cascade: true,
            ..table_write(Mode::Delete, "sample", json!([{"id": "a"}, {"id": "b"}]))
        };
        for (tables, series) in [
            (vec![rows()], vec![curve]),
            (vec![update], vec![]),
            (vec![gone], vec![]),
        ] {
            lab.write_under(open, request(tables, series))
                .await
                .unwrap();
        }
        let again = insert("sample", json!([{"id": "a", "name": "a"}]));
        lab.write_under(open, request([again], [])).await.unwrap();
        let report = lab.revert(open).await.unwrap();
        assert_eq!(counts(&report), (1, 0, 1));
        assert_eq!(report.warnings, [""; 0]);
    }

    /// Created rows that another execution changed are deleted all the same, with a warning.
    async fn rows_that_another_execution_changed_are_deleted_with_a_warning(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert(
                "sample",
                json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
            )
            .await;
        write(
            &lab,
            [table_write(
                Mode::Update,
                "sample",
                json!([{"id": "a", "volume": 1}]),
            )],
            [],
        )
        .await;
        let report = lab.revert(execution).await.unwrap();
        assert_eq!(counts(&report), (2, 0, 0));
        assert_eq!(
            report.warnings,
            ["1 rows of \"sample\" were deleted although another execution had changed them since"]
        );
        assert_eq!(lab.count("sample").await, 0);
    }

    /// Changes that cannot be undone remain, and a warning names their table.
    async fn updates_and_deletes_are_warned_of(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert(
            "sample",
            json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
        )
        .await;
        let curves =
            ["a", "b"].map(|sample| series("curve", json!(sample), json!({"time": [1, 2]})));
        write(&lab, [], curves).await;
        let not_undone = |what: &str| format!("not undone: {what}");
        for (mode, rows, expected) in [
            (
                Mode::Update,
                json!([{"id": "a", "volume": 1}]),
                vec![not_undone("1 updated rows of \"sample\"")],
            ),
            (
                Mode::Delete,
                json!([{"id": "b"}]),
                vec![
                    not_undone("2 points deleted with their rows of \"curve\""),
                    not_undone("1 deleted rows of \"sample\""),
                ],
            ),
        ] {
            let execution = write(&lab, [table_write(mode, "sample", rows)], []).await;
            let report = lab.revert(execution).await.unwrap();
            assert_eq!(counts(&report), (0, 0, 0));
            assert_eq!(report.warnings, expected);
        }
        assert_eq!(lab.column("sample", "volume").await, [1.0]);
    }

    /// An id that no execution has is not found.
    async fn an_unknown_execution_is_not_found(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        assert_not_found(lab.revert(ExecutionId::new(given::uuid())).await);
    }

    /// Another organization's execution is answered like one that does not exist, and retains its rows.
    async fn an_execution_of_another_organization_is_not_found(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab.insert("sample", json!([{"name": "a"}])).await;
        let other = Lab::named(harness, "another lab").await;
        other.define_tables().await;
        assert_not_found(other.revert(execution).await);
        assert_eq!(lab.count("sample").await, 1);
    }

    /// The counts of concurrent reverts add up to the rows that existed.
    async fn of_racing_reverts_each_row_counts_once(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = [insert(
            "sample",
            json!([labelled_sample("a"), labelled_sample("b")]),
        )];
        let execution = write(
            &lab,
            rows,
            [series("curve", json!("@a"), json!({"time": [0, 1]}))],
        )
        .await;
        let reports = futures::future::join_all((0..4).map(|_| lab.revert(execution))).await;
        let total = reports
            .iter()
            .map(|report| counts(report.as_ref().unwrap()))
            .fold((0, 0, 0), |sum, counts| {
                (sum.0 + counts.0, sum.1 + counts.1, sum.2 + counts.2)
            });
        assert_eq!(total, (2, 2, 0));
    }
);
