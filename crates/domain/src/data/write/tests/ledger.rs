//! Outcomes and entries of the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::catalog::KeyedTable;

fn text(value: &str) -> KeyValue {
    KeyValue::Text(value.to_owned())
}

#[test]
fn an_insert_answers_the_keys_of_its_rows() {
    let rows = json!([{ "id": "S1", "name": "a" }, { "id": "S2", "name": "b" }]);
    let plan = plan(&tables([table("sample", &rows)])).unwrap();
    let keys = plan.tables[0].inserted_keys().unwrap();
    let outcome = TableOutcome::inserted(&plan.tables[0], keys);
    assert_eq!((outcome.table.as_str(), outcome.created), ("sample", 2));
    assert_eq!(outcome.ids, [text("S1"), text("S2")]);
    let deleted = TableOutcome::deleted(
        &plan.tables[0],
        Vec::new(),
        &RowKeys::new(),
        &BTreeMap::new(),
    );
    assert_eq!(deleted.table, "sample");
}

#[test]
fn a_row_matches_none_one_or_several() {
    let mut found = RowMatch::<KeyValue>::default();
    let steps = ["a", "b", "c"].map(|key| {
        found.add(text(key));
        found.clone()
    });
    assert_eq!(
        steps,
        [
            RowMatch::One(text("a")),
            RowMatch::Several,
            RowMatch::Several
        ]
    );
}

#[test]
fn actions_of_the_ledger_have_names_that_read_back() {
    for (action, name) in [
        (LedgerAction::Created, "created"),
        (LedgerAction::Updated, "updated"),
        (LedgerAction::Deleted, "deleted"),
        (LedgerAction::SeriesWritten, "series_written"),
        (LedgerAction::SeriesReplaced, "series_replaced"),
        (LedgerAction::PointsDeleted, "points_deleted"),
    ] {
        assert_eq!(action.as_str(), name);
        assert_eq!(action.to_string(), name);
        assert_eq!(LedgerAction::from_name(name), Some(action));
    }
    assert_eq!(LedgerAction::from_name("dropped"), None);
}

#[test]
fn entries_of_the_ledger_count_rows_and_points() {
    let entry = |table: &str, action, count, ids: &[&str]| LedgerEntry {
        table: table.to_owned(),
        action,
        count,
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        stored: Vec::new(),
    };
    assert_eq!(
        LedgerEntry::created("sample", 3),
        entry("sample", LedgerAction::Created, 3, &[])
    );
    assert_eq!(
        LedgerEntry::updated("sample", vec!["a".to_owned(), "b".to_owned()], Vec::new()),
        entry("sample", LedgerAction::Updated, 2, &["a", "b"])
    );
    let rows = RowKeys::from([
        (
            KeyedTable::named("sample"),
            BTreeSet::from([text("a"), text("b")]),
        ),
        (KeyedTable::named("measurement"), BTreeSet::new()),
    ]);
    let points = |points| DeletedSeries {
        points,
        of_others: 0,
    };
    let series = BTreeMap::from([
        ("curve".to_owned(), points(1)),
        ("trace".to_owned(), points(0)),
    ]);
    assert_eq!(
        LedgerEntry::deleted(&rows, &series, BTreeMap::new()),
        [
            entry("sample", LedgerAction::Deleted, 2, &["a", "b"]),
            entry("curve", LedgerAction::PointsDeleted, 1, &[]),
        ]
    );
}
