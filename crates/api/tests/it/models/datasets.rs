//! Datasets of queries, and what all datasets have.

use arrow_array::{
    RecordBatch,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use labdata_domain::{people::scope::Scope, storage::StorageQuota};
use reqwest::Method;
use serde_json::{Value, json};

use super::dataset_lab::{DatasetLab, PATH, columns};
use crate::server::{Client, Reply, send};

const WINE: &str = "select name, volume from sample order by name";

async fn with_samples() -> DatasetLab {
    let lab = DatasetLab::start().await;
    let columns = json!([
        { "name": "name", "data_type": "string", "is_nullable": false },
        { "name": "volume", "data_type": "float" },
    ]);
    let table = json!({ "semantic_category": "curated", "columns": columns });
    lab.on.define("sample", table).await;
    let rows = json!([{ "name": "a", "volume": 1.5 }, { "name": "b" }]);
    lab.on.insert("sample", rows).await;
    lab
}

async fn post_once(client: &Client, key: &str, body: &Value) -> Reply {
    let request = client.request(Method::POST, PATH);
    send(request.header("idempotency-key", key).json(body)).await
}

#[tokio::test]
async fn a_query_becomes_a_dataset() {
    let lab = with_samples().await;
    let body = json!({ "name": "wine", "description": "of 2026", "query": WINE });
    let dataset = lab.client.post(PATH, &body).await.json(200);
    assert_eq!(columns(&dataset), [("name", "text"), ("volume", "float")]);
    assert_eq!(dataset["columns"][1]["null_count"], 1);
    assert_eq!(dataset["columns"][1]["distinct_count"], 1);
    for (field, value) in [
        ("name", json!("wine")),
        ("description", json!("of 2026")),
        ("row_count", json!(2)),
        ("query", json!(WINE)),
        ("file_id", Value::Null),
    ] {
        assert_eq!(dataset[field], value, "{field}");
    }
    let path = format!("{PATH}/{}", dataset["id"].as_str().unwrap());
    assert_eq!(lab.client.get(&path).await.json(200), dataset);
    assert_eq!(lab.client.get(PATH).await.json(200), json!([dataset]));
}

#[tokio::test]
async fn the_preview_has_the_first_rows() {
    let lab = DatasetLab::start().await;
    let query = "select n, repeat('x', n * 100) as long, json_build_object('n', n) as json \
                 from generate_series(1, 60) as n";
    let dataset = lab.of_query(query).await.json(200);
    let path = format!("{PATH}/{}/preview", dataset["id"].as_str().unwrap());
    let preview = lab.client.get(&path).await.json(200);
    assert_eq!(preview["columns"], json!(["n", "long", "json"]));
    assert_eq!(preview["row_count"], 60);
    let rows = preview["data"].as_array().unwrap();
    assert_eq!(rows.len(), 50);
    assert_eq!(rows[0], json!([1, "x".repeat(100), { "n": 1 }]));
    let cut = format!("{}…", "x".repeat(1_000));
    assert_eq!(rows[49], json!([50, cut, { "n": 50 }]));
    let empty = lab.of_query("select 1 as n where false").await.json(200);
    let path = format!("{PATH}/{}/preview", empty["id"].as_str().unwrap());
    assert_eq!(lab.client.get(&path).await.json(200)["data"], json!([]));
}

#[tokio::test]
async fn a_dataset_stays_as_it_is_when_its_source_changes() {
    let lab = with_samples().await;
    let dataset = lab.of_query(WINE).await.json(200);
    lab.on.insert("sample", json!([{ "name": "c" }])).await;
    let rows = lab.rows(&dataset).await;
    let [rows] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    let names = rows.column(0).as_string::<i32>().iter().flatten();
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    let volumes = rows.column(1).as_primitive::<Float64Type>();
    assert_eq!(volumes.iter().collect::<Vec<_>>(), [Some(1.5), None]);
    assert_eq!(lab.of_query(WINE).await.json(200)["row_count"], 3);
}

#[tokio::test]
async fn a_long_result_is_stored_whole() {
    let lab = DatasetLab::start().await;
    let query = "select n, repeat(md5(n::text), 10) as text from generate_series(1, 200000) as n";
    let dataset = lab.of_query(query).await.json(200);
    assert_eq!(dataset["row_count"], 200_000);
    assert_eq!(dataset["columns"][0]["distinct_count"], Value::Null);
    let rows = lab.rows(&dataset).await;
    let numbers = rows.iter().flat_map(|batch: &RecordBatch| {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        numbers.values().to_vec()
    });
    assert!(numbers.eq(1..=200_000));
}

#[tokio::test]
async fn a_dataset_has_exactly_one_source() {
    let lab = DatasetLab::start().await;
    let file = "0191d5a4-0000-7000-8000-000000000000";
    for body in [
        json!({ "name": "wine" }),
        json!({ "name": "wine", "query": null, "file_id": null }),
        json!({ "name": "wine", "query": "select 1", "file_id": file }),
    ] {
        let problems = lab.client.post(PATH, &body).await.problems();
        let expected = ("value_error".to_owned(), "body".to_owned());
        assert_eq!(problems, [expected], "{body}");
    }
    let problems = lab.client.post(PATH, &json!({ "name": "" })).await;
    assert_eq!(problems.problems()[0].1, "body.name");
}

#[tokio::test]
async fn a_query_that_makes_no_dataset_is_told_why() {
    let lab = with_samples().await;
    let long = format!("select 1 as \"{}\"", "é".repeat(31));
    lab.of_query(&long).await.json(200);
    let stored = lab.stored();
    for (query, reason) in [
        ("select 1 as a, 2 as a", "two columns are named \"a\""),
        ("select from sample", "the data has no columns"),
        ("delete from sample", "SELECT"),
        ("select nothing from sample", "\"nothing\" does not exist"),
        ("select * from secret", "does not exist"),
        ("select name from sample where name = %s", "1 placeholders"),
        ("select 1 as \"a\tb\"", "control characters"),
        ("select 'infinity'::timestamptz as at", "column at"),
        ("select 'Infinity'::float8 as v", "column v"),
        ("select '-Infinity'::float4 as v", "column v"),
        (
            "select 1 / (n - 20000) as a from generate_series(1, 20000) as n",
            "division by zero",
        ),
    ] {
        let detail = lab.of_query(query).await.detail(400);
        assert!(detail.contains(reason), "{query}: {detail}");
    }
    assert_eq!(lab.stored(), stored, "nothing of them is left");
    assert_eq!(
        lab.client
            .get(PATH)
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_repeated_request_makes_one_dataset() {
    let lab = with_samples().await;
    let body = json!({ "name": "wine", "query": WINE });
    // The organization's first query: its role is created on the way.
    let first = post_once(&lab.client, "k", &body).await;
    let first = first.json(200);
    let stored = lab.stored();
    for _ in 0..2 {
        let again = post_once(&lab.client, "k", &body).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.json(200), first);
    }
    assert_eq!(lab.stored(), stored);
    let other = json!({ "name": "beer", "query": WINE });
    let refused = post_once(&lab.client, "k", &other).await.problems();
    assert_eq!(refused[0].1, "header.Idempotency-Key");
    // A refusal is not kept.
    let wrong = json!({ "name": "wine", "query": "select volume from nothing" });
    post_once(&lab.client, "w", &wrong).await.detail(400);
    let mended = post_once(&lab.client, "w", &body).await;
    mended.json(200);
    assert_eq!(
        lab.client
            .get(PATH)
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn another_organization_sees_no_dataset() {
    let lab = with_samples().await;
    let dataset = lab.of_query(WINE).await.json(200);
    let file = lab.upload("a.csv", "a\n1\n").await;
    let stranger = lab.on.server.stranger().await;
    let path = format!("{PATH}/{}", dataset["id"].as_str().unwrap());
    for path in [
        path.clone(),
        format!("{path}/download"),
        format!("{path}/preview"),
    ] {
        assert_eq!(stranger.get(&path).await.detail(404), "dataset not found");
    }
    assert_eq!(stranger.get(PATH).await.json(200), json!([]));
    let body = json!({ "name": "theirs", "file_id": file });
    let refused = stranger.post(PATH, &body).await;
    assert_eq!(refused.detail(404), "file not found");
    let body = json!({ "name": "theirs", "query": WINE });
    stranger.post(PATH, &body).await.detail(400);
    let unknown = format!("{PATH}/0191d5a4-0000-7000-8000-000000000000");
    lab.client.get(&unknown).await.detail(404);
}

#[tokio::test]
async fn datasets_are_made_with_write_and_read_with_read() {
    let lab = with_samples().await;
    let dataset = lab.of_query(WINE).await.json(200);
    let reader = lab.on.server.client(&[Scope::Read]).await;
    let writer = lab.on.server.client(&[Scope::Write]).await;
    let body = json!({ "name": "wine", "query": WINE });
    let refused = reader.post(PATH, &body).await.detail(403);
    assert!(refused.contains("write"), "{refused}");
    writer.post(PATH, &body).await.json(200);
    let path = format!("{PATH}/{}/download", dataset["id"].as_str().unwrap());
    reader.get(&path).await.json(200);
    assert_eq!(writer.get(&path).await.code(403), "scope_missing");
}

#[tokio::test]
async fn datasets_are_listed_in_pages() {
    let lab = DatasetLab::start().await;
    let mut expected = Vec::new();
    for number in 0..3 {
        let dataset = lab.of_query(&format!("select {number} as n")).await;
        expected.insert(0, dataset.json(200));
    }
    let mut found = Vec::new();
    let mut next = Some(format!("{PATH}?limit=2"));
    while let Some(page) = next {
        let reply = lab.client.get(&page).await;
        next = reply.next();
        found.extend(reply.json(200).as_array().unwrap().clone());
    }
    assert_eq!(found, expected);
    let problems = lab.client.get(&format!("{PATH}?limit=0")).await.problems();
    assert_eq!(problems[0].1, "query.limit");
}

#[tokio::test]
async fn datasets_count_for_the_quota() {
    let lab = DatasetLab::with_quota(StorageQuota::of_bytes(2_000_000)).await;
    let query = "select md5(n::text) || md5((-n)::text) as a from generate_series(1, 100000) as n";
    let refused = lab.of_query(query).await.detail(507);
    assert!(refused.contains("LABDATA_STORAGE_QUOTA"), "{refused}");
    assert_eq!(lab.stored(), 0, "nothing of it is left");
    let dataset = lab.of_query("select 1 as a").await.json(200);
    let size = dataset["size_bytes"].as_u64().unwrap();
    // A file that would fit without the dataset.
    let rest = usize::try_from(2_000_000 - size + 1).unwrap();
    let instrument = json!({ "name": "reader" });
    let instrument = lab.client.post("/api/v1/instruments", &instrument).await;
    let part = reqwest::multipart::Part::bytes(vec![b'x'; rest]).file_name("a.csv");
    let id = instrument.json(200)["id"].as_str().unwrap().to_owned();
    let form = reqwest::multipart::Form::new()
        .text("instrument_id", id)
        .part("file", part);
    let request = lab.client.request(Method::POST, "/api/v1/files");
    send(request.multipart(form)).await.detail(507);
}

#[tokio::test]
async fn names_are_one_line_of_text() {
    let lab = with_samples().await;
    for name in ["  ", "a\nb", "\u{a0}"] {
        let dataset = json!({ "name": name, "query": WINE });
        let refused = lab.client.post(PATH, &dataset).await;
        assert_eq!(refused.code(400), "invalid_name", "{name:?}");
        let training = json!({
            "name": name, "target_column": "volume",
            "dataset_id": "0191d5a4-0000-7000-8000-000000000000",
        });
        let refused = lab.client.post("/api/v1/ml-models", &training).await;
        assert_eq!(refused.code(400), "invalid_name", "{name:?}");
        let key = json!({ "name": name, "scopes": ["read"] });
        let refused = lab.client.post("/api/v1/api-keys", &key).await;
        assert_eq!(refused.code(400), "invalid_name", "{name:?}");
        let notice = json!({ "title": name, "dedupe_key": "k" });
        let refused = lab.client.post("/api/v1/notifications", &notice).await;
        assert_eq!(refused.code(400), "invalid_notification", "{name:?}");
    }
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn a_training_that_cannot_succeed_is_not_queued() {
    let lab = DatasetLab::start().await;
    let query = "select n as x, n % 2 = 0 as two, 7 as same, null::float8 as nothing, \
                 case when n < 10 then n end as few from generate_series(1, 20) as n";
    let dataset = lab.of_query(query).await.json(200);
    for (target, features, reason) in [
        ("same", None, "every row has the same value"),
        ("nothing", None, "no value in any row"),
        ("few", None, "a value in 9 rows; training needs at least 10"),
        ("two", Some(json!([])), "feature_columns is empty"),
    ] {
        let mut training =
            json!({ "name": "m", "dataset_id": dataset["id"], "target_column": target });
        if let Some(features) = features {
            training["feature_columns"] = features;
        }
        let refused = lab.client.post("/api/v1/ml-models", &training).await;
        assert_eq!(refused.code(400), "invalid_training", "{target}");
        let detail = refused.detail(400);
        assert!(detail.contains(reason), "{target}: {detail}");
    }
}
