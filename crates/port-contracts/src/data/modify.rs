//! Contract of [`labdata_ports::data::DataStore`]: updates and upserts.

use labdata_domain::{
    data::write::{Mode, OnMatch, Problem, Reason, TableOutcome, TableWrite},
    refusal::ErrorCode,
    scalar::DataType,
    timestamp,
};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, curated, reference, required},
    data::lab::{
        DataHarness, Lab, assert_problems_are, insert, labelled_sample, repeated, request, series,
        table_write, writing_time,
    },
    given::at,
};

/// A lab with three samples: `a` (1, "x"), `b` (1, null) and `c` (3, null), whose ids are their
/// names.
pub(crate) async fn lab_with_samples<H: DataHarness>(harness: &H) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let rows = json!([
        {"id": "a", "name": "a", "volume": 1, "note": "x"},
        {"id": "b", "name": "b", "volume": 1},
        {"id": "c", "name": "c", "volume": 3},
    ]);
    lab.insert("sample", rows).await;
    lab
}

pub(crate) fn update(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Update, table, rows)
}

pub(crate) fn upsert(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Upsert, table, rows)
}

pub(crate) fn delete(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Delete, table, rows)
}

pub(crate) fn by(key: &[&str], write: TableWrite) -> TableWrite {
    TableWrite {
        key: Some(key.iter().map(|name| (*name).to_owned()).collect()),
        ..write
    }
}

/// Applies one table write, which succeeds.
pub(crate) async fn write(lab: &Lab, write: TableWrite) -> TableOutcome {
    lab.write(request([write], []))
        .await
        .unwrap()
        .tables
        .remove(0)
}

/// Fails unless a table write is refused with exactly these problems and leaves samples alone.
async fn assert_refused(lab: &Lab, write: TableWrite, expected: &[Problem]) {
    let before = lab.find("sample", json!({})).await;
    assert_problems_are(lab.write(request([write], [])).await, expected);
    assert_eq!(lab.find("sample", json!({})).await, before);
}

/// A problem at a row of the first table write.
fn at_row(row: usize, code: ErrorCode, message: &str) -> Problem {
    Problem::at(format!("tables[0].rows[{row}]"), Reason::new(code, message))
}

pub(crate) fn ids(outcome: &TableOutcome) -> Vec<String> {
    outcome.ids.iter().map(ToString::to_string).collect()
}

