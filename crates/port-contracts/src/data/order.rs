//! Contract of [`labdata_ports::data::DataStore`]: columns and order of the rows that are read.

use labdata_domain::{
    catalog::PlatformTable,
    data::read::{ORDERED_CHARACTERS, RowSelection},
    scalar::DataType,
};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, curated, key},
    data::{
        lab::{DataHarness, Lab, request, series},
        pages::{read_pages, values},
        read::lab_with_samples,
    },
    fixtures::{Instruments, Jobs},
    lab::Records,
};

type Rows = Vec<Map<String, Value>>;

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// All rows in that order, read with several sizes of pages, which makes no difference.
async fn ordered(lab: &Lab, table: &str, order_by: &[&str], filters: &Value) -> Rows {
    let mut all: Option<Rows> = None;
    for limit in [1000, 1, 2, 3, 5] {
        let selection = RowSelection {
            filters: filters.as_object().unwrap().clone(),
            order_by: names(order_by),
            limit,
            ..RowSelection::default()
        };
        let plan = lab.selection_plan(table, selection).await;
        let rows = read_pages(lab, plan, async |_| ()).await;
        match &all {
            None => all = Some(rows),
            Some(all) => assert_eq!(&rows, all, "{order_by:?} in pages of {limit}"),
        }
    }
    all.unwrap()
}

/// The ids of all rows in that order.
async fn ids(lab: &Lab, table: &str, order_by: &[&str]) -> String {
    let rows = ordered(lab, table, order_by, &json!({})).await;
    let ids = values(&rows, "id");
    ids.iter().map(|id| id.as_str().unwrap()).collect()
}

