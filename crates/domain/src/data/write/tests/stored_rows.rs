//! Decisions that depend on stored rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::{plan, series, table, tables};
use crate::{
    catalog::KeyedTable, data::write::Reason, data::write::*, refusal::ErrorCode, scalar::KeyValue,
};

fn key(text: &str) -> KeyValue {
    KeyValue::Text(text.to_owned())
}

fn one(text: &str) -> RowMatch<MatchedRow> {
    changed(text, 0)
}

/// The row of that key, changed that many microseconds after the epoch.
fn changed(text: &str, micros: i64) -> RowMatch<MatchedRow> {
    RowMatch::One(MatchedRow {
        key: key(text),
        updated_at: OffsetDateTime::UNIX_EPOCH + Duration::microseconds(micros),
    })
}

/// The only step of a table write.
fn step(mode: Mode, by: &[&str], rows: &Value) -> TableStep {
    let write = TableWrite {
        mode,
        key: Some(by.iter().map(|name| (*name).to_owned()).collect()),
        ..table("sample", rows)
    };
    plan(&tables([write])).unwrap().tables.remove(0)
}

fn row(row: usize, code: ErrorCode, message: &str) -> Problem {
    Problem::at(format!("tables[0].rows[{row}]"), Reason::new(code, message))
}

#[test]
fn every_row_of_an_update_or_delete_must_match_exactly_one_row() {
    let rows = json!([{ "volume": 1 }, { "volume": 2 }, { "volume": 3 }, { "volume": 4 }]);
    for mode in [Mode::Update, Mode::Delete] {
        let step = step(mode, &["volume"], &rows);
        let found = vec![RowMatch::None, one("a"), RowMatch::Several, one("a")];
        assert_eq!(
            step.assign_matches(found),
            Err(vec![
                row(
                    0,
                    ErrorCode::RowNotFound,
                    "the key matches no row of \"sample\""
                ),
                row(
                    2,
                    ErrorCode::KeyAmbiguous,
                    "the key matches several rows of \"sample\""
                ),
                row(
                    3,
                    ErrorCode::DuplicateKey,
                    "matches the same row of \"sample\" as rows[1]"
                ),
            ])
        );
        let found = ["d", "c", "b", "a"].map(one).to_vec();
        let matched = step.assign_matches(found).unwrap();
        assert_eq!(matched.keys, ["d", "c", "b", "a"].map(key));
        assert_eq!(matched.matched.rows(), [0, 1, 2, 3]);
        assert_eq!(matched.created.rows(), [0_usize; 0]);
    }
}

#[test]
fn an_upsert_creates_what_matches_nothing_under_its_given_or_generated_key() {
    let rows = json!([
        { "name": "a" }, { "name": "b", "id": "given" }, { "name": "c" }, { "name": "d", "id": "D" },
    ]);
    let step = step(Mode::Upsert, &["name"], &rows);
    let found = vec![RowMatch::None, RowMatch::None, one("C"), one("D")];
    let matched = step.assign_matches(found).unwrap();
    let Action::Upsert { new_keys, .. } = &step.action else {
        panic!("{step:?} is no upsert");
    };
    let generated = new_keys.key(0).unwrap();
    assert_eq!(matched.keys, [generated, key("given"), key("C"), key("D")]);
    assert_eq!(matched.matched.rows(), [2, 3]);
    assert_eq!(matched.created.rows(), [0, 1]);
}

#[test]
fn upserts_by_keys_that_are_not_unique_could_create_a_row_twice() {
    let rows = json!([{ "name": "a", "volume": 1, "id": "A" }]);
    for (mode, by, expected) in [
        (Mode::Upsert, &["volume"][..], true),
        (Mode::Update, &["volume"], false),
        (Mode::Upsert, &["volume", "name"], false),
        (Mode::Upsert, &["id"], false),
    ] {
        assert_eq!(step(mode, by, &rows).may_create_twice(), expected, "{by:?}");
    }
}

