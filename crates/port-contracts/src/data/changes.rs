//! Contract of [`labdata_ports::data::DataStore`]: what an execution changed, on record.

use labdata_domain::{
    data::{
        changes::{ExecutionChanges, Reverted, RowChange, SHOWN_IDS, TableChanges},
        revert::RevertReport,
        write::Mode,
    },
    ids::ExecutionId,
};
use labdata_ports::data::{ChangedRows, RevertError, RevertRequest};
use serde_json::{Value, json};

use crate::{
    data::lab::{DataHarness, Lab, insert, request, series, table_write},
    given::at,
};

/// Makes one test of each clause of [`crate::data::changes`].
#[macro_export]
macro_rules! data_changes_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, data_changes in data::changes:
            rows_and_points_are_counted_by_table_and_kind,
            ids_come_by_pages_in_the_order_of_their_bytes,
            only_the_first_ids_are_shown,
            what_was_reverted_stays_on_record,
            the_first_revert_is_the_one_on_record,
            a_dry_run_of_a_revert_changes_nothing,
            a_dry_run_of_a_revert_is_refused_as_the_revert_is,
            another_organization_sees_no_changes,
        }
    };
}

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

/// A row that was updated twice is one row; points are counted where they are stored.
pub async fn rows_and_points_are_counted_by_table_and_kind<H: DataHarness>(harness: &H) {
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

/// A page starts after the id that ended the one before.
pub async fn ids_come_by_pages_in_the_order_of_their_bytes<H: DataHarness>(harness: &H) {
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
pub async fn only_the_first_ids_are_shown<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let rows: Vec<Value> = (0..=SHOWN_IDS)
        .map(|number| json!({"id": format!("{number:03}"), "name": format!("{number}")}))
        .collect();
    let execution = lab.insert("sample", Value::Array(rows)).await;
    let changes = lab.changes(execution).await;
    let sample = &changes.tables["sample"];
    assert_eq!(sample.created, u64::from(SHOWN_IDS) + 1);
    let shown = &sample.ids[&RowChange::Created];
    assert_eq!(shown.len(), usize::try_from(SHOWN_IDS).unwrap());
    assert_eq!((&*shown[0], &*shown[99]), ("000", "099"));
}

/// The numbers are those of the writes; rows that are gone have no ids among the created ones.
pub async fn what_was_reverted_stays_on_record<H: DataHarness>(harness: &H) {
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
pub async fn the_first_revert_is_the_one_on_record<H: DataHarness>(harness: &H) {
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
pub async fn a_dry_run_of_a_revert_changes_nothing<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let execution = busy_execution(harness, &lab).await;
    let before = lab.changes(execution).await;
    let dry_run = RevertRequest {
        dry_run: true,
        ..lab.reverting(execution)
    };
    let shown = lab.data.revert(lab.organization, &dry_run).await.unwrap();
    assert_eq!(lab.column("sample", "id").await, ["a", "b", "kept", "old"]);
    assert_eq!(lab.count("curve").await, 3);
    assert_eq!(lab.changes(execution).await, before);
    let report = lab.revert(execution).await.unwrap();
    assert_ne!(report, RevertReport::default());
    assert_eq!(shown, report);
}

/// A row of another execution that references a created row blocks both.
pub async fn a_dry_run_of_a_revert_is_refused_as_the_revert_is<H: DataHarness>(harness: &H) {
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
pub async fn another_organization_sees_no_changes<H: DataHarness>(harness: &H) {
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
