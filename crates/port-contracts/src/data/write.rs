//! Contract of [`labdata_ports::data::DataStore`]: inserts.

use labdata_domain::{
    catalog::ColumnDefinition,
    conflict::Conflict,
    data::write::{Mode, WriteRequest, check},
    refusal::ErrorCode,
    scalar::{DataType, KeyValue},
    timestamp,
};
use labdata_ports::PortError;
use serde_json::{Value, json};

use crate::{
    Itself,
    assertions::by_value,
    catalog::definitions::{column, curated, key, reference, required},
    data::lab::{
        DataHarness, Lab, assert_problems, insert, labelled_sample, request, table_write,
        writing_time,
    },
    given::at,
};

crate::suite!(
    use data::write as data_write;

    /// A request without tables and series succeeds and has an execution.
    async fn a_write_of_nothing_is_recorded(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let outcome = lab.write(WriteRequest::default()).await.unwrap();
        assert!(outcome.tables.is_empty() && outcome.series.is_empty() && outcome.refs.is_empty());
        assert_eq!(
            lab.execution(outcome.execution.unwrap())
                .await
                .state
                .as_str(),
            "completed"
        );
        let outcome = lab
            .write(request([insert("sample", json!([]))], []))
            .await
            .unwrap();
        let table = outcome.tables.first().unwrap();
        assert_eq!(
            (table.table.as_str(), table.created, table.ids.len()),
            ("sample", 0, 0)
        );
    }

    /// The response counts the rows per table write and has their keys in input order.
    async fn rows_are_created_with_ids_in_input_order(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let writes = [
            insert(
                "sample",
                json!([{"name": "b", "id": "my-id"}, {"name": "a"}]),
            ),
            insert("measurement", json!([{"value": 1}])),
            // As frames write a row whose id is yet to come.
            insert("sample", json!([{"name": "c", "id": null}])),
        ];
        let outcome = lab.write(request(writes, [])).await.unwrap();
        let counts: Vec<(&str, u64, u64, u64)> = outcome
            .tables
            .iter()
            .map(|table| {
                (
                    table.table.as_str(),
                    table.created,
                    table.updated,
                    table.deleted,
                )
            })
            .collect();
        assert_eq!(
            counts,
            [
                ("sample", 2, 0, 0),
                ("measurement", 1, 0, 0),
                ("sample", 1, 0, 0)
            ]
        );
        let first = outcome.tables.first().unwrap();
        assert_eq!(first.ids.first(), Some(&KeyValue::Text("my-id".to_owned())));
        for (name, id) in ["b", "a"].iter().zip(&first.ids) {
            assert_eq!(lab.sample(name).await, id.to_string());
        }
        assert!(first.rows.is_none() && outcome.refs.is_empty());
    }

    /// Every type retains its values, extreme ones as well, and null.
    async fn values_of_every_type_read_back_as_written(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let columns = DataType::ALL
            .into_iter()
            .map(|data_type| column(data_type.as_str(), data_type));
        lab.define(&curated("everything", columns.collect()))
            .await
            .unwrap();
        let rows = json!([
            {
                "id": "1", "string": "it's \"quoted\" \\ \n\t é 実験 🧪", "text": "", "integer": i64::MAX,
                "float": 0.1, "boolean": true, "datetime": "2026-03-01T12:00:00.123456Z",
                "date": "2024-02-29", "uuid": "0189c0de-0000-7000-8000-000000000001",
                "json": {"b": [1, null, {"c": "d"}], "a": "x"},
            },
            {
                "id": "2", "string": "null", "text": "x".repeat(100_000), "integer": i64::MIN,
                "float": -1e308, "boolean": false, "datetime": "0001-01-01T00:00:00Z",
                "date": "0001-01-01", "uuid": "00000000-0000-0000-0000-000000000000", "json": [],
            },
            {
                "id": "3", "string": "", "integer": 0, "float": 5e-324,
                "datetime": "9999-12-31T23:59:59.999999Z", "date": "9999-12-31", "json": "text",
            },
            {"id": "4", "float": 3, "json": false},
        ]);
        lab.insert("everything", rows.clone()).await;
        for row in rows.as_array().unwrap() {
            let found = lab.find("everything", json!({"id": row["id"]})).await;
            let found = found.first().unwrap();
            for data_type in DataType::ALL {
                let name = data_type.as_str();
                let (written, read) = (&row[name], found.get(name).unwrap());
                let same = match data_type {
                    DataType::Float => written.as_f64() == read.as_f64(),
                    DataType::Datetime => {
                        written.as_str().and_then(timestamp::parse)
                            == read.as_str().and_then(timestamp::parse)
                    }
                    _ => written == read,
                };
                assert!(same, "{name}: {written} was written, {read} read");
            }
        }
    }

    /// A table may name its own key, of every type that a key can have.
    async fn given_keys_of_every_type_are_kept(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let uuid = "0189c0de-0000-7000-8000-000000000001";
        for (data_type, value) in [
            (DataType::String, json!("x")),
            (DataType::Text, json!("y")),
            (DataType::Integer, json!(-7)),
            (DataType::Uuid, json!(uuid)),
        ] {
            let table = format!("by_{data_type}");
            let child = format!("of_{data_type}");
            lab.define(&curated(&table, vec![key("code", data_type)]))
                .await
                .unwrap();
            let parent = ColumnDefinition {
                data_type,
                ..reference(&table)
            };
            lab.define(&curated(&child, vec![parent])).await.unwrap();
            let writes = [
                insert(&table, json!([{"_ref": "p", "code": value}])),
                insert(
                    &child,
                    json!([{table.clone(): "@p"}, {table.clone(): value}]),
                ),
            ];
            lab.write(request(writes, [])).await.unwrap();
            lab.insert(
                &child,
                json!([{table.clone(): value}, {table.clone(): {"code": value}}]),
            )
            .await;
            assert_eq!(lab.column(&table, "code").await, vec![value.clone(); 1]);
            assert_eq!(lab.column(&child, &table).await, vec![value; 4]);
        }
    }

    /// Rows that leave a column out get its default; an explicit null stays null.
    async fn defaults_fill_what_rows_leave_out(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let columns = vec![
            ColumnDefinition {
                default: Some(json!("µl")),
                ..required("unit", DataType::String)
            },
            ColumnDefinition {
                default: Some(json!(1.5)),
                ..column("volume", DataType::Float)
            },
            column("note", DataType::Text),
        ];
        lab.define(&curated("liquid", columns)).await.unwrap();
        let rows = json!([{}, {"volume": null, "unit": "ml"}, {"volume": 2, "note": "x"}]);
        lab.insert("liquid", rows).await;
        assert_eq!(lab.column("liquid", "unit").await, ["ml", "µl", "µl"]);
        assert_eq!(
            by_value(lab.column("liquid", "volume").await),
            json!([1.5, 2.0, null])
        );
        assert_eq!(
            lab.column("liquid", "note").await,
            [json!("x"), Value::Null, Value::Null]
        );
    }

    /// The system columns hold the time and the execution of the write.
    async fn system_columns_tell_when_and_by_what(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab.insert("sample", json!([{"name": "a"}])).await;
        let rows = lab
            .find(
                "sample",
                json!({"created_by_execution_id": execution.to_string()}),
            )
            .await;
        let row = rows.first().unwrap();
        for name in ["created_at", "updated_at"] {
            let time = row.get(name).unwrap().as_str().and_then(timestamp::parse);
            assert_eq!(time, Some(writing_time()), "{name}");
        }
        assert_eq!(
            row.get("created_by_execution_id"),
            Some(&json!(execution.to_string()))
        );
    }

    /// A label stands for the key of its row, also within one table write, and is answered.
    async fn labels_connect_rows_of_one_request(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.define(&curated(
            "step",
            vec![reference("step"), column("name", DataType::String)],
        ))
        .await
        .unwrap();
        let writes = [
            insert(
                "sample",
                json!([labelled_sample("a"), labelled_sample("b")]),
            ),
            insert(
                "measurement",
                json!([{"sample": "@b", "value": 2}, {"sample": "@a", "value": 1}]),
            ),
            insert(
                "step",
                json!([
                    {"_ref": "first", "name": "1"},
                    {"_ref": "second", "name": "2", "step": "@first"},
                    {"name": "3", "step": "@second"},
                ]),
            ),
        ];
        let outcome = lab.write(request(writes, [])).await.unwrap();
        let labels: Vec<&str> = outcome.refs.keys().map(String::as_str).collect();
        assert_eq!(labels, ["a", "b", "first", "second"]);
        assert_eq!(outcome.refs.get("a"), Some(&lab.sample("a").await));
        for (name, value) in [("a", 1), ("b", 2)] {
            let found = lab
                .find("measurement", json!({"sample__name": name, "value": value}))
                .await;
            assert_eq!(found.len(), 1);
        }
        assert_eq!(
            lab.find("step", json!({"step__step__name": "1"}))
                .await
                .len(),
            1
        );
    }

    /// Ids and lookups are answered by the rows that are stored.
    async fn ids_and_lookups_are_answered(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = json!([
            {"id": "s1", "name": "a", "volume": 1, "note": "x"},
            {"id": "s2", "name": "b", "volume": 1},
            {"id": "s3", "name": "c", "volume": 2},
        ]);
        lab.insert("sample", rows).await;
        let good = json!([
            {"sample": "s1"},
            {"sample": {"name": "b"}},
            {"sample": {"volume": 2}},
            {"sample": {"volume": 1, "note": null}},
            {"sample": {"name": "a"}},
            {"sample": null},
        ]);
        lab.insert("measurement", good).await;
        let expected = [
            json!("s1"),
            json!("s1"),
            json!("s2"),
            json!("s2"),
            json!("s3"),
            Value::Null,
        ];
        assert_eq!(lab.column("measurement", "sample").await, expected);
        let bad = json!([
            {"sample": "s4"},
            {"sample": {"volume": 1}},
            {"sample": {"name": "z"}},
            {"sample": {"name": "a", "volume": 2}},
            {"sample": {"note": null}},
            {"sample": {"volume": null}},
            {"sample": "S1"},
        ]);
        let problems = lab
            .plan(request([insert("measurement", bad)], []))
            .await
            .unwrap_err();
        let paths: Vec<Option<&str>> = problems
            .iter()
            .map(|problem| problem.path.as_deref())
            .collect();
        let expected: Vec<String> = (0..7)
            .map(|row| format!("tables[0].rows[{row}].sample"))
            .collect();
        assert_eq!(
            paths,
            expected
                .iter()
                .map(|path| Some(path.as_str()))
                .collect::<Vec<_>>()
        );
    }

    /// A lookup in a dropped table is a conflict.
    async fn questions_about_a_dropped_table_conflict(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let asked = insert(
            "measurement",
            json!([{"sample": "s1"}, {"sample": {"name": "a"}}]),
        );
        let checked = check(&request([asked], []), &*lab.tables().await);
        for table in ["curve", "measurement", "sample"] {
            lab.catalog
                .drop_table(lab.organization, table, false, at(50))
                .await
                .unwrap();
        }
        match lab
            .data
            .look_up(lab.organization, checked.questions())
            .await
        {
            Err(PortError::Conflict(Conflict::TablesChanged)) => {}
            other => panic!("expected TablesChanged, got {other:?}"),
        }
    }

    /// Rows that take more than their limit in total, such as one that many table writes name, are a
    /// problem of the request, and nothing is written.
    async fn written_rows_over_their_limit_are_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let note = "x".repeat(1 << 20);
        let long = insert("sample", json!([{"id": "a", "name": "a", "note": note}]));
        lab.write(request([long], [])).await.unwrap();
        let asked = |times: usize| WriteRequest {
            return_rows: true,
            ..request(
                std::iter::repeat_with(|| {
                    table_write(
                        Mode::Update,
                        "sample",
                        json!([{"id": "a", "volume": times}]),
                    )
                })
                .take(times),
                [],
            )
        };
        let problems = assert_problems(lab.write(asked(17)).await);
        let problems: Vec<_> = problems.iter().map(|it| (&it.path, it.code)).collect();
        assert_eq!(problems, [(&None, ErrorCode::ResultTooLarge)]);
        let row = lab.find("sample", json!({"id": "a"})).await;
        assert_eq!(row.first().unwrap().get("volume"), Some(&Value::Null));
        let outcome = lab.write(asked(15)).await.unwrap();
        assert!(
            outcome
                .tables
                .iter()
                .all(|it| it.rows.as_ref().unwrap().len() == 1)
        );
    }

    /// With `return_rows`, the response has the rows in input order as a read shows them.
    async fn written_rows_are_answered_where_wanted(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert("sample", json!([{"name": "b", "volume": 2}, {"name": "a"}]));
        let asked = WriteRequest {
            return_rows: true,
            ..request([rows], [])
        };
        let outcome = lab.write(asked).await.unwrap();
        let answered = outcome.tables.first().unwrap().rows.as_ref().unwrap();
        assert_eq!(answered.len(), 2);
        for (name, row) in ["b", "a"].iter().zip(answered) {
            let row: serde_json::Map<String, Value> = serde_json::from_str(row.as_str()).unwrap();
            assert_eq!(lab.find("sample", json!({"name": name})).await, [row]);
        }
    }
);
