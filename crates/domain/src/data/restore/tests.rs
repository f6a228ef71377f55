//! Tests of plans.

use super::*;
use crate::{
    catalog::{Column, KeyedTable},
    data::{
        revert::RecordedDeletions,
        write::{LedgerAction, LedgerEntry},
    },
};

fn touched(id: &str, before: Option<i64>, exists: bool) -> Touched {
    Touched {
        table: Arc::clone(KeyedTable::named("sample").table()),
        id: id.to_owned(),
        parent: None,
        before,
        exists,
        is_own: exists && before.is_none(),
        changed_since: false,
    }
}

#[test]
fn rows_become_what_they_were_before() {
    let rows = [
        touched("created", None, true),
        touched("deleted", Some(1), false),
        touched("passing", None, false),
        touched("updated", Some(2), true),
    ];
    let plan = RestorePlan::new(rows, &[]);
    let expected = [
        ("created", Undo::Delete),
        ("deleted", Undo::BringBack(1)),
        ("updated", Undo::ChangeBack(2)),
    ];
    assert_eq!(plan.of("sample").collect::<Vec<_>>(), expected);
    assert_eq!(plan.restored("sample"), ["deleted", "updated"]);
    assert_eq!(plan.values("sample", true), [1]);
    assert_eq!(plan.check(OnConflict::Refuse), Ok(()));
}

#[test]
fn what_others_changed_since_is_refused_or_left() {
    let changed = Touched {
        changed_since: true,
        ..touched("b", Some(1), true)
    };
    let mut plan = RestorePlan::new([touched("a", None, true), changed], &[]);
    let refused = plan.check(OnConflict::Refuse).unwrap_err();
    assert_eq!(
        refused,
        ["1 rows of \"sample\" cannot be restored (b): another execution changed them since"]
    );
    assert_eq!(plan.check(OnConflict::Skip), Ok(()));
    let obstacle = Obstacle {
        table: "sample".to_owned(),
        id: "a".to_owned(),
        reason: Reason::Referenced,
    };
    assert!(plan.leave([obstacle.clone()]));
    assert!(!plan.leave([obstacle]), "it has left already");
    assert_eq!(plan.of("sample").count(), 0);
    assert_eq!(plan.report(&RestoreFacts::default()).warnings.len(), 2);
}

#[test]
fn conflicts_of_series_name_their_parents() {
    let chunk = |id: &str| Touched {
        parent: Some("a".to_owned()),
        changed_since: true,
        ..touched(id, Some(1), false)
    };
    let plan = RestorePlan::new([chunk("17"), chunk("18")], &[]);
    assert_eq!(
        plan.check(OnConflict::Refuse).unwrap_err(),
        ["1 series of \"sample\" cannot be restored (a): another execution changed them since"]
    );
}

#[test]
fn replaced_series_without_stored_points_are_warned_of() {
    let entry = |action, ids: &[&str]| LedgerEntry {
        table: "sample".to_owned(),
        action,
        count: 9,
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        stored: Vec::new(),
    };
    let facts = RestoreFacts {
        ledger: vec![
            // `first` had no series before, `stored` has one in the history, `lost` has none any more.
            entry(
                LedgerAction::SeriesWritten,
                &["first", "first", "stored", "lost"],
            ),
            entry(LedgerAction::SeriesReplaced, &["first", "stored", "lost"]),
            entry(LedgerAction::PointsDeleted, &[]),
        ],
        deletions: RecordedDeletions {
            points: BTreeMap::from([("sample".to_owned(), 4)]),
            ..RecordedDeletions::default()
        },
        ..RestoreFacts::default()
    };
    let stored = Touched {
        parent: Some("stored".to_owned()),
        ..touched("17", Some(1), false)
    };
    let written = |parent: &str| Touched {
        parent: Some(parent.to_owned()),
        ..touched(&format!("new {parent}"), None, true)
    };
    let rows = [stored, written("first"), written("stored"), written("lost")];
    let plan = RestorePlan::new(rows, &facts.ledger);
    // What replaced points that are not stored stays: nothing could come back in its place.
    assert_eq!(plan.deleted("sample"), ["new first", "new stored"]);
    let report = plan.report(&facts);
    let lost = |what: &str| {
        format!("not undone: {what} of \"sample\", whose earlier values are not stored")
    };
    assert_eq!(
        report.warnings,
        [
            lost("5 points deleted with their rows"),
            lost("1 replaced series")
        ]
    );
}

#[test]
fn rows_without_stored_values_are_warned_of() {
    let ids = ["a".to_owned(), "b".to_owned()].to_vec();
    let facts = RestoreFacts {
        ledger: vec![LedgerEntry::updated("sample", ids, Vec::new())],
        ..RestoreFacts::default()
    };
    let report = RestorePlan::new([touched("a", Some(1), true)], &[]).report(&facts);
    assert_eq!(
        report.warnings,
        ["not undone: 1 updated rows of \"sample\", whose earlier values are not stored"]
    );
}

#[test]
fn the_series_of_a_created_row_that_stays_stays_with_it() {
    let changed = Touched {
        changed_since: true,
        ..touched("a", None, true)
    };
    let mut curve = Table::clone(KeyedTable::named("curve").table());
    let mut sample = Column::clone(&curve.columns[0]);
    sample.references = Some("sample".to_owned());
    curve.columns = vec![sample].into();
    let curve = Arc::new(curve);
    let chunk = |id: &str, parent: &str| Touched {
        table: Arc::clone(&curve),
        parent: Some(parent.to_owned()),
        ..touched(id, None, true)
    };
    // That of an older row goes, as that of a row which is deleted does.
    let rows = [
        changed,
        touched("b", None, true),
        chunk("1", "a"),
        chunk("2", "b"),
        chunk("3", "old"),
    ];
    let plan = RestorePlan::new(rows, &[]);
    assert_eq!(plan.deleted("curve"), ["2", "3"]);
    assert_eq!(
        plan.report(&RestoreFacts::default()).warnings,
        [
            "1 series of \"curve\" were left as they are (a): the rows that they belong to stay as they are",
            "1 rows of \"sample\" were left as they are (a): another execution changed them since",
        ]
    );
}
