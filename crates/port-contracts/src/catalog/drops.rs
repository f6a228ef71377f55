//! Contract of [`labdata_ports::catalog::CatalogStore`]: drops, tenancy and concurrency.

use futures::future::join_all;
use labdata_domain::{
    catalog::{CatalogRefusal, TableDefinition, core_tables},
    scalar::DataType,
};
use labdata_ports::{PortError, catalog::DefineError};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::{
        assert_refused,
        definitions::{column, curated, reference, sample},
        with,
    },
    data::lab::{DataHarness, Lab, insert, request, series},
    given::at,
};

/// Fails unless there is no table of that name.
#[track_caller]
fn assert_no_table<T: std::fmt::Debug>(result: Result<T, DefineError>) {
    match result {
        Err(DefineError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
}

crate::suite!(
    use catalog::drops as catalog_drops;

    /// A dropped table is not found, neither by reads nor by another drop.
    async fn a_dropped_table_is_gone(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let drop = |name: &'static str| {
            lab.catalog
                .drop_table(lab.organization, name, false, at(50))
        };
        assert_no_table(drop("sample").await);
        lab.define_tables().await;
        drop("curve").await.unwrap();
        drop("measurement").await.unwrap();
        drop("sample").await.unwrap();
        assert_no_table(drop("sample").await);
        assert_no_table(drop("curve").await);
        assert_eq!(lab.tables().await.tables().len(), core_tables().len());
    }

    /// A table that holds rows is dropped with force only, and its rows go with it.
    async fn a_table_with_rows_is_dropped_by_force_only(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        lab.define(&sample()).await.unwrap();
        lab.insert("sample", json!([{"name": "a"}])).await;
        let refused = lab
            .catalog
            .drop_table(lab.organization, "sample", false, at(50))
            .await;
        assert_refused(refused, &CatalogRefusal::NotEmpty("sample".to_owned()));
        assert_eq!(lab.count("sample").await, 1);
        lab.catalog
            .drop_table(lab.organization, "sample", true, at(50))
            .await
            .unwrap();
        assert!(lab.tables().await.table("sample").is_none());
    }

    /// A raw table that holds points is dropped with force only.
    async fn a_raw_table_with_points_is_dropped_by_force_only(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let points = series("curve", json!("@a"), json!({"time": [0, 1]}));
        let rows = insert("sample", json!([{"_ref": "a", "name": "a"}]));
        lab.write(request([rows], [points])).await.unwrap();
        let refused = lab
            .catalog
            .drop_table(lab.organization, "curve", false, at(50))
            .await;
        assert_refused(refused, &CatalogRefusal::NotEmpty("curve".to_owned()));
        lab.catalog
            .drop_table(lab.organization, "curve", true, at(50))
            .await
            .unwrap();
        assert_eq!(lab.count("sample").await, 1);
    }

    /// A table that another one references stays, empty or not; one that references itself may go.
    async fn a_referenced_table_is_not_dropped(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let expected = CatalogRefusal::Referenced {
            table: "sample".to_owned(),
            by: vec!["measurement".to_owned(), "curve".to_owned()],
        };
        for force in [false, true] {
            let refused = lab
                .catalog
                .drop_table(lab.organization, "sample", force, at(50))
                .await;
            assert_refused(refused, &expected);
        }
        assert!(lab.tables().await.table("sample").is_some());
        lab.define(&curated("step", vec![reference("step")]))
            .await
            .unwrap();
        lab.catalog
            .drop_table(lab.organization, "step", false, at(50))
            .await
            .unwrap();
    }

    /// Core tables stay.
    async fn a_core_table_is_not_dropped(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        for force in [false, true] {
            let refused = lab
                .catalog
                .drop_table(lab.organization, "operation", force, at(50))
                .await;
            assert_refused(refused, &CatalogRefusal::CoreTable("operation".to_owned()));
        }
        lab.insert("operation", json!([{"name": "incubate"}])).await;
    }

    /// A table that is defined after one of its name was dropped is a new one.
    async fn a_dropped_table_comes_back_empty(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let first = lab.define(&sample()).await.unwrap();
        lab.insert("sample", json!([{"name": "a"}])).await;
        lab.catalog
            .drop_table(lab.organization, "sample", true, at(50))
            .await
            .unwrap();
        let second = lab
            .define(&curated("sample", vec![column("x", DataType::Integer)]))
            .await
            .unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(lab.count("sample").await, 0);
        lab.insert("sample", json!([{"x": 1}])).await;
    }

    /// Tables of the same name in two organizations are independent.
    async fn organizations_define_their_own_tables(harness: &Itself<impl DataHarness>) {
        let ours = Lab::named(harness, "ours").await;
        let theirs = Lab::named(harness, "theirs").await;
        theirs.define(&sample()).await.unwrap();
        assert!(ours.tables().await.table("sample").is_none());
        assert_no_table(
            ours.catalog
                .drop_table(ours.organization, "sample", true, at(50))
                .await,
        );
        ours.define(&curated("sample", vec![column("x", DataType::Integer)]))
            .await
            .unwrap();
        theirs.insert("sample", json!([{"name": "a"}])).await;
        assert_eq!(ours.count("sample").await, 0);
        ours.catalog
            .drop_table(ours.organization, "sample", false, at(50))
            .await
            .unwrap();
        assert_eq!(theirs.column("sample", "name").await, ["a"]);
    }

    /// Concurrent calls with one definition all return the same table.
    async fn racing_definitions_of_one_table_agree(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let definition = sample();
        let responses = join_all((0..4).map(|_| lab.define(&definition))).await;
        let stands = lab.tables().await;
        for response in responses {
            assert_eq!(Some(&response.unwrap()), stands.table("sample"));
        }
    }

    /// Concurrent calls for different tables, or different columns of one table, all take effect or are
    /// refused; none undoes another.
    async fn racing_definitions_of_different_tables_all_stand(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let definitions: Vec<TableDefinition> = (0..4)
            .map(|number| curated(&format!("t{number}"), vec![column("x", DataType::Date)]))
            .collect();
        for response in join_all(definitions.iter().map(|definition| lab.define(definition))).await
        {
            response.unwrap();
        }
        let stands = lab.tables().await;
        let mut ids: Vec<Option<i64>> = definitions
            .iter()
            .map(|definition| stands.table(&definition.name).unwrap())
            .flat_map(|table| [table.id, table.column("x").unwrap().id])
            .collect();
        assert!(ids.iter().all(Option::is_some));
        let columns: Vec<Option<i64>> = ids.iter().skip(1).step_by(2).copied().collect();
        ids = ids.into_iter().step_by(2).collect();
        for mut ids in [ids, columns] {
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 4, "ids differ");
        }
    }

    /// Of concurrent drops exactly one succeeds; the rest find no table.
    async fn of_racing_drops_exactly_one_wins(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        lab.define(&sample()).await.unwrap();
        let drops = (0..4).map(|_| {
            lab.catalog
                .drop_table(lab.organization, "sample", false, at(50))
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            join_all(drops).await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 3));
        lost.into_iter().for_each(assert_no_table);
    }

    /// Rows that are written while the table is altered are all there afterwards, with every column.
    async fn definitions_and_writes_wait_for_each_other(harness: &Itself<impl DataHarness>) {
        use labdata_ports::data::WriteError;

        let lab = Lab::empty(harness).await;
        lab.define(&sample()).await.unwrap();
        let write = async |number: usize| {
            let rows = json!([{"name": format!("{number}")}]);
            loop {
                match lab
                    .write(request([insert("sample", rows.clone())], []))
                    .await
                {
                    Ok(_) => return,
                    Err(WriteError::CatalogChanged) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        };
        let define = async || {
            let mut definition = sample();
            for number in 0..3 {
                definition = with(
                    definition,
                    vec![column(&format!("c{number}"), DataType::Integer)],
                );
                lab.define(&definition).await.unwrap();
            }
        };
        futures::join!(define(), join_all((0..6).map(write)));
        assert_eq!(lab.column("sample", "c2").await, vec![Value::Null; 6]);
    }
);
