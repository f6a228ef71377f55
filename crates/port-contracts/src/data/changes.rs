//! Contract of [`labdata_ports::data::DataStore`]: what an execution changed, on record.

use labdata_domain::{
    data::{
        changes::{ExecutionChanges, Reverted, RowChange, SHOWN_IDS, TableChanges},
        read::RowJson,
        revert::RevertReport,
        write::{KEPT_BYTES, KEPT_ROWS, Mode, OnMatch, TableWrite},
    },
    ids::ExecutionId,
    storage::StoredKind,
};
use labdata_ports::{
    data::{ChangedRows, RevertError, RevertRequest},
    files::FileRepository,
};
use serde_json::{Value, json};

use crate::{
    Itself, Subject,
    data::lab::{DataHarness, Lab, insert, request, series, table_write},
    fixtures::Executions,
    given::at,
};

/// An execution that created, updated and deleted samples and wrote a series.
async fn busy_execution<H: DataHarness>(harness: &H, lab: &Lab) -> ExecutionId {
    let before = json!([
        {"id": "kept", "name": "kept"},
        {"id": "gone", "name": "gone"},
        {"id": "old", "name": "old"},
    ]);
    lab.insert("sample", before).await;
    let open = harness.execution(lab.organization, at(0), None).await.id;
    let created = insert(
        "sample",
        json!([{"id": "b", "name": "b"}, {"id": "a", "name": "a"}]),
    );
    let update = |volume: u32| {
        let rows = json!([{"id": "old", "volume": volume}]);
        table_write(Mode::Update, "sample", rows)
    };
    let delete = table_write(Mode::Delete, "sample", json!([{"id": "gone"}]));
    let curve = series("curve", json!("a"), json!({"time": [0, 1, 2]}));
    lab.write_under(open, request([created, update(1)], [curve]))
        .await
        .unwrap();
    lab.write_under(open, request([update(2), delete], []))
        .await
        .unwrap();
    open
}

async fn ids(
    lab: &Lab,
    execution: ExecutionId,
    change: RowChange,
    after: Option<&str>,
    limit: u32,
) -> Vec<String> {
    let rows = ChangedRows {
        execution,
        table: "sample".to_owned(),
        change,
        after: after.map(str::to_owned),
        limit,
    };
    let ids = lab.data.changed_ids(lab.organization, &rows);
    ids.await.unwrap()
}

/// The rows of `sample`, or of another table, that an execution changed: id, and one column before and
/// after.
async fn stored(
    lab: &Lab,
    execution: ExecutionId,
    table: &str,
    column: &str,
) -> Vec<(RowChange, String, Option<Value>, Option<Value>)> {
    let rows = lab.data.changed_rows(lab.organization, execution, table);
    let rows = rows.await.unwrap().into_iter();
    let value = |row: Option<RowJson>| {
        let row: Value = serde_json::from_str(row?.as_str()).unwrap();
        Some(row[column].clone())
    };
    rows.flat_map(|(change, rows)| rows.into_iter().map(move |row| (change, row)))
        .map(|(change, row)| (change, row.id, value(row.before), value(row.after)))
        .collect()
}