#[test]
fn an_upsert_reports_every_problem_of_its_rows_in_their_order() {
    let rows = json!([
        { "volume": 1, "id": "new" }, { "volume": 2, "name": "b" }, { "volume": 3 },
        { "volume": 4, "name": "d" },
    ]);
    let step = step(Mode::Upsert, &["volume"], &rows);
    let found = vec![one("old"), RowMatch::Several, RowMatch::None, one("old")];
    let message = "matches no row, and cannot be created: the required column \"name\" is missing";
    assert_eq!(
        step.assign_matches(found),
        Err(vec![
            Problem::at(
                "tables[0].rows[0].id",
                Reason::new(
                    ErrorCode::ColumnNotWritable,
                    "the row that matches has the key \"old\", which cannot be changed"
                )
            ),
            row(
                1,
                ErrorCode::KeyAmbiguous,
                "the key matches several rows of \"sample\""
            ),
            row(2, ErrorCode::MissingValue, message),
            row(
                3,
                ErrorCode::DuplicateKey,
                "matches the same row of \"sample\" as rows[0]"
            ),
        ])
    );
}

#[test]
fn a_row_that_was_changed_since_it_was_read_is_a_problem() {
    let read = "1970-01-01T00:00:00.000002Z";
    let rows = json!([
        { "id": "a", "_if_updated_at": read },
        { "id": "b", "_if_updated_at": "1970-01-01T01:00:00.000002+01:00" },
        { "id": "c", "_if_updated_at": null },
        { "id": "d" },
    ]);
    for mode in [Mode::Update, Mode::Upsert, Mode::Delete] {
        let rows = match mode {
            Mode::Upsert => json!([
                { "id": "a", "name": "a", "_if_updated_at": read },
                { "id": "b", "name": "b", "_if_updated_at": read },
                { "id": "c", "name": "c", "_if_updated_at": null },
                { "id": "d", "name": "d" },
            ]),
            _ => rows.clone(),
        };
        let step = step(mode, &["id"], &rows);
        let found = ["a", "b", "c", "d"].map(|id| changed(id, 2));
        assert!(step.assign_matches(found.to_vec()).is_ok());
        let found = ["a", "b", "c", "d"].map(|id| changed(id, if id == "b" { 2 } else { 3 }));
        let message = "the row of \"sample\" that matches has been changed since: at 1970-01-01T00:00:00.000003Z, \
             not 1970-01-01T00:00:00.000002Z; read it again";
        assert_eq!(
            step.assign_matches(found.to_vec()),
            Err(vec![row(0, ErrorCode::ChangedSince, message)])
        );
    }
}

#[test]
fn an_upsert_creates_a_row_that_expects_a_change_but_matches_nothing() {
    let rows = json!([{ "name": "a", "_if_updated_at": "2026-03-01T12:00:00Z" }]);
    let step = step(Mode::Upsert, &["name"], &rows);
    let matched = step.assign_matches(vec![RowMatch::None]).unwrap();
    assert_eq!(matched.created.rows(), [0]);
}

#[test]
fn the_time_of_the_last_change_is_a_datetime_of_a_row_that_matches() {
    let problem = |code, message: &str| {
        let path = "tables[0].rows[0]._if_updated_at";
        Some(vec![Problem::at(path, Reason::new(code, message))])
    };
    let write = |mode, time: Value| {
        let rows = json!([{ "id": "a", "name": "a", "_if_updated_at": time }]);
        let write = TableWrite {
            mode,
            ..table("sample", &rows)
        };
        plan(&tables([write])).err()
    };
    let no_datetime = "must be a datetime with its offset (RFC 3339), such as \"2026-03-01T12:00:00Z\", \
         not a string of another form";
    for mode in [Mode::Update, Mode::Upsert] {
        assert_eq!(
            write(mode, json!("yesterday")),
            problem(ErrorCode::WrongType, no_datetime)
        );
    }
    assert_eq!(
        write(Mode::Insert, json!("2026-03-01T12:00:00Z")),
        problem(
            ErrorCode::ColumnNotWritable,
            "an insert matches no row that could have been changed"
        )
    );
    assert_eq!(write(Mode::Insert, Value::Null), None);
}