crate::suite!(
    use data::modify as data_modify;

    /// Columns that a row gives are set, null included; columns that it leaves out stay.
    async fn an_update_changes_what_its_rows_give(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let rows = json!([{"id": "c", "volume": 4}, {"id": "a", "note": null}]);
        let outcome = write(&lab, update("sample", rows)).await;
        assert_eq!(
            (outcome.created, outcome.updated, outcome.deleted),
            (0, 2, 0)
        );
        assert_eq!(ids(&outcome), ["c", "a"]);
        assert_eq!(lab.column("sample", "volume").await, [1.0, 1.0, 4.0]);
        assert_eq!(lab.column("sample", "note").await, vec![Value::Null; 3]);
        assert_eq!(lab.column("sample", "name").await, ["a", "b", "c"]);
    }

    /// Rows are matched by the columns that are named, references by id or lookup included.
    async fn an_update_may_match_by_any_columns(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let outcome = write(
            &lab,
            by(
                &["name"],
                update("sample", json!([{"name": "b", "volume": 9}])),
            ),
        )
        .await;
        assert_eq!(ids(&outcome), ["b"]);
        lab.insert(
            "measurement",
            json!([{"sample": "a", "value": 1}, {"sample": "b", "value": 1}]),
        )
        .await;
        lab.define(&{
            let mut wider = crate::catalog::definitions::measurement();
            wider.columns.push(column("unit", DataType::String));
            wider
        })
        .await
        .unwrap();
        let rows = json!([{"sample": {"name": "b"}, "value": 1, "unit": "AU"}]);
        let outcome = write(&lab, by(&["sample", "value"], update("measurement", rows))).await;
        assert_eq!(outcome.updated, 1);
        assert_eq!(
            lab.find("measurement", json!({"unit": "AU", "sample": "b"}))
                .await
                .len(),
            1
        );
        assert_eq!(
            lab.find("measurement", json!({"unit__isnull": true}))
                .await
                .len(),
            1
        );
    }

    /// An update changes `updated_at`, but not when and by which execution the row was created.
    async fn an_update_notes_its_time_only(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let before = lab.find("sample", json!({"id": "a"})).await.remove(0);
        let plan = lab
            .plan(request(
                [update("sample", json!([{"id": "a", "volume": 2}]))],
                [],
            ))
            .await
            .unwrap();
        lab.apply(&plan, Lab::new_execution("later"), at(500))
            .await
            .unwrap();
        let after = lab.find("sample", json!({"id": "a"})).await.remove(0);
        assert_eq!(
            after["updated_at"].as_str().and_then(timestamp::parse),
            Some(at(500))
        );
        for name in ["created_at", "created_by_execution_id"] {
            assert_eq!(after[name], before[name]);
        }
        assert_eq!(
            before["updated_at"].as_str().and_then(timestamp::parse),
            Some(writing_time())
        );
    }

    /// A row that says when its match was last changed is refused once it was changed again, and
    /// applied otherwise. Every change gives the row another time.
    async fn a_row_that_was_changed_since_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let read = lab.find("sample", json!({})).await;
        let time = |id: &str| {
            let row = read.iter().find(|row| row["id"] == id).unwrap();
            row["updated_at"].clone()
        };
        let rows = |volume: i64| {
            json!([
                {"id": "a", "volume": volume, "_if_updated_at": time("a")},
                {"id": "b", "volume": volume},
                {"id": "c", "volume": volume, "_if_updated_at": null},
            ])
        };
        // By the same clock, so that only the rows' own order of changes tells them apart.
        assert_eq!(write(&lab, update("sample", rows(5))).await.updated, 3);
        let changed = lab.find("sample", json!({"id": "a"})).await.remove(0);
        let message = format!(
            "the row of \"sample\" that matches has been changed since: at {}, not {}; read it again",
            changed["updated_at"].as_str().unwrap(),
            time("a").as_str().unwrap(),
        );
        let expected = [at_row(0, ErrorCode::ChangedSince, &message)];
        assert_refused(&lab, update("sample", rows(6)), &expected).await;
        let named = json!([{"id": "a", "name": "a", "_if_updated_at": time("a")}]);
        assert_refused(&lab, upsert("sample", named), &expected).await;
        let gone = json!([{"id": "a", "_if_updated_at": time("a")}]);
        assert_refused(&lab, delete("sample", gone), &expected).await;
        let current = json!([{"id": "a", "_if_updated_at": changed["updated_at"]}]);
        assert_eq!(write(&lab, delete("sample", current)).await.deleted, 1);
    }

    /// Every row of an update or delete must match; one that does not is a problem at that row.
    async fn a_row_that_matches_none_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let rows = json!([{"id": "a", "volume": 7}, {"id": "z", "volume": 7}]);
        let no_row = "the key matches no row of \"sample\"";
        assert_refused(
            &lab,
            update("sample", rows),
            &[at_row(1, ErrorCode::RowNotFound, no_row)],
        )
        .await;
        let rows = json!([{"id": "B"}, {"id": "b"}, {"id": "A"}]);
        let expected = [0, 2].map(|row| at_row(row, ErrorCode::RowNotFound, no_row));
        assert_refused(&lab, delete("sample", rows), &expected).await;
    }

    /// A row that matches several is a problem at that row, in every mode that matches.
    async fn a_row_that_matches_several_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let rows = json!([{"volume": 3, "note": "y"}, {"volume": 1, "note": "y"}]);
        let expected = [at_row(
            1,
            ErrorCode::KeyAmbiguous,
            "the key matches several rows of \"sample\"",
        )];
        assert_refused(&lab, by(&["volume"], update("sample", rows)), &expected).await;
        let named = json!([{"volume": 3, "name": "c"}, {"volume": 1, "name": "n"}]);
        assert_refused(&lab, by(&["volume"], upsert("sample", named)), &expected).await;
        let rows = json!([{"volume": 3}, {"volume": 1}]);
        assert_refused(&lab, by(&["volume"], delete("sample", rows)), &expected).await;
    }

    /// Two rows of a table write that match one stored row: a problem at the second.
    async fn rows_that_match_one_row_are_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let named = |mode| {
            by(
                &["name"],
                table_write(mode, "sample", json!([{"_ref": "it", "name": "a"}])),
            )
        };
        lab.define(&curated("owner", vec![reference("sample")]))
            .await
            .unwrap();
        lab.insert("owner", json!([{"id": "o", "sample": "a"}]))
            .await;
        let owners = by(
            &["sample"],
            table_write(
                Mode::Update,
                "owner",
                json!([{"sample": "a"}, {"sample": "@it"}]),
            ),
        );
        let expected = Problem::at(
            "tables[1].rows[1]",
            Reason::new(
                ErrorCode::DuplicateKey,
                "matches the same row of \"owner\" as rows[0]",
            ),
        );
        assert_problems_are(
            lab.write(request([named(Mode::Upsert), owners], [])).await,
            &[expected],
        );
    }

    /// A row that is matched by another key may repeat its primary key, but not change it.
    async fn a_primary_key_cannot_be_changed(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(
            &lab,
            by(
                &["name"],
                update("sample", json!([{"name": "a", "id": "a", "volume": 2}])),
            ),
        )
        .await;
        let rows = json!([{"name": "a", "id": "z", "volume": 5}]);
        for changed in [
            by(&["name"], update("sample", rows.clone())),
            by(&["name"], upsert("sample", rows)),
        ] {
            let problem = Problem::at(
                "tables[0].rows[0].id",
                Reason::new(
                    ErrorCode::ColumnNotWritable,
                    "the row that matches has the key \"a\", which cannot be changed",
                ),
            );
            assert_refused(&lab, changed, &[problem]).await;
        }
        assert_eq!(lab.column("sample", "id").await, ["a", "b", "c"]);
    }

    /// An update that makes a value occur twice is a problem of the request.
    async fn a_value_that_becomes_repeated_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        assert_refused(
            &lab,
            update("sample", json!([{"id": "a", "name": "b"}])),
            &[repeated("sample", "sample_name_key", "name", "b")],
        )
        .await;
    }

    /// Matching rows are updated, the rest created; ids are in input order.
    async fn an_upsert_updates_what_matches_and_creates_the_rest(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = lab_with_samples(harness).await;
        let rows = json!([
            {"name": "d", "volume": 4, "id": "d"},
            {"name": "b", "volume": 2},
            {"name": "e"},
        ]);
        let outcome = write(&lab, by(&["name"], upsert("sample", rows.clone()))).await;
        assert_eq!((outcome.created, outcome.updated), (2, 1));
        let e = lab.sample("e").await;
        assert_eq!(ids(&outcome), ["d", "b", e.as_str()]);
        assert_eq!(lab.find("sample", json!({"volume": 2})).await.len(), 1);
        let again = write(&lab, by(&["name"], upsert("sample", rows))).await;
        assert_eq!((again.created, again.updated), (0, 3));
        assert_eq!(ids(&again), ids(&outcome));
        assert_eq!(lab.count("sample").await, 5);
    }

    /// A row that matches none and lacks a required column is a problem at that row.
    async fn an_upsert_cannot_create_an_incomplete_row(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, upsert("sample", json!([{"id": "a", "volume": 6}]))).await;
        let rows = json!([{"id": "b", "volume": 6}, {"id": "z", "volume": 6}]);
        let missing = |name: &str| {
            let text = "matches no row, and cannot be created: the required column";
            at_row(
                1,
                ErrorCode::MissingValue,
                &format!("{text} \"{name}\" is missing"),
            )
        };
        assert_refused(&lab, upsert("sample", rows), &[missing("name")]).await;
        let two = vec![
            required("unit", DataType::String),
            required("ph", DataType::Float),
        ];
        lab.define(&curated("buffer", two)).await.unwrap();
        let rows = json!([{"id": "x", "unit": "ml", "ph": 7}, {"id": "y"}]);
        assert_refused(
            &lab,
            upsert("buffer", rows),
            &[missing("unit"), missing("ph")],
        )
        .await;
    }

    /// A label of an upserted row stands for the row that it matched or became, in later rows,
    /// series and the response.
    async fn labels_of_upserted_rows_stand_for_what_they_match(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let samples = by(
            &["name"],
            upsert(
                "sample",
                json!([labelled_sample("b"), labelled_sample("new")]),
            ),
        );
        let measurements = insert(
            "measurement",
            json!([{"sample": "@new", "value": 1}, {"sample": "@b", "value": 2}]),
        );
        let curves = [
            series("curve", json!("@b"), json!({"time": [1]})),
            series("curve", json!("@new"), json!({"time": [2]})),
        ];
        let outcome = lab
            .write(request([samples, measurements], curves))
            .await
            .unwrap();
        let new = lab.sample("new").await;
        assert_eq!(outcome.refs.get("b").map(String::as_str), Some("b"));
        assert_eq!(outcome.refs.get("new"), Some(&new));
        assert_eq!(
            lab.find("measurement", json!({"sample": new, "value": 1}))
                .await
                .len(),
            1
        );
        assert_eq!(
            lab.find("measurement", json!({"sample": "b", "value": 2}))
                .await
                .len(),
            1
        );
        assert_eq!(
            lab.find("curve", json!({"sample": new, "time": 2}))
                .await
                .len(),
            1
        );
        assert_eq!(
            lab.find("curve", json!({"sample": "b", "time": 1}))
                .await
                .len(),
            1
        );
    }

    /// `fill_missing` retains existing values, and counts only rows in which it set a value.
    async fn filling_sets_only_what_is_null(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let fill = |rows| TableWrite {
            on_match: OnMatch::FillMissing,
            ..update("sample", rows)
        };
        let rows = json!([
            {"id": "a", "volume": 9, "note": "new"},
            {"id": "b", "volume": 9, "note": "new"},
            {"id": "c", "note": null},
        ]);
        let outcome = write(&lab, fill(rows)).await;
        assert_eq!((outcome.updated, outcome.ids.len()), (1, 3));
        assert_eq!(lab.column("sample", "volume").await, [1.0, 1.0, 3.0]);
        assert_eq!(
            lab.column("sample", "note").await,
            [json!("new"), json!("x"), Value::Null]
        );
    }

    /// Rows are matched when the table write is applied, so an earlier one may have created them.
    async fn a_later_step_matches_rows_of_an_earlier_one(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let steps = [
            insert("sample", json!([{"id": "d", "name": "d"}])),
            by(
                &["name"],
                upsert("sample", json!([{"name": "d", "volume": 1}])),
            ),
            update("sample", json!([{"id": "d", "note": "found"}])),
            delete("sample", json!([{"id": "a"}])),
            insert("sample", json!([{"id": "a2", "name": "a"}])),
        ];
        let outcome = lab.write(request(steps, [])).await.unwrap();
        let counts: Vec<(u64, u64, u64)> = outcome
            .tables
            .iter()
            .map(|table| (table.created, table.updated, table.deleted))
            .collect();
        assert_eq!(
            counts,
            [(1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
        );
        assert_eq!(
            lab.find("sample", json!({"id": "d", "volume": 1, "note": "found"}))
                .await
                .len(),
            1
        );
        assert_eq!(lab.sample("a").await, "a2");
    }
);