crate::suite!(
    use data::order as data_order;

    /// Columns by their names, references also by their SQL names. The next page is found although the key
    /// is not read.
    async fn only_the_requested_columns_are_read(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let curve = series("curve", json!("a"), json!({"time": [1, 2], "od": [3, 4]}));
        lab.write(request([], [curve])).await.unwrap();
        let read = async |table: &str, columns: &[&str]| {
            let selection = RowSelection {
                columns: Some(names(columns)),
                limit: 2,
                ..RowSelection::default()
            };
            let plan = lab.selection_plan(table, selection).await;
            Value::from_iter(read_pages(&lab, plan, async |_| ()).await)
        };
        assert_eq!(
            read("sample", &["volume"]).await,
            json!([{"volume": null}, {"volume": 4}, {"volume": 3}, {"volume": 2}, {"volume": 1}])
        );
        assert_eq!(
            read("curve", &["od", "sample_id", "sample"]).await,
            json!([{"od": 3, "sample_id": "a", "sample": "a"}, {"od": 4, "sample_id": "a", "sample": "a"}])
        );
        assert_eq!(
            read("organizationmember", &["email"]).await,
            json!([{"email": "ada@example.org"}])
        );
    }

    /// Null is greater than every value; equal rows come by descending key.
    async fn rows_come_in_the_given_order_page_by_page(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = json!([
            {"id": "a", "name": "1", "volume": 2, "note": "x"},
            {"id": "b", "name": "2", "volume": 1},
            {"id": "c", "name": "3", "volume": 2},
            {"id": "d", "name": "4", "note": "y"},
            {"id": "e", "name": "5", "volume": 1, "note": "x"},
            {"id": "f", "name": "6", "volume": -0.5, "note": "y"},
            {"id": "g", "name": "7", "note": "y"},
        ]);
        lab.insert("sample", rows).await;
        for (order_by, expected) in [
            (&["volume"][..], "febcagd"),
            (&["-volume"], "gdcaebf"),
            (&["volume", "id"], "fbeacdg"),
            (&["-volume", "id"], "dgacbef"),
            (&["note", "-volume"], "aegdfcb"),
            (&["-note", "volume"], "bcfgdea"),
            (&["-note", "-volume", "name"], "cbdgfae"),
        ] {
            assert_eq!(
                ids(&lab, "sample", order_by).await,
                expected,
                "{order_by:?}"
            );
        }
        let filters = json!({"volume__gte": 1, "note__isnull": false});
        let rows = ordered(&lab, "sample", &["volume"], &filters).await;
        assert_eq!(values(&rows, "id"), ["e", "a"]);
    }

    /// Every type but json has an order.
    async fn rows_are_ordered_by_columns_of_every_type(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let columns = DataType::ALL
            .into_iter()
            .map(|data_type| column(data_type.as_str(), data_type));
        lab.define(&curated("everything", columns.collect()))
            .await
            .unwrap();
        let rows = json!([
            {"id": "n"},
            {
                "id": "z", "string": "b", "text": "b", "integer": i64::MAX, "float": 1e308, "boolean": true,
                "datetime": "2026-03-01T12:00:00.000001Z", "date": "2026-03-01",
                "uuid": "f189c0de-0000-7000-8000-000000000001",
            },
            {
                "id": "y", "string": "a", "text": "a", "integer": i64::MAX - 1, "float": 0.1, "boolean": false,
                "datetime": "2026-03-01T12:00:00Z", "date": "1926-03-01",
                "uuid": "0189c0de-0000-7000-8000-000000000002",
            },
            {
                "id": "x", "string": "B", "text": "", "integer": i64::MIN, "float": -1e-300, "boolean": false,
                "datetime": "1926-03-01T12:00:00Z", "date": "0001-01-01",
                "uuid": "0189c0de-0000-7000-8000-000000000001",
            },
        ]);
        lab.insert("everything", rows).await;
        for data_type in DataType::ALL {
            if data_type == DataType::Json {
                continue;
            }
            let name = data_type.as_str();
            let (up, down) = if data_type == DataType::Boolean {
                ("yxzn", "nzyx")
            } else {
                ("xyzn", "nzyx")
            };
            assert_eq!(ids(&lab, "everything", &[name]).await, up, "{name}");
            let descending = format!("-{name}");
            assert_eq!(
                ids(&lab, "everything", &[&descending]).await,
                down,
                "{name}"
            );
        }
        for system in ["created_at", "-updated_at", "created_by_execution_id"] {
            assert_eq!(ids(&lab, "everything", &[system]).await, "zyxn", "{system}");
        }
    }

    /// Columns behind the key have no effect.
    async fn the_primary_key_orders_rows_in_both_directions(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        assert_eq!(ids(&lab, "sample", &["id", "-volume"]).await, "abcde");
        assert_eq!(ids(&lab, "sample", &["-id", "volume"]).await, "edcba");
        lab.define(&curated("run", vec![key("number", DataType::Integer)]))
            .await
            .unwrap();
        lab.insert(
            "run",
            json!([{"number": 3}, {"number": -20}, {"number": 100}]),
        )
        .await;
        for (term, expected) in [("number", [-20, 3, 100]), ("-number", [100, 3, -20])] {
            let rows = ordered(&lab, "run", &[term], &json!({})).await;
            assert_eq!(values(&rows, "number"), expected);
        }
    }

    /// Of long texts that begin alike, the greater key comes first.
    async fn texts_are_ordered_by_the_bytes_of_their_beginning(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let long = |end: &str| "ü".repeat(ORDERED_CHARACTERS) + end;
        let rows = json!([
            {"id": "a", "name": "1", "note": long("b")},
            {"id": "b", "name": "2", "note": long("c")},
            {"id": "c", "name": "3", "note": long("a")},
            {"id": "d", "name": "4", "note": "ü"},
            {"id": "e", "name": "5", "note": "z"},
            {"id": "f", "name": "6", "note": "Z"},
            {"id": "g", "name": "7", "note": "_"},
        ]);
        lab.insert("sample", rows).await;
        assert_eq!(ids(&lab, "sample", &["note"]).await, "fgedcba");
        assert_eq!(ids(&lab, "sample", &["-note"]).await, "cbadegf");
    }

    /// Equal points come in the order in which they were written.
    async fn points_come_in_the_given_order_page_by_page(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for (sample, values) in [
            (
                "b",
                json!({"time": [3, 1, 2], "od": [1, null, 1], "order": [7, 5, 6]}),
            ),
            ("a", json!({"time": [2, 9], "od": [1, 0]})),
        ] {
            lab.write(request([], [series("curve", json!(sample), values)]))
                .await
                .unwrap();
        }
        let times = async |order_by: &[&str]| {
            let rows = ordered(&lab, "curve", order_by, &json!({})).await;
            let displayed = rows
                .iter()
                .map(|row| format!("{}{}", row["sample"].as_str().unwrap(), row["time"]));
            displayed.collect::<Vec<_>>().join(" ").replace(".0", "")
        };
        assert_eq!(times(&["od"]).await, "a9 b3 b2 a2 b1");
        assert_eq!(times(&["-od", "time"]).await, "b1 b2 a2 b3 a9");
        assert_eq!(times(&["sample", "order"]).await, "a2 a9 b1 b2 b3");
        assert_eq!(times(&["-sample_id", "-time"]).await, "b3 b2 b1 a9 a2");
        assert_eq!(times(&[]).await, "b3 b1 b2 a2 a9");
    }

    /// The position is that of the last row's values, whether or not the row still exists.
    async fn an_order_holds_while_rows_are_deleted_and_written(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let mut written = Vec::new();
        for (id, volume) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            let row = json!([{"id": id, "name": id, "volume": volume}]);
            written.push(lab.insert("sample", row).await);
        }
        let selection = RowSelection {
            order_by: names(&["-volume"]),
            limit: 2,
            ..RowSelection::default()
        };
        let plan = lab.selection_plan("sample", selection).await;
        let rows = read_pages(&lab, plan, async |page| {
        if page == 0 {
            // The last row read, and two that no page shows: before it, and among the rows to come.
            lab.revert(written[2]).await.unwrap();
            let new =
                json!([{"name": "before", "volume": 3.5}, {"id": "z", "name": "z", "volume": 1.5}]);
            lab.insert("sample", new).await;
        }
    })
    .await;
        assert_eq!(values(&rows, "id"), ["d", "c", "b", "z", "a"]);
    }

    /// Platform tables have the same orders as defined ones.
    async fn platform_tables_are_ordered_by_each_column(
        harness: &Itself<impl DataHarness + Records>,
    ) {
        let lab = Lab::with_tables(harness).await;
        for name in ["b", "a", "c"] {
            harness.instrument(lab.organization, name).await;
            harness.job(lab.organization, name).await;
        }
        lab.insert("sample", json!([{"name": "a"}])).await;
        for table in PlatformTable::ALL {
            for column in table.columns() {
                let down = format!("-{}", column.name);
                let counts = [
                    ordered(&lab, table.as_str(), &[column.name], &json!({})).await,
                    ordered(&lab, table.as_str(), &[&down], &json!({})).await,
                ];
                assert_eq!(counts[0].len(), counts[1].len());
            }
        }
        for (order_by, expected) in [("name", ["a", "b", "c"]), ("-name", ["c", "b", "a"])] {
            let rows = ordered(&lab, "instrument", &[order_by], &json!({})).await;
            assert_eq!(values(&rows, "name"), expected);
        }
    }
);
