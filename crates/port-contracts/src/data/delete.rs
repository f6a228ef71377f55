//! Contract of [`labdata_ports::data::DataStore`]: deletes.

use std::collections::BTreeMap;

use labdata_domain::{
    data::write::{Problem, Reason, TableOutcome, TableWrite},
    refusal::ErrorCode,
};
use serde_json::json;

use crate::{
    Itself,
    catalog::definitions::{curated, reference},
    data::{
        lab::{DataHarness, Lab, assert_problems, assert_problems_are, request, series},
        modify::{by, delete, ids, lab_with_samples, update, upsert, write},
    },
};

/// Number of points and rows deleted by cascade.
fn cascaded(outcome: &TableOutcome) -> BTreeMap<String, u64> {
    outcome.cascade_deleted.clone().unwrap()
}

crate::suite!(
    use data::delete as data_delete;

    /// Deleted rows are removed with their points, which are counted; ids are in input order.
    async fn a_delete_takes_the_rows_and_their_points(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let curves = ["a", "b", "c"]
            .map(|sample| series("curve", json!(sample), json!({"time": [1, 2, 3]})));
        lab.write(request([], curves)).await.unwrap();
        let outcome = write(
            &lab,
            by(
                &["name"],
                delete("sample", json!([{"name": "c"}, {"name": "a"}])),
            ),
        )
        .await;
        assert_eq!(
            (outcome.deleted, ids(&outcome)),
            (2, vec!["c".to_owned(), "a".to_owned()])
        );
        assert_eq!(
            cascaded(&outcome),
            BTreeMap::from([("curve".to_owned(), 6)])
        );
        assert_eq!(lab.column("sample", "name").await, ["b"]);
        assert_eq!(lab.column("curve", "sample").await, ["b", "b", "b"]);
    }

    /// Without cascade, a row that others reference is not deleted.
    async fn a_referenced_row_is_not_deleted(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.define(&curated(
            "step",
            vec![reference("sample"), reference("step")],
        ))
        .await
        .unwrap();
        lab.insert("measurement", json!([{"sample": "b"}, {"sample": "b"}]))
            .await;
        lab.insert("step", json!([{"sample": "c"}, {"sample": "b"}]))
            .await;
        let rows = json!([{"id": "a"}, {"id": "b"}, {"id": "c"}]);
        let expected = [
            (1, "\"b\" is referenced by 2 rows of \"measurement\""),
            (1, "\"b\" is referenced by 1 row of \"step\""),
            (2, "\"c\" is referenced by 1 row of \"step\""),
        ]
        .map(|(row, text)| {
            Problem::at(
                format!("tables[0].rows[{row}]"),
                Reason::new(
                    ErrorCode::RowReferenced,
                    format!("{text}; delete them first, or set cascade"),
                ),
            )
        });
        assert_problems_are(
            lab.write(request([delete("sample", rows)], [])).await,
            &expected,
        );
        assert_eq!(
            (lab.count("sample").await, lab.count("measurement").await),
            (3, 2)
        );
        let unreferenced = write(&lab, delete("sample", json!([{"id": "a"}]))).await;
        assert_eq!(unreferenced.cascade_deleted, None);
    }

    /// With cascade, rows that reference the deleted ones go as well, and what references those.
    async fn a_cascade_takes_all_that_references_the_rows(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.define(&curated(
            "step",
            vec![reference("step"), reference("sample")],
        ))
        .await
        .unwrap();
        lab.define(&curated("remark", vec![reference("measurement")]))
            .await
            .unwrap();
        lab.insert(
            "measurement",
            json!([{"id": "m1", "sample": "a"}, {"id": "m2", "sample": "b"}]),
        )
        .await;
        lab.insert(
            "remark",
            json!([{"measurement": "m1"}, {"measurement": "m1"}, {"measurement": "m2"}]),
        )
        .await;
        let steps = json!([
            {"_ref": "1", "sample": "a"}, {"_ref": "2", "step": "@1"}, {"step": "@2"}, {"sample": "b"},
        ]);
        lab.insert("step", steps).await;
        let curves =
            ["a", "b"].map(|sample| series("curve", json!(sample), json!({"time": [1, 2]})));
        lab.write(request([], curves)).await.unwrap();
        let cascade = TableWrite {
            cascade: true,
            ..delete("sample", json!([{"id": "a"}]))
        };
        let outcome = write(&lab, cascade).await;
        assert_eq!(outcome.deleted, 1);
        let expected = [("curve", 2), ("measurement", 1), ("remark", 2), ("step", 3)];
        assert_eq!(
            cascaded(&outcome),
            expected
                .map(|(table, count)| (table.to_owned(), count))
                .into()
        );
        for (table, left) in [
            ("sample", 2),
            ("measurement", 1),
            ("remark", 1),
            ("step", 1),
            ("curve", 2),
        ] {
            assert_eq!(lab.count(table).await, left, "{table}");
        }
    }

    /// A row may be deleted once the request has deleted what references it.
    async fn referencing_rows_may_be_deleted_first(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.insert("measurement", json!([{"id": "m", "sample": "a"}]))
            .await;
        let steps = [
            delete("measurement", json!([{"id": "m"}])),
            delete("sample", json!([{"id": "a"}])),
        ];
        lab.write(request(steps, [])).await.unwrap();
        assert_eq!(
            (lab.count("sample").await, lab.count("measurement").await),
            (2, 0)
        );
    }

    /// A dry run counts what a delete would remove, and removes nothing.
    async fn a_dry_run_of_a_delete_counts_and_keeps(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.insert("measurement", json!([{"sample": "a"}, {"sample": "a"}]))
            .await;
        let cascade = TableWrite {
            cascade: true,
            ..delete("sample", json!([{"id": "a"}]))
        };
        let mut dry = request([cascade], []);
        dry.dry_run = true;
        let outcome = lab.write(dry).await.unwrap().tables.remove(0);
        assert_eq!(
            (outcome.deleted, cascaded(&outcome)),
            (1, BTreeMap::from([("measurement".to_owned(), 2)]))
        );
        assert_eq!(
            (lab.count("sample").await, lab.count("measurement").await),
            (3, 2)
        );
    }

    /// Effects of earlier table writes are rolled back if a later one fails.
    async fn a_failed_step_takes_back_the_earlier_ones(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let before = lab.find("sample", json!({})).await;
        let steps = [
            update("sample", json!([{"id": "a", "volume": 9}])),
            delete("sample", json!([{"id": "b"}])),
            upsert("sample", json!([{"id": "d", "name": "d"}])),
            update("sample", json!([{"id": "gone", "volume": 9}])),
        ];
        let problems = assert_problems(lab.write(request(steps, [])).await);
        assert_eq!(
            problems.first().unwrap().path.as_deref(),
            Some("tables[3].rows[0]")
        );
        assert_eq!(lab.find("sample", json!({})).await, before);
    }

    /// A row of another organization's table of that name is neither updated nor deleted.
    async fn another_organizations_rows_are_not_matched(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let other = Lab::named(harness, "another lab").await;
        other.define_tables().await;
        let rows = json!([{"id": "a", "volume": 9}]);
        assert_problems(
            other
                .write(request([update("sample", rows.clone())], []))
                .await,
        );
        assert_problems(
            other
                .write(request([delete("sample", json!([{"id": "a"}]))], []))
                .await,
        );
        let named = json!([{"id": "a", "name": "a", "volume": 9}]);
        assert_eq!(write(&other, upsert("sample", named)).await.created, 1);
        assert_eq!(lab.column("sample", "volume").await, [1.0, 1.0, 3.0]);
    }
);