#[test]
fn problems_of_stored_rows_are_counted_past_one_hundred() {
    let rows: Vec<Value> = (0..150).map(|number| json!({ "volume": number })).collect();
    let step = step(Mode::Update, &["volume"], &Value::from(rows));
    let problems = step.assign_matches(vec![RowMatch::None; 150]).unwrap_err();
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems[100].message, "and 50 more problems");
}

#[test]
fn rows_that_are_referenced_are_deleted_by_a_cascade_or_after_what_references_them() {
    let step = step(
        Mode::Delete,
        &["name"],
        &json!([{ "name": "a" }, { "name": "b" }]),
    );
    let reference = |table: &str, own: &str, target: &str| StoredReference {
        table: KeyedTable::named(table),
        key: key(own),
        target: key(target),
    };
    let keys = ["A", "B"].map(key);
    assert_eq!(
        step.check_references(
            &keys,
            [
                reference("step", "S1", "B"),
                reference("measurement", "M1", "B"),
                reference("measurement", "M2", "B"),
                // One row by two references.
                reference("measurement", "M2", "B"),
                reference("measurement", "M3", "A"),
                // Deleted with the row that it references.
                reference("sample", "A", "B"),
                reference("measurement", "B", "A"),
            ]
        ),
        Err(vec![
            row(
                0,
                ErrorCode::RowReferenced,
                "\"A\" is referenced by 2 rows of \"measurement\"; delete them first, or set cascade"
            ),
            row(
                1,
                ErrorCode::RowReferenced,
                "\"B\" is referenced by 2 rows of \"measurement\"; delete them first, or set cascade"
            ),
            row(
                1,
                ErrorCode::RowReferenced,
                "\"B\" is referenced by 1 row of \"step\"; delete them first, or set cascade"
            ),
        ])
    );
    assert_eq!(
        step.check_references(&keys, [reference("sample", "B", "A")]),
        Ok(())
    );
}

#[test]
fn rows_and_points_that_go_with_a_delete_are_counted_per_table() {
    let delete = |cascade| {
        let write = TableWrite {
            mode: Mode::Delete,
            cascade,
            ..table("sample", &json!([{ "id": "a" }]))
        };
        plan(&tables([write])).unwrap().tables.remove(0)
    };
    let deleted = |rows: &[(&str, &[&str])]| -> RowKeys {
        rows.iter()
            .map(|(table, keys)| {
                let keys = keys.iter().map(|text| key(text)).collect();
                (KeyedTable::named(table), keys)
            })
            .collect()
    };
    let points = |points| {
        BTreeMap::from([(
            "curve".to_owned(),
            DeletedSeries {
                points,
                of_others: 0,
            },
        )])
    };
    let outcome = |cascade, rows: &[(&str, &[&str])], series| {
        TableOutcome::deleted(
            &delete(cascade),
            vec![key("a")],
            &deleted(rows),
            &points(series),
        )
    };
    let all: &[(&str, &[&str])] = &[("sample", &["a", "b"]), ("measurement", &["m", "n"])];
    let cascaded = outcome(true, all, 5);
    assert_eq!((cascaded.deleted, cascaded.ids), (1, vec![key("a")]));
    let counts = [("curve", 5), ("measurement", 2), ("sample", 1)];
    assert_eq!(
        cascaded.cascade_deleted,
        Some(
            counts
                .map(|(table, count)| (table.to_owned(), count))
                .into()
        )
    );
    let only: &[(&str, &[&str])] = &[("sample", &["a"])];
    assert_eq!(
        outcome(true, only, 0).cascade_deleted,
        Some(BTreeMap::new())
    );
    assert_eq!(outcome(false, only, 0).cascade_deleted, None);
    assert_eq!(
        outcome(false, only, 3).cascade_deleted,
        Some(BTreeMap::from([("curve".to_owned(), 3)]))
    );
}

