//! What [`labdata_ports::data::DataStore`] promises of writes that insert rows.

use labdata_domain::{
    catalog::ColumnDefinition,
    data_write::{WriteRequest, check},
    execution::{ExecutionState, FinalStatus, Origin},
    ids::ExecutionId,
    page::PageRequest,
    scalar::{DataType, KeyValue},
    timestamp,
};
use labdata_ports::{
    PortError,
    data::{WriteError, WriteTarget},
    executions::ExecutionFilter,
    jobs::JobFilter,
};
use serde_json::{Value, json};

use crate::{
    definitions::{column, curated, key, reference, required, sample},
    given::{self, at},
    lab::{DataHarness, Lab, assert_problems, insert, labelled_sample, request, writing_time},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::data_write`].
#[macro_export]
macro_rules! data_write_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, data_write:
            a_write_of_nothing_is_recorded,
            rows_are_created_with_ids_in_input_order,
            values_of_every_type_read_back_as_written,
            given_keys_of_every_type_are_kept,
            defaults_fill_what_rows_leave_out,
            system_columns_tell_when_and_by_what,
            labels_connect_rows_of_one_request,
            ids_and_lookups_are_answered,
            questions_about_a_dropped_table_conflict,
            written_rows_are_answered_where_wanted,
            a_repeated_value_is_a_problem_of_the_request,
            a_repeated_group_of_values_is_a_problem,
            a_repeated_key_is_a_problem,
            a_reference_to_a_row_that_went_is_a_problem,
            a_failed_write_leaves_nothing_behind,
            a_dry_run_answers_alike_and_leaves_nothing_behind,
            a_dry_run_finds_the_problems_of_a_write,
            a_plan_for_other_tables_is_refused,
            a_new_execution_is_completed_with_the_write,
            the_job_is_created_only_when_missing,
            an_open_execution_stays_open,
            a_closed_execution_accepts_nothing,
            an_overdue_execution_accepts_nothing,
            an_unknown_execution_is_not_found,
            another_organizations_execution_is_not_found,
            another_organizations_rows_do_not_exist,
            ten_thousand_rows_are_one_write,
        }
    };
}

/// Fails unless the lab is as before anything was written.
async fn assert_nothing_written(lab: &Lab) {
    for table in ["sample", "measurement", "curve", "job", "job_execution"] {
        assert_eq!(lab.count(table).await, 0, "{table}");
    }
    let executions = lab
        .executions
        .list(lab.organization, &ExecutionFilter::default(), ALL)
        .await
        .unwrap();
    assert_eq!(executions.items, []);
}

/// A request without tables and series succeeds and has an execution.
pub async fn a_write_of_nothing_is_recorded<H: DataHarness>(harness: &H) {
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

/// The answer counts the rows per table write and has their keys in input order.
pub async fn rows_are_created_with_ids_in_input_order<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let writes = [
        insert(
            "sample",
            json!([{"name": "b", "id": "my-id"}, {"name": "a"}]),
        ),
        insert("measurement", json!([{"value": 1}])),
        insert("sample", json!([{"name": "c"}])),
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

/// Every type keeps its values, extreme ones as well, and null.
pub async fn values_of_every_type_read_back_as_written<H: DataHarness>(harness: &H) {
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
pub async fn given_keys_of_every_type_are_kept<H: DataHarness>(harness: &H) {
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
        assert_eq!(lab.column(&table, "code").await, [value.clone()]);
        assert_eq!(lab.column(&child, &table).await, vec![value; 4]);
    }
}

/// Rows that leave a column out get its default; an explicit null stays null.
pub async fn defaults_fill_what_rows_leave_out<H: DataHarness>(harness: &H) {
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
        lab.column("liquid", "volume").await,
        [json!(1.5), json!(2.0), Value::Null]
    );
    assert_eq!(
        lab.column("liquid", "note").await,
        [json!("x"), Value::Null, Value::Null]
    );
}

/// The server's own columns have the time and the execution of the write.
pub async fn system_columns_tell_when_and_by_what<H: DataHarness>(harness: &H) {
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
pub async fn labels_connect_rows_of_one_request<H: DataHarness>(harness: &H) {
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
pub async fn ids_and_lookups_are_answered<H: DataHarness>(harness: &H) {
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

/// A question about a table that is gone conflicts rather than being answered wrongly.
pub async fn questions_about_a_dropped_table_conflict<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let asked = insert(
        "measurement",
        json!([{"sample": "s1"}, {"sample": {"name": "a"}}]),
    );
    let checked = check(request([asked], []), &*lab.tables().await);
    for table in ["curve", "measurement", "sample"] {
        lab.catalog
            .drop_table(lab.organization, table, false)
            .await
            .unwrap();
    }
    match lab.data.answer(lab.organization, checked.questions()).await {
        Err(PortError::Conflict(_)) => {}
        other => panic!("expected Conflict, got {other:?}"),
    }
}

/// Where the rows are asked for, they are answered in input order as they read.
pub async fn written_rows_are_answered_where_wanted<H: DataHarness>(harness: &H) {
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

/// A value that must be unique and is not: a problem without path that names table and value.
pub async fn a_repeated_value_is_a_problem_of_the_request<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    lab.insert("sample", json!([{"name": "taken name"}])).await;
    for rows in [
        json!([{"name": "taken name"}]),
        json!([{"name": "twice"}, {"name": "twice"}]),
    ] {
        let value = rows[0]["name"].as_str().unwrap().to_owned();
        let problems = assert_problems(lab.write(request([insert("sample", rows)], [])).await);
        let problem = problems.first().unwrap();
        assert_eq!(problem.path, None);
        assert!(
            problem.message.contains("sample") && problem.message.contains(&value),
            "{problem:?}"
        );
    }
    assert_eq!(lab.count("sample").await, 1);
}

/// Columns that must be unique together may repeat one by one, and with null, but not together.
pub async fn a_repeated_group_of_values_is_a_problem<H: DataHarness>(harness: &H) {
    let lab = Lab::empty(harness).await;
    let mut well = curated(
        "well",
        vec![
            column("plate", DataType::String),
            column("place", DataType::Integer),
        ],
    );
    well.unique_together = vec![vec!["plate".to_owned(), "place".to_owned()]];
    lab.define(&well).await.unwrap();
    let rows = json!([
        {"plate": "p", "place": 1}, {"plate": "p", "place": 2}, {"plate": "q", "place": 1},
        {"plate": "p", "place": null}, {"plate": "p", "place": null},
    ]);
    lab.insert("well", rows).await;
    let again = insert(
        "well",
        json!([{"plate": "q", "place": 2}, {"plate": "p", "place": 2}]),
    );
    assert_problems(lab.write(request([again], [])).await);
    assert_eq!(lab.count("well").await, 5);
}

/// A given key that a row has already is a problem, and that row stays as it is.
pub async fn a_repeated_key_is_a_problem<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    lab.insert("sample", json!([{"id": "s1", "name": "a"}]))
        .await;
    let again = insert("sample", json!([{"id": "s1", "name": "b"}]));
    assert_problems(lab.write(request([again], [])).await);
    assert_eq!(lab.column("sample", "name").await, ["a"]);
}

/// A row that was there when the write was planned and is not when it is applied: a problem.
pub async fn a_reference_to_a_row_that_went_is_a_problem<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let execution = lab
        .insert("sample", json!([{"id": "s1", "name": "a"}]))
        .await;
    let plan = lab
        .plan(request(
            [insert("measurement", json!([{"sample": "s1"}]))],
            [],
        ))
        .await
        .unwrap();
    lab.revert(execution).await.unwrap();
    let target = Lab::new_execution("some job");
    assert_problems(lab.apply(&plan, target, writing_time()).await);
    assert_eq!(lab.count("measurement").await, 0);
}

/// When one row of many fails, none of any table is there, no execution and no job.
pub async fn a_failed_write_leaves_nothing_behind<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let writes = [
        insert(
            "sample",
            json!([labelled_sample("a"), labelled_sample("b")]),
        ),
        insert("measurement", json!([{"sample": "@a", "value": 1}])),
        insert("sample", json!([{"name": "c"}, {"name": "a"}])),
    ];
    let curve = crate::lab::series("curve", json!("@b"), json!({"time": [0, 1, 2]}));
    assert_problems(lab.write(request(writes, [curve])).await);
    assert_nothing_written(&lab).await;
    lab.insert("sample", json!([{"name": "a"}])).await;
}

/// A dry run counts and answers as the write would, without an execution, and changes nothing.
pub async fn a_dry_run_answers_alike_and_leaves_nothing_behind<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let dry = WriteRequest {
        dry_run: true,
        return_rows: true,
        ..request(
            [
                insert("sample", json!([{"_ref": "a", "id": "s1", "name": "a"}])),
                insert("measurement", json!([{"sample": "@a"}, {"sample": "@a"}])),
            ],
            [crate::lab::series(
                "curve",
                json!("@a"),
                json!({"time": [0, 1]}),
            )],
        )
    };
    let outcome = lab.write(dry.clone()).await.unwrap();
    assert_eq!(outcome.execution, None);
    assert_eq!(outcome.refs.get("a").map(String::as_str), Some("s1"));
    let created: Vec<u64> = outcome.tables.iter().map(|table| table.created).collect();
    assert_eq!(created, [1, 2]);
    assert!(
        outcome
            .tables
            .iter()
            .all(|table| table.rows.as_ref().is_some_and(|rows| !rows.is_empty()))
    );
    assert_eq!(outcome.series.first().unwrap().points_written, 2);
    assert_nothing_written(&lab).await;
    let open = harness.execution(lab.organization, at(0), None).await;
    let outcome = lab.write_under(open.id, dry).await.unwrap();
    assert_eq!(outcome.execution, None);
    assert_eq!(lab.execution(open.id).await, open);
    assert_eq!(lab.count("sample").await, 0);
}

/// A dry run judges what only the store can judge as well.
pub async fn a_dry_run_finds_the_problems_of_a_write<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    lab.insert("sample", json!([{"name": "a"}])).await;
    let again = request([insert("sample", json!([{"name": "a"}]))], []);
    assert_problems(
        lab.write(WriteRequest {
            dry_run: true,
            ..again
        })
        .await,
    );
    let fresh = request([insert("sample", json!([{"name": "b"}]))], []);
    let fresh = WriteRequest {
        dry_run: true,
        ..fresh
    };
    let closed = harness.execution(lab.organization, at(0), Some(1)).await;
    match lab.write_under(closed.id, fresh).await {
        Err(WriteError::ExecutionEnded(_)) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A plan that was made before tables changed is refused, and nothing of it is written.
pub async fn a_plan_for_other_tables_is_refused<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let plan = lab
        .plan(request([insert("sample", json!([{"name": "a"}]))], []))
        .await
        .unwrap();
    let mut wider = sample();
    wider.columns.push(column("ph", DataType::Float));
    lab.define(&wider).await.unwrap();
    match lab
        .apply(&plan, Lab::new_execution("some job"), writing_time())
        .await
    {
        Err(WriteError::CatalogChanged) => {}
        other => panic!("expected CatalogChanged, got {other:?}"),
    }
    assert_nothing_written(&lab).await;
}

/// A write that names no execution has one of its own, completed at the time of the write.
pub async fn a_new_execution_is_completed_with_the_write<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let plan = lab
        .plan(request([insert("sample", json!([{"name": "a"}]))], []))
        .await
        .unwrap();
    let target = Lab::new_execution("nightly import");
    let outcome = lab
        .apply(&plan, target.clone(), writing_time())
        .await
        .unwrap();
    let WriteTarget::New {
        execution: id,
        job: job_id,
        ..
    } = target
    else {
        panic!("not new")
    };
    assert_eq!(outcome.execution, Some(id));
    let execution = lab.execution(id).await;
    assert_eq!(
        execution.state,
        ExecutionState::Completed { at: writing_time() }
    );
    assert_eq!(execution.origin, Origin::DataWrite);
    assert_eq!(
        (execution.created_at, execution.started_at),
        (writing_time(), Some(writing_time()))
    );
    assert_eq!(
        (execution.job_id, execution.job_name.as_str()),
        (job_id, "nightly import")
    );
    let job = lab.jobs.get(lab.organization, job_id).await.unwrap();
    assert_eq!((job.name.as_str(), job.archived), ("nightly import", false));
}

/// The job of the name that is there is used, even under another id.
pub async fn the_job_is_created_only_when_missing<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let job = harness.job(lab.organization, "nightly import").await;
    for name in ["a", "b"] {
        let rows = insert("sample", json!([{ "name": name }]));
        let plan = lab.plan(request([rows], [])).await.unwrap();
        let target = Lab::new_execution("nightly import");
        let outcome = lab.apply(&plan, target, writing_time()).await.unwrap();
        let execution = lab.execution(outcome.execution.unwrap()).await;
        assert_eq!(execution.job_id, job.id);
    }
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let jobs = lab
        .jobs
        .list(lab.organization, &JobFilter::default(), all)
        .await
        .unwrap();
    assert_eq!(jobs.items, [job]);
}

/// Writes under an open execution are recorded under it and leave it as it is.
pub async fn an_open_execution_stays_open<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let open = harness.execution(lab.organization, at(0), Some(60)).await;
    for name in ["a", "b"] {
        let rows = insert("sample", json!([{ "name": name }]));
        let outcome = lab.write_under(open.id, request([rows], [])).await.unwrap();
        assert_eq!(outcome.execution, Some(open.id));
    }
    assert_eq!(lab.execution(open.id).await, open);
    let by = lab.column("sample", "created_by_execution_id").await;
    assert_eq!(by, vec![json!(open.id.to_string()); 2]);
}

/// Fails unless a write under the execution is refused because it ended so, and nothing written.
async fn assert_ended(lab: &Lab, execution: ExecutionId, how: &str) {
    let rows = insert("sample", json!([{"name": "late"}]));
    match lab.write_under(execution, request([rows], [])).await {
        Err(WriteError::ExecutionEnded(text)) => assert!(text.contains(how), "{text}"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(lab.count("sample").await, 0);
}

/// An execution that was closed, either way, accepts no write.
pub async fn a_closed_execution_accepts_nothing<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    for (status, how) in [
        (FinalStatus::Completed, "completed"),
        (FinalStatus::Failed, "failed"),
    ] {
        let execution = harness.execution(lab.organization, at(0), None).await;
        lab.executions
            .close(lab.organization, execution.id, status, at(1))
            .await
            .unwrap();
        assert_ended(&lab, execution.id, how).await;
    }
}

/// An execution past its deadline accepts no write, even though no sweeper has come by.
pub async fn an_overdue_execution_accepts_nothing<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let execution = harness.execution(lab.organization, at(0), Some(1)).await;
    assert_ended(&lab, execution.id, "failed").await;
}

/// An id that no execution has is not found, and nothing is written.
pub async fn an_unknown_execution_is_not_found<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let rows = insert("sample", json!([{"name": "a"}]));
    match lab
        .write_under(ExecutionId::new(given::uuid()), request([rows], []))
        .await
    {
        Err(WriteError::ExecutionNotFound) => {}
        other => panic!("expected ExecutionNotFound, got {other:?}"),
    }
    assert_nothing_written(&lab).await;
}

/// Another organization's open execution is answered like one that does not exist.
pub async fn another_organizations_execution_is_not_found<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let other = Lab::named(harness, "another lab").await;
    let foreign = harness.execution(other.organization, at(0), None).await;
    let rows = insert("sample", json!([{"name": "a"}]));
    match lab.write_under(foreign.id, request([rows], [])).await {
        Err(WriteError::ExecutionNotFound) => {}
        other => panic!("expected ExecutionNotFound, got {other:?}"),
    }
    assert_nothing_written(&lab).await;
}

/// What one organization writes is neither read, nor found by id or lookup, nor in the way of
/// another one with tables of the same names.
pub async fn another_organizations_rows_do_not_exist<H: DataHarness>(harness: &H) {
    let ours = Lab::named(harness, "ours").await;
    let theirs = Lab::named(harness, "theirs").await;
    ours.define_tables().await;
    theirs.define_tables().await;
    theirs
        .insert("sample", json!([{"id": "s1", "name": "a"}]))
        .await;
    theirs
        .insert("carrier", json!([{"id": "c1", "name": "plate"}]))
        .await;
    assert_eq!(ours.count("sample").await, 0);
    assert_eq!(ours.count("carrier").await, 0);
    let asked = json!([{"sample": "s1"}, {"sample": {"name": "a"}}]);
    let problems = ours
        .plan(request([insert("measurement", asked)], []))
        .await
        .unwrap_err();
    assert_eq!(problems.len(), 2);
    ours.insert("sample", json!([{"id": "s1", "name": "a", "note": "ours"}]))
        .await;
    ours.insert("carrier", json!([{"id": "c1", "name": "plate"}]))
        .await;
    assert_eq!(theirs.column("sample", "note").await, [Value::Null]);
}

/// The most rows that a request may have are written in one go.
pub async fn ten_thousand_rows_are_one_write<H: DataHarness>(harness: &H) {
    let lab = Lab::with_tables(harness).await;
    let samples: Vec<Value> = (0..2_000)
        .map(|number| labelled_sample(&format!("s{number}")))
        .collect();
    let measurements: Vec<Value> = (0..8_000)
        .map(|number| json!({"sample": format!("@s{}", number % 2_000), "value": number}))
        .collect();
    let writes = [
        insert("sample", json!(samples)),
        insert("measurement", json!(measurements)),
    ];
    let outcome = lab.write(request(writes, [])).await.unwrap();
    let created: Vec<u64> = outcome.tables.iter().map(|table| table.created).collect();
    assert_eq!((created, outcome.refs.len()), (vec![2_000, 8_000], 2_000));
    assert_eq!(
        lab.find("measurement", json!({"sample__name": "s1999"}))
            .await
            .len(),
        4
    );
    assert_eq!(
        lab.find("measurement", json!({"value__gte": 7_999}))
            .await
            .len(),
        1
    );
}
