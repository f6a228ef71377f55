//! `POST /api/v1/data/write`: limits of a request, dry runs, and writes that wait, on PostgreSQL.

use std::time::Duration;

use labdata_postgres::DatabaseSettings;
use serde_json::{Value, json};

use super::given::lab;
use crate::on_postgres::{OnPostgres, paths};

#[tokio::test]
async fn more_rows_or_values_than_one_request_may_hold_are_a_problem() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "id": "a", "name": "a" }]))
        .await;
    let rows: Vec<Value> = (0..=10_000)
        .map(|n| json!({ "name": n.to_string() }))
        .collect();
    let (one, rest) = rows.split_first().unwrap();
    let rows = lab
        .write(json!({ "tables": [
            { "table": "sample", "rows": [one] }, { "table": "sample", "rows": rest }] }))
        .await;
    assert_eq!(paths(&rows), [Value::Null]);
    let values = lab
        .write(json!({ "series": [{ "table": "curve", "parent": "a",
            "columns": { "od": vec![0; 250_001] } }] }))
        .await;
    assert_eq!(paths(&values), [Value::Null]);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
}

#[tokio::test]
async fn a_text_that_is_too_long_for_a_unique_column_or_a_key_is_named() {
    let lab = lab().await;
    // Of other letters throughout, as one that repeats itself is stored compressed.
    let long: String = (0x4e00..0x4e00 + 4_000)
        .filter_map(char::from_u32)
        .collect();
    for column in ["name", "id"] {
        let row = json!({ "name": "b", column: long });
        let tables = json!([{ "table": "sample", "rows": [{ "name": "a" }, row] }]);
        let refused = lab.write(json!({ "tables": tables })).await;
        let problem = &refused.json(400)["errors"][0];
        assert_eq!(problem["path"], format!("tables[0].rows[1].{column}"));
        assert_eq!(problem["code"], "value_too_large");
    }
    assert_eq!(lab.rows("sample", json!({})).await.len(), 0);
}

#[tokio::test]
async fn rows_that_are_returned_have_a_limit_in_total_and_nothing_is_written_over_it() {
    let lab = lab().await;
    let note = "x".repeat(1 << 20);
    lab.insert("sample", json!([{ "id": "a", "name": "a", "note": note }]))
        .await;
    let body = |dry_run: bool| {
        let update =
            json!({ "table": "sample", "mode": "update", "rows": [{ "id": "a", "volume": 1 }] });
        json!({ "dry_run": dry_run, "return_rows": true, "tables": vec![update; 1000] })
    };
    for dry_run in [true, false] {
        let refused = lab.write(body(dry_run)).await;
        assert_eq!(paths(&refused), [Value::Null]);
        assert_eq!(refused.json(400)["errors"][0]["code"], "result_too_large");
    }
    assert_eq!(lab.column("sample", "volume").await, [Value::Null]);
}

#[tokio::test]
async fn a_dry_run_answers_as_the_real_run_and_changes_nothing() {
    let lab = lab().await;
    let body = |dry_run: bool| {
        json!({ "dry_run": dry_run, "return_rows": true, "tables": [
            { "table": "sample", "rows": [{ "id": "a", "_ref": "a", "name": "a" }] },
            { "table": "measurement", "rows": [{ "id": "m", "sample": "@a" }] },
            { "table": "sample", "mode": "delete", "cascade": true, "rows": [{ "id": "a" }] }] })
    };
    let mut dry = lab.write(body(true)).await.json(200);
    assert_eq!(dry["job_execution_id"], Value::Null);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 0);
    let executions = lab.client.get("/api/v1/job-executions").await.json(200);
    assert_eq!(executions, json!([]));
    let mut real = lab.write(body(false)).await.json(200);
    assert_eq!(
        real["tables"][2]["cascade_deleted"],
        json!({ "measurement": 1 })
    );
    for response in [&mut dry, &mut real] {
        response["job_execution_id"].take();
        for table in response["tables"].as_array_mut().unwrap() {
            for row in table["rows"].as_array_mut().unwrap() {
                row["created_by_execution_id"].take();
                row["updated_by_execution_id"].take();
            }
        }
    }
    assert_eq!(dry, real);
}

#[tokio::test]
async fn a_write_that_waits_too_long_for_rows_of_another_is_429_with_retry_after() {
    assert_eq!(
        DatabaseSettings::default().lock_timeout,
        Duration::from_secs(10)
    );
    let lab = OnPostgres::with_tables(DatabaseSettings {
        lock_timeout: Duration::from_millis(200),
        ..DatabaseSettings::default()
    })
    .await;
    lab.insert(
        "sample",
        json!([{ "id": "a", "name": "a" }, { "id": "b", "name": "b" }]),
    )
    .await;
    let other = lab.look_behind().await;
    let schema: String = other
        .query_one(
            "SELECT schemaname::text FROM pg_tables WHERE tablename = 'sample'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let hold = format!("BEGIN; SELECT 1 FROM \"{schema}\".sample WHERE id = 'b' FOR UPDATE");
    other.batch_execute(&hold).await.unwrap();
    let body = json!({ "tables": [
        { "table": "sample", "rows": [{ "name": "c" }] },
        { "table": "sample", "mode": "update", "rows": [{ "id": "a", "volume": 1 }, { "id": "b", "volume": 1 }] }] });
    let busy = lab.write(body.clone()).await;
    busy.detail(429);
    let seconds: u32 = busy.header("retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 1);
    assert_eq!(lab.column("sample", "name").await, ["a", "b"]);
    assert_eq!(
        lab.column("sample", "volume").await,
        [Value::Null, Value::Null]
    );
    other.batch_execute("ROLLBACK").await.unwrap();
    lab.write(body).await.json(200);
    assert_eq!(lab.column("sample", "name").await, ["a", "b", "c"]);
}

#[tokio::test]
async fn tables_may_be_changed_while_they_are_written_to() {
    const WRITERS: usize = 4;
    const WRITES: usize = 25;
    let lab = lab().await;
    let writers = (0..WRITERS).map(async |writer| {
        for write in 0..WRITES {
            let rows = json!([{ "name": format!("{writer} {write}") }]);
            lab.insert("sample", rows).await;
        }
    });
    let definer = async {
        let mut columns = vec![
            json!({ "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true }),
            json!({ "name": "volume", "data_type": "float" }),
            json!({ "name": "note", "data_type": "text" }),
            json!({ "name": "parent", "data_type": "string", "references": "sample" }),
        ];
        for number in 0..10 {
            let name = format!("added_{number}");
            columns.push(json!({ "name": name, "data_type": "integer" }));
            lab.define(
                "sample",
                json!({ "semantic_category": "curated", "columns": columns }),
            )
            .await;
            // A column can be written as soon as it was acknowledged.
            lab.insert("sample", json!([{ "name": name, (name): number }]))
                .await;
        }
    };
    futures::future::join(futures::future::join_all(writers), definer).await;
    let rows = lab.rows("sample", json!({})).await;
    assert_eq!(rows.len(), WRITERS * WRITES + 10);
    let last = lab.rows("sample", json!({ "added_9": 9 })).await;
    assert_eq!(last.len(), 1);
}
