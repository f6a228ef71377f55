//! Contract of [`labdata_ports::trash::TrashStore`]: columns.

use labdata_domain::{
    catalog::{CatalogRefusal, ColumnDefinition, ColumnRole, Violation},
    data::{history::versions, write::Mode},
    scalar::{DataType, KeyValue},
    trash::{RestoreRefusal, TrashKind},
};
use labdata_ports::trash::RestoreError;
use serde_json::json;

use super::{TrashHarness, TrashLab, assert_kept, renamed, taken};
use crate::{
    Itself,
    catalog::{
        assert_refused,
        definitions::{column, curated, reference, required, sample},
        with,
    },
    data::lab::{assert_problems, insert, request, series, table_write},
};

crate::suite!(
    use trash::columns as trash_columns;

    /// A dropped column comes back with its place, id and values, those of earlier versions too; until then it
    /// does not exist. Rows of the meantime have none.
    async fn a_dropped_column_comes_back_with_its_values(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let key = lab.sample("a").await;
        lab.update("sample", json!([{"id": key, "volume": 2.5}]))
            .await;
        let before = lab.table("sample").await;
        let id = lab.try_drop_column("sample", "volume").await.unwrap();
        let entry = lab.trash.get(lab.organization, id).await.unwrap();
        assert_eq!(
            (entry.kind, entry.name.as_str()),
            (TrashKind::Column, "sample.volume")
        );
        assert!(
            lab.rows("sample")
                .await
                .iter()
                .all(|row| !row.contains_key("volume"))
        );
        let write = insert("sample", json!([{"name": "x", "volume": 1}]));
        assert_problems(lab.write(request([write], [])).await);
        lab.insert("sample", json!([{"name": "c"}])).await;
        lab.restore(id).await.unwrap();
        assert_eq!(lab.table("sample").await, before);
        assert_eq!(
            lab.column("sample", "volume").await,
            [json!(2.5), json!(null), json!(null)]
        );
        let table = lab.tables().await.keyed_table("sample").unwrap();
        let key = KeyValue::Text(key);
        let history = lab.data.history(lab.organization, &table, &key);
        let history = history.await.unwrap();
        let versions = versions(history.deleted, &history.changes, history.current.as_ref());
        let volumes: Vec<_> = versions.iter().map(|it| &it.values["volume"]).collect();
        assert_eq!(volumes, [&json!(2.5), &json!(1.5)]);
    }

    /// A reference comes back to the table that it had, and never to another one that has the name by now.
    async fn references_come_back_to_their_own_table(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let key = lab.sample("a").await;
        lab.define(&curated("pair", vec![reference("sample")]))
            .await
            .unwrap();
        lab.insert("pair", json!([{"sample": key}])).await;
        let dropped = [
            (
                "measurement",
                lab.try_drop("measurement", true).await.unwrap(),
            ),
            ("curve", lab.try_drop("curve", true).await.unwrap()),
            (
                "pair.sample",
                lab.try_drop_column("pair", "sample").await.unwrap(),
            ),
        ];
        let first = lab.try_drop("sample", true).await.unwrap();
        lab.define(&sample()).await.unwrap();
        lab.insert("sample", json!([{"id": key, "name": "a"}]))
            .await;
        for (name, id) in dropped {
            let gone = RestoreRefusal::ReferenceGone {
                name: name.to_owned(),
                target: "sample".to_owned(),
            };
            assert_kept(lab.restore(id).await, &gone);
        }
        // What the other one is called from now on does not concern the trash.
        lab.define(&renamed(sample(), "other")).await.unwrap();
        lab.restore(first).await.unwrap();
        lab.define(&renamed(sample(), "specimen")).await.unwrap();
        for (name, id) in dropped {
            lab.restore(id).await.unwrap();
            let table = lab.table(name.split('.').next().unwrap()).await;
            let target = table.column("sample").unwrap().references.clone();
            assert_eq!(target.as_deref(), Some("specimen"), "{name}");
        }
        let other = lab.try_drop("other", true).await.unwrap();
        lab.trash.purge(lab.organization, other).await.unwrap();
        assert_refused(
            lab.try_drop("specimen", true).await,
            &CatalogRefusal::Referenced {
                table: "specimen".to_owned(),
                by: ["measurement", "curve", "pair"].map(str::to_owned).to_vec(),
            },
        );
    }

    /// The values of a raw table's column come back to their points, also where series were added since.
    async fn a_dropped_column_of_points_comes_back(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let before = lab.rows("curve").await;
        let definition = lab.table("curve").await;
        let id = lab.try_drop_column("curve", "od").await.unwrap();
        let b = lab.sample("b").await;
        let points = series("curve", json!(b), json!({"time": [7]}));
        lab.write(request([], [points])).await.unwrap();
        lab.restore(id).await.unwrap();
        assert_eq!(lab.table("curve").await, definition);
        let (old, new): (Vec<_>, Vec<_>) = lab
            .rows("curve")
            .await
            .into_iter()
            .partition(|row| row["sample"] != json!(b));
        assert_eq!(old, before);
        assert_eq!((new.len(), &new[0]["od"]), (1, &json!(null)));
    }

    /// Rows of the meantime get the default. Where a value is needed and there is none, the column may be null.
    async fn rows_of_the_meantime_have_the_default(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let defaulted = ColumnDefinition {
            default: Some(json!(7)),
            ..required("count", DataType::Integer)
        };
        let columns = vec![
            column("a", DataType::Text),
            defaulted,
            required("name", DataType::Text),
        ];
        lab.define(&curated("note", columns)).await.unwrap();
        lab.insert("note", json!([{"a": "old", "count": 1, "name": "x"}]))
            .await;
        let count = lab.try_drop_column("note", "count").await.unwrap();
        let name = lab.try_drop_column("note", "name").await.unwrap();
        lab.insert("note", json!([{"a": "new"}])).await;
        lab.restore(count).await.unwrap();
        lab.restore(name).await.unwrap();
        assert_eq!(lab.column("note", "count").await, [1, 7]);
        assert_eq!(lab.column("note", "name").await, [json!("x"), json!(null)]);
        let table = lab.table("note").await;
        assert!(!table.column("count").unwrap().is_nullable);
        assert!(table.column("name").unwrap().is_nullable);
    }

    /// Uniqueness and references come back; rows that break them refuse it, and it stays in the trash.
    async fn constraints_of_a_column_come_back(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let name = lab.try_drop_column("sample", "name").await.unwrap();
        let sample = lab.try_drop_column("measurement", "sample").await.unwrap();
        lab.restore(name).await.unwrap();
        let again = insert("sample", json!([{"name": "a"}]));
        assert_problems(lab.write(request([again], [])).await);
        let key = lab.sample("a").await;
        let gone = table_write(Mode::Delete, "sample", json!([{"id": key}]));
        lab.write(request([gone], [])).await.unwrap();
        match lab.restore(sample).await {
            Err(RestoreError::Refused(RestoreRefusal::Catalog(CatalogRefusal::Violation(
                Violation::Dangling(key_of),
            )))) => assert_eq!((key_of.columns.as_str(), key_of.values), ("sample_id", key)),
            other => panic!("{other:?}"),
        }
        assert_eq!(lab.names().await, ["measurement.sample"]);
        assert!(lab.table("measurement").await.column("sample").is_none());
    }

    /// A column whose name is taken, or whose table is dropped, stays in the trash; its table may be renamed.
    async fn a_column_needs_its_table_and_its_name(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let columns = vec![
            column("text", DataType::Text),
            column("more", DataType::Text),
        ];
        let definition = curated("note", columns);
        lab.define(&definition).await.unwrap();
        lab.insert("note", json!([{"text": "a"}])).await;
        let id = lab.try_drop_column("note", "text").await.unwrap();
        lab.define(&definition).await.unwrap();
        assert_kept(
            lab.restore(id).await,
            &taken(TrashKind::Column, "note.text"),
        );
        let second = lab.try_drop_column("note", "text").await.unwrap();
        let table = lab.try_drop("note", true).await.unwrap();
        let gone = RestoreRefusal::TableGone("note.text".to_owned());
        assert_kept(lab.restore(id).await, &gone);
        lab.restore(table).await.unwrap();
        lab.trash.purge(lab.organization, second).await.unwrap();
        let mut less = definition;
        less.columns.remove(0);
        lab.define(&renamed(less, "remark")).await.unwrap();
        assert_eq!(lab.names().await, ["remark.text"]);
        lab.restore(id).await.unwrap();
        assert_eq!(lab.column("remark", "text").await, ["a"]);
    }

    /// A column that its table needs stays.
    async fn a_needed_column_does_not_move(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let refused = CatalogRefusal::NeededColumn {
            table: "sample".to_owned(),
            column: "id".to_owned(),
            role: ColumnRole::PrimaryKey,
        };
        assert_refused(lab.try_drop_column("sample", "id").await, &refused);
        assert_eq!(lab.names().await, Vec::<String>::new());
    }

    /// Values of a dropped column in a forgotten row do not come back, neither now nor in its history.
    async fn a_forgotten_row_is_forgotten_in_the_trash(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.define(&with(sample(), Vec::new())).await.unwrap();
        lab.fill().await;
        let key = lab.sample("a").await;
        lab.update("sample", json!([{"id": key, "note": "ada"}]))
            .await;
        lab.update("sample", json!([{"id": key, "note": "eve"}]))
            .await;
        let b = lab.sample("b").await;
        lab.update("sample", json!([{"id": b, "note": "bob"}]))
            .await;
        let id = lab.try_drop_column("sample", "note").await.unwrap();
        let table = lab.tables().await.keyed_table("sample").unwrap();
        let key = KeyValue::Text(key);
        let forgotten = lab.trash.forget_row(lab.organization, &table, &key);
        forgotten.await.unwrap();
        lab.restore(id).await.unwrap();
        assert_eq!(
            lab.column("sample", "note").await,
            [json!("bob"), json!(null)]
        );
        let table = lab.tables().await.keyed_table("sample").unwrap();
        let history = lab
            .data
            .history(lab.organization, &table, &key)
            .await
            .unwrap();
        assert!(!history.changes.is_empty());
        let earlier = format!("{:?}", history.changes);
        assert!(
            !earlier.contains("ada") && !earlier.contains("eve"),
            "{earlier}"
        );
    }
);
