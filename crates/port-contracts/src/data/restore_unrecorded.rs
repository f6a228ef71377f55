//! Contract of [`labdata_ports::data::DataStore`]: reverts that restore where earlier values are not stored.

use labdata_domain::{
    catalog::{KeyedTable, TableDefinition},
    scalar::KeyValue,
};
use serde_json::json;

use crate::{
    Itself,
    catalog::definitions::{column, curated, raw, reference, required, unique},
    data::{
        lab::{DataHarness, Lab, insert, series},
        restore::{
            conflicts, delete, restore, restore_but_conflicts, state, two_samples, update, write,
        },
    },
};

/// Deletes the earlier versions of a row and of its series.
async fn forget(lab: &Lab, table: &str, id: &str) {
    let catalog = lab.tables().await;
    let table = KeyedTable::of(catalog.table(table).unwrap()).unwrap();
    let key = KeyValue::Text(id.to_owned());
    let forgotten = lab
        .data
        .forget_history(lab.organization, &table, &key)
        .await;
    assert!(forgotten.unwrap());
}

crate::suite!(
    use data::restore_unrecorded as data_restore_unrecorded;

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

    /// Created rows that another execution changed are a conflict, also where the history does not know of the change.
    async fn created_rows_that_others_changed_stay_without_history(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let columns = vec![column("name", labdata_domain::scalar::DataType::String)];
        let unrecorded = TableDefinition {
            history: false,
            ..curated("reading", columns)
        };
        lab.define(&unrecorded).await.unwrap();
        for table in ["reading", "sample"] {
            let created = lab.insert(table, json!([{"id": "q", "name": "q"}])).await;
            let updated = update(table, json!([{"id": "q", "name": "r"}]));
            write(&lab, [updated], []).await;
            forget(&lab, table, "q").await;
            let refused = conflicts(restore(&lab, created).await);
            let expected = format!(
                "1 rows of \"{table}\" cannot be restored (q): another execution changed them since"
            );
            assert_eq!(refused, [expected]);
            let report = restore_but_conflicts(&lab, created).await;
            assert_eq!(report.deleted_count, 0);
            assert_eq!(lab.column(table, "name").await, ["r"]);
        }
    }

    /// A series stays where the points that it replaced are not stored, with a warning each time.
    async fn a_series_stays_whose_earlier_points_are_forgotten(harness: &Itself<impl DataHarness>) {
        let lab = two_samples(harness).await;
        let both = |time: f64| {
            let row = update("sample", json!([{"id": "a", "note": time.to_string()}]));
            (
                [row],
                [series("curve", json!("a"), json!({"time": [time]}))],
            )
        };
        let (rows, curves) = both(7.0);
        let execution = write(&lab, rows, curves).await;
        forget(&lab, "sample", "a").await;
        let after = state(&lab).await;
        for _ in 0..2 {
            let report = restore(&lab, execution).await.unwrap();
            assert_eq!(report.raws_deleted_count, 0);
            let warning =
                "not undone: 1 replaced series of \"curve\", whose earlier values are not stored";
            assert!(report.warnings.iter().any(|it| it == warning), "{report:?}");
            assert_eq!(state(&lab).await, after);
        }
    }
);