crate::suite!(
    use data::changes as data_changes;

    /// A row that was updated twice is one row; points are counted where they are stored.
    async fn rows_and_points_are_counted_by_table_and_kind(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = busy_execution(harness, &lab).await;
        let changes = lab.changes(execution).await;
        let of = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        let expected = TableChanges {
            created: 2,
            updated: 1,
            deleted: 1,
            series_points: 0,
            ids: [
                (RowChange::Created, of(&["a", "b"])),
                (RowChange::Updated, of(&["old"])),
                (RowChange::Deleted, of(&["gone"])),
            ]
            .into(),
        };
        assert_eq!(changes.tables["sample"], expected);
        let points = TableChanges {
            series_points: 3,
            ..TableChanges::default()
        };
        assert_eq!(changes.tables["curve"], points);
        assert_eq!(changes.tables.len(), 2);
        assert_eq!(changes.reverted, None);
        let idle = harness.execution(lab.organization, at(0), None).await.id;
        assert_eq!(lab.changes(idle).await, ExecutionChanges::default());
    }

    /// They are part of the usage of their organization, as history.
    async fn values_of_changed_rows_are_counted(
        harness: &Itself<impl DataHarness + Subject<dyn FileRepository>>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let files = Subject::<dyn FileRepository>::subject(&**harness);
        let history = async || {
            let usage = files.usage(lab.organization).await.unwrap();
            usage.get(StoredKind::History)
        };
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        assert_eq!(history().await, 0);
        let update = table_write(Mode::Update, "sample", json!([{"id": "a", "volume": 1}]));
        lab.write(request([update], [])).await.unwrap();
        assert!(history().await > 0);
    }

    /// Of a row that was updated twice the values before the first and after the last update; of a created row
    /// those that it has now.
    async fn values_of_changed_rows_are_kept_before_and_after(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = busy_execution(harness, &lab).await;
        let row = |change, id: &str, before, after| (change, id.to_owned(), before, after);
        assert_eq!(
            stored(&lab, execution, "sample", "volume").await,
            [
                row(RowChange::Created, "a", None, Some(Value::Null)),
                row(RowChange::Created, "b", None, Some(Value::Null)),
                row(RowChange::Updated, "old", Some(Value::Null), Some(json!(2))),
                row(RowChange::Deleted, "gone", Some(Value::Null), None),
            ]
        );
        assert_eq!(stored(&lab, execution, "curve", "time").await, []);
        assert_eq!(stored(&lab, execution, "unknown", "id").await, []);
        lab.revert(execution).await.unwrap();
        let after = stored(&lab, execution, "sample", "name").await;
        assert_eq!(
            after,
            [
                row(
                    RowChange::Updated,
                    "old",
                    Some(json!("old")),
                    Some(json!("old"))
                ),
                row(RowChange::Deleted, "gone", Some(json!("gone")), None),
            ],
            "created rows are gone after a revert"
        );
        let other = Lab::named(harness, "another lab").await;
        other.define_tables().await;
        assert_eq!(stored(&other, execution, "sample", "name").await, []);
    }

    /// Each under its own table.
    async fn values_of_rows_that_a_cascade_deleted_are_kept(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        lab.insert("measurement", json!([{"id": "m", "sample": "a"}]))
            .await;
        let delete = TableWrite {
            cascade: true,
            ..table_write(Mode::Delete, "sample", json!([{"id": "a"}]))
        };
        let deleting = lab.write(request([delete], [])).await.unwrap();
        let execution = deleting.execution.unwrap();
        for (table, id, column) in [("sample", "a", "name"), ("measurement", "m", "sample")] {
            let row = (RowChange::Deleted, id.to_owned(), Some(json!("a")), None);
            assert_eq!(stored(&lab, execution, table, column).await, [row]);
        }
    }

    /// Rows that `fill_missing` found filled, and those of dry runs.
    async fn rows_that_a_write_left_as_they_were_are_not_kept(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = json!([{"id": "a", "name": "a", "volume": 1}, {"id": "b", "name": "b"}]);
        lab.insert("sample", rows).await;
        let fill = TableWrite {
            on_match: OnMatch::FillMissing,
            ..table_write(
                Mode::Update,
                "sample",
                json!([{"id": "a", "volume": 2}, {"id": "b", "volume": 2}]),
            )
        };
        let filling = lab.write(request([fill], [])).await.unwrap();
        let row = (
            RowChange::Updated,
            "b".to_owned(),
            Some(Value::Null),
            Some(json!(2)),
        );
        assert_eq!(
            stored(&lab, filling.execution.unwrap(), "sample", "volume").await,
            [row]
        );
    }

    /// As many as people look at.
    async fn of_large_writes_the_first_rows_are_kept(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let ids: Vec<String> = (0..=KEPT_ROWS)
            .map(|number| format!("{number:03}"))
            .collect();
        let named = ids.iter().map(|id| json!({"id": id, "name": id}));
        lab.insert("sample", Value::Array(named.collect())).await;
        let changed = ids.iter().map(|id| json!({"id": id, "volume": 1}));
        let update = table_write(Mode::Update, "sample", Value::Array(changed.collect()));
        let updating = lab.write(request([update], [])).await.unwrap();
        let rows = stored(&lab, updating.execution.unwrap(), "sample", "volume").await;
        assert_eq!(rows.len(), usize::try_from(KEPT_ROWS).unwrap());
        assert_eq!((&*rows[0].1, &*rows[99].1), ("000", "099"));
    }

    /// Values before and after count for themselves.
    async fn long_rows_are_kept_without_values(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let long = "x".repeat(usize::try_from(KEPT_BYTES).unwrap());
        let update = table_write(Mode::Update, "sample", json!([{"id": "a", "name": long}]));
        let updating = lab.write(request([update], [])).await.unwrap();
        let row = (RowChange::Updated, "a".to_owned(), Some(json!("a")), None);
        assert_eq!(
            stored(&lab, updating.execution.unwrap(), "sample", "name").await,
            [row]
        );
    }

    /// A page starts after the id that ended the one before.
    async fn ids_come_by_pages_in_the_order_of_their_bytes(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let names = ["b", "a", "B", "ä", "aa"];
        let rows: Vec<Value> = names
            .iter()
            .map(|name| json!({"id": name, "name": name}))
            .collect();
        let execution = lab.insert("sample", Value::Array(rows)).await;
        let update = table_write(
            Mode::Update,
            "sample",
            json!(names.map(|name| json!({"id": name, "volume": 1}))),
        );
        let updating = lab.write(request([update], [])).await.unwrap();
        for (execution, change) in [
            (execution, RowChange::Created),
            (updating.execution.unwrap(), RowChange::Updated),
        ] {
            let first = ids(&lab, execution, change, None, 3).await;
            assert_eq!(first, ["B", "a", "aa"]);
            let second = ids(&lab, execution, change, Some("aa"), 3).await;
            assert_eq!(second, ["b", "ä"]);
            assert!(ids(&lab, execution, change, Some("ä"), 3).await.is_empty());
            let other = ids(&lab, execution, RowChange::Deleted, None, 3).await;
            assert!(other.is_empty());
        }
    }

    /// The counts have no limit.
    async fn only_the_first_ids_are_shown(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows: Vec<Value> = (0..=SHOWN_IDS)
            .map(|number| json!({"id": format!("{number:03}"), "name": format!("{number}")}))
            .collect();
        let execution = lab.insert("sample", Value::Array(rows)).await;
        let changes = lab.changes(execution).await;
        let sample = &changes.tables["sample"];
        assert_eq!(sample.created, u64::from(SHOWN_IDS) + 1);
        let displayed = &sample.ids[&RowChange::Created];
        assert_eq!(displayed.len(), usize::try_from(SHOWN_IDS).unwrap());
        assert_eq!((&*displayed[0], &*displayed[99]), ("000", "099"));
    }

    /// The numbers are those of the writes; rows that no longer exist have no ids among the created ones.
    async fn what_was_reverted_stays_on_record(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = busy_execution(harness, &lab).await;
        let mut expected = lab.changes(execution).await;
        lab.revert(execution).await.unwrap();
        let sample = expected.tables.get_mut("sample").unwrap();
        sample.ids.insert(RowChange::Created, Vec::new());
        expected.reverted = Some(Reverted {
            at: at(200),
            user: lab.user,
            api_key: Some(lab.api_key),
        });
        assert_eq!(lab.changes(execution).await, expected);
    }

    /// A later revert, which finds what was written since or nothing, leaves it.
    async fn the_first_revert_is_the_one_on_record(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab.insert("sample", json!([{"name": "a"}])).await;
        lab.revert(execution).await.unwrap();
        let later = RevertRequest {
            now: at(300),
            ..lab.reverting(execution)
        };
        lab.data.revert(lab.organization, &later).await.unwrap();
        assert_eq!(lab.changes(execution).await.reverted.unwrap().at, at(200));
    }

    /// It reports what a revert would.
    async fn a_dry_run_of_a_revert_changes_nothing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = busy_execution(harness, &lab).await;
        let before = lab.changes(execution).await;
        let dry_run = RevertRequest {
            dry_run: true,
            ..lab.reverting(execution)
        };
        let displayed = lab.data.revert(lab.organization, &dry_run).await.unwrap();
        assert_eq!(lab.column("sample", "id").await, ["a", "b", "kept", "old"]);
        assert_eq!(lab.count("curve").await, 3);
        assert_eq!(lab.changes(execution).await, before);
        let report = lab.revert(execution).await.unwrap();
        assert_ne!(report, RevertReport::default());
        assert_eq!(displayed, report);
    }

    /// A row of another execution that references a created row blocks both.
    async fn a_dry_run_of_a_revert_is_refused_as_the_revert_is(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = json!([{"id": "a", "name": "a"}]);
        let execution = lab.insert("sample", rows).await;
        lab.insert("measurement", json!([{"sample": "a"}])).await;
        for dry_run in [true, false] {
            let request = RevertRequest {
                dry_run,
                ..lab.reverting(execution)
            };
            match lab.data.revert(lab.organization, &request).await {
                Err(RevertError::Blocked(blockers)) => assert_eq!(blockers[0].count, 1),
                other => panic!("expected a blocker, got {other:?}"),
            }
        }
        assert_eq!(lab.changes(execution).await.reverted, None);
    }

    /// Another organization's execution has changed nothing there.
    async fn another_organization_sees_no_changes(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = busy_execution(harness, &lab).await;
        lab.revert(execution).await.unwrap();
        let other = Lab::named(harness, "another lab").await;
        other.define_tables().await;
        assert_eq!(other.changes(execution).await, ExecutionChanges::default());
        for (_, change) in RowChange::ALL {
            assert!(ids(&other, execution, change, None, 10).await.is_empty());
        }
    }
);
