//! `POST /api/v1/tools/query`

use std::time::Duration;

use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use serde_json::{Value, json};

use crate::{on_postgres::OnPostgres, server::TestServer};

const QUERY: &str = "/api/v1/tools/query";

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let rows = json!([{ "id": "a", "name": "A", "volume": 1.5 }, { "id": "b", "name": "B" }]);
    lab.insert("sample", rows).await;
    let series = json!([{ "table": "curve", "parent": "a",
        "columns": { "od": [0.1, null, 0.3] } }]);
    lab.write(json!({ "series": series })).await.json(200);
    lab
}

async fn ask(lab: &OnPostgres, query: &str, params: Value) -> Value {
    lab.client
        .post(QUERY, &json!({ "query": query, "params": params }))
        .await
        .json(200)
}

#[tokio::test]
async fn rows_and_points_are_queried_with_placeholders() {
    let lab = lab().await;
    assert_eq!(
        ask(
            &lab,
            "select name, volume from sample where name = %s",
            json!(["A"])
        )
        .await,
        json!({ "columns": ["name", "volume"], "data": [["A", 1.5]] })
    );
    let points = "select s.name, count(*), avg(od) from curve c join sample s on s.id = c.sample_id \
                  where s.name = any($1) group by s.name";
    let response = ask(&lab, points, json!([["A", "B"]])).await;
    assert_eq!(response["data"], json!([["A", 3, 0.2]]));
    let none = ask(&lab, "select * from experiment", Value::Null).await;
    assert_eq!(none["data"], json!([]));
    assert_eq!(none["columns"][0], "id");
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_told_and_nothing_else() {
    let lab = lab().await;
    for (query, params, reported) in [
        (
            "select nme from sample",
            json!([]),
            "column \"nme\" does not exist",
        ),
        ("select 1 / 0", json!([]), "division by zero"),
        (
            "select * from sample where name = %s",
            json!([]),
            "1 placeholders",
        ),
        ("delete from sample", json!([]), "one SELECT"),
        (
            "select * from generate_series(1, 10001)",
            json!([]),
            "more than 10,000 rows",
        ),
        (
            "select repeat('x', 17000000)",
            json!([]),
            "larger than 16 MiB",
        ),
    ] {
        let reply = lab
            .client
            .post(QUERY, &json!({ "query": query, "params": params }))
            .await;
        let detail = reply.detail(400);
        assert!(detail.contains(reported), "{query}: {detail}");
    }
    let shape = lab
        .client
        .post(QUERY, &json!({ "query": 5, "params": {} }))
        .await
        .problems();
    assert_eq!(shape.len(), 2);
}

#[tokio::test]
async fn a_query_ends_when_its_client_leaves() {
    let lab = lab().await;
    let endless = "with recursive r(n) as (select 1 union all select n + 1 from r) \
                   select count(*) from r";
    let body = json!({ "query": endless });
    let asking = lab.client.post(QUERY, &body);
    assert!(
        tokio::time::timeout(Duration::from_millis(700), asking)
            .await
            .is_err()
    );
    let behind = lab.look_behind().await;
    let running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'labdata query' \
                   AND datname = current_database()";
    for _ in 0..60 {
        let count: i64 = behind.query_one(running, &[]).await.unwrap().get(0);
        if count == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the query runs on");
}

#[tokio::test]
async fn a_store_without_sql_says_so() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    let reply = client.post(QUERY, &json!({ "query": "select 1" })).await;
    assert!(reply.detail(400).contains("PostgreSQL"));
}