/// A plan of an upserted sample, an updated one, and a curve for each, by label.
fn plan_with_late_parents() -> WritePlan {
    let by_name = |mode, label: &str| TableWrite {
        mode,
        key: Some(vec!["name".to_owned()]),
        ..table("sample", &json!([{ "_ref": label, "name": label }]))
    };
    let curve = |parent: Value| series("curve", &parent, &json!({ "od": [1.0] }));
    plan(&WriteRequest {
        tables: vec![by_name(Mode::Upsert, "a"), by_name(Mode::Update, "b")],
        series: vec![curve(json!("@a")), curve(json!("@b")), curve(json!("C"))],
        ..WriteRequest::default()
    })
    .unwrap()
}

#[test]
fn rows_that_are_matched_by_another_key_may_be_referenced_by_the_ids_that_they_give() {
    for mode in [Mode::Upsert, Mode::Update] {
        let write = TableWrite {
            mode,
            key: Some(vec!["name".to_owned()]),
            ..table("sample", &json!([{ "id": "new", "name": "a" }]))
        };
        let request = WriteRequest {
            tables: vec![write],
            series: vec![series("curve", &json!("new"), &json!({ "od": [1.0] }))],
            ..WriteRequest::default()
        };
        let catalog = super::catalog();
        // The row may not be stored yet, so the database is not asked for it.
        assert!(check(&request, &catalog).questions().is_empty(), "{mode:?}");
    }
}

fn outcomes(keys: [&str; 2]) -> Vec<TableOutcome> {
    keys.map(|text| TableOutcome {
        ids: vec![key(text)],
        ..TableOutcome::default()
    })
    .into()
}

#[test]
fn labels_that_turn_out_to_be_one_row_have_one_series() {
    let plan = plan_with_late_parents();
    assert_eq!(
        plan.series_parents(&outcomes(["A", "B"])),
        Ok(["A", "B", "C"].map(key).to_vec())
    );
    let second = |index: usize, first: usize| {
        Problem::at(
            format!("series[{index}].parent"),
            Reason::new(
                ErrorCode::DuplicateSeries,
                format!(
                    "series[{first}] writes the same parent's series in \"curve\"; put all points into one"
                ),
            ),
        )
    };
    assert_eq!(
        plan.series_parents(&outcomes(["C", "C"])),
        Err(vec![second(1, 0), second(2, 0)])
    );
    assert_eq!(
        plan.series_parents(&[]),
        Err([0, 1]
            .map(|index| Problem::at(
                format!("series[{index}].parent"),
                Reason::new(
                    ErrorCode::ReferenceNotFound,
                    "the parent row was not written"
                )
            ))
            .to_vec())
    );
}

#[test]
fn labels_stand_for_the_keys_of_their_rows() {
    let plan = plan_with_late_parents();
    let mut outcome = WriteOutcome {
        tables: outcomes(["A", "B"]),
        ..WriteOutcome::default()
    };
    outcome.set_refs(&plan);
    let refs = [("a", "A"), ("b", "B")];
    assert_eq!(
        outcome.refs,
        refs.map(|(label, key)| (label.to_owned(), key.to_owned()))
            .into()
    );
}

#[test]
fn series_make_one_entry_per_table_and_action() {
    let series = |table: &str, parent: &str, points_written, points_replaced| SeriesOutcome {
        table: table.to_owned(),
        parent: key(parent),
        points_written,
        points_replaced,
    };
    let entry = |table: &str, action, count, ids: &[&str]| LedgerEntry {
        table: table.to_owned(),
        action,
        count,
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        stored: Vec::new(),
    };
    let entries = LedgerEntry::of_series(&[
        series("trace", "a", 3, 0),
        series("curve", "b", 5, 2),
        series("curve", "c", 7, 0),
    ]);
    assert_eq!(
        entries,
        [
            entry("curve", LedgerAction::SeriesWritten, 12, &["b", "c"]),
            entry("trace", LedgerAction::SeriesWritten, 3, &["a"]),
            entry("curve", LedgerAction::SeriesReplaced, 2, &["b"]),
        ]
    );
}
