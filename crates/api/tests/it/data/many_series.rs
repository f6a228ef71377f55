//! `POST /api/v1/tools/series`

use std::io::Cursor;

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Float64Type};
use arrow_ipc::reader::StreamReader;
use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{on_postgres::OnPostgres, server::TestServer};

const SERIES: &str = "/api/v1/tools/series";

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let rows = json!([
        { "id": "a", "name": "A", "volume": 1.5 },
        { "id": "b", "name": "B" },
        { "id": "c", "name": "C", "volume": 2 },
    ]);
    lab.insert("sample", rows).await;
    let series = json!([
        { "table": "curve", "parent": "c", "columns": { "od": [0.1, null, 0.3] } },
        { "table": "curve", "parent": "a", "columns": { "od": [4.5] } },
    ]);
    lab.write(json!({ "series": series })).await.json(200);
    lab
}

async fn read(lab: &OnPostgres, body: Value) -> Value {
    lab.client.post(SERIES, &body).await.json(200)
}

#[tokio::test]
async fn series_come_in_the_order_of_their_parents() {
    let lab = lab().await;
    let named = read(
        &lab,
        json!({ "table": "curve", "parents": ["c", "b", "a"] }),
    )
    .await;
    let expected = json!([
        { "parent": "c", "columns": { "order": [0, 1, 2], "od": [0.1, null, 0.3] }, "points": 3 },
        { "parent": "b", "columns": { "order": [], "od": [] }, "points": 0 },
        { "parent": "a", "columns": { "order": [0], "od": [4.5] }, "points": 1 },
    ]);
    assert_eq!(named, expected);
    let matching = json!({ "table": "curve", "filters": { "volume__gte": 1 }, "columns": ["od"] });
    let expected = json!([
        { "parent": "a", "columns": { "od": [4.5] }, "points": 1 },
        { "parent": "c", "columns": { "od": [0.1, null, 0.3] }, "points": 3 },
    ]);
    assert_eq!(read(&lab, matching).await, expected);
    let all = read(
        &lab,
        json!({ "table": "curve", "parents": null, "filters": null }),
    )
    .await;
    assert_eq!(all.as_array().unwrap().len(), 3);
    let none = read(&lab, json!({ "table": "curve", "parents": [] })).await;
    assert_eq!(none, json!([]));
}

#[tokio::test]
async fn a_table_has_the_parents_key_first() {
    let lab = lab().await;
    let download = async |accept: &str, body: Value| {
        let request = lab.client.request(Method::POST, SERIES).json(&body);
        let reply = request.header("accept", accept).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let content_type = reply.headers()["content-type"].to_str().unwrap();
        assert!(content_type.starts_with(accept), "{content_type}");
        reply.bytes().await.unwrap()
    };
    let body = json!({ "table": "curve", "parents": ["c", "b", "a"] });
    let csv = download("text/csv", body.clone()).await;
    assert_eq!(
        csv,
        "sample,order,od\r\nc,0,0.1\r\nc,1,\r\nc,2,0.3\r\na,0,4.5\r\n"
    );
    let arrow = download("application/vnd.apache.arrow.stream", body).await;
    let reader = StreamReader::try_new(Cursor::new(arrow), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let [batch] = batches.as_slice() else {
        panic!("{} batches", batches.len())
    };
    let parents = batch.column_by_name("sample").unwrap().as_string::<i32>();
    assert_eq!(parents.iter().flatten().collect::<String>(), "ccca");
    let od = batch
        .column_by_name("od")
        .unwrap()
        .as_primitive::<Float64Type>();
    assert_eq!((od.value(0), od.is_null(1), od.value(3)), (0.1, true, 4.5));
    let body = json!({ "table": "curve", "filters": { "name": "none" }, "columns": ["od"] });
    assert_eq!(download("text/csv", body.clone()).await, "sample,od\r\n");
    assert!(
        !download("application/vnd.apache.parquet", body)
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn what_is_not_there_is_named_in_every_form() {
    let lab = lab().await;
    let stranger = lab.server.stranger().await;
    for (body, status, reported) in [
        (json!({ "table": "nothing" }), 404, "table not found"),
        (
            json!({ "table": "curve", "parents": ["a", "nobody"] }),
            404,
            "parent \"nobody\" not found",
        ),
        (
            json!({ "table": "curve", "parents": ["a", 7] }),
            404,
            "parent \"7\" not found",
        ),
        (
            json!({ "table": "curve", "parents": ["a", "b", "a"] }),
            400,
            "parents \"a\": named twice",
        ),
        (
            json!({ "table": "sample" }),
            400,
            "\"sample\" has rows, no series: read it with tools/read or tools/query",
        ),
        (
            json!({ "table": "curve", "columns": ["od", "nothing"] }),
            400,
            "columns \"nothing\": \"curve\" has no such column",
        ),
        (
            json!({ "table": "curve", "filters": { "nothing": 1 } }),
            400,
            "filter \"nothing\": \"sample\" has no such column",
        ),
    ] {
        for accept in ["application/json", "text/csv"] {
            let request = lab.client.request(Method::POST, SERIES).json(&body);
            let reply = crate::server::send(request.header("accept", accept)).await;
            assert_eq!(reply.detail(status), reported, "{accept}");
        }
        assert_eq!(
            stranger.post(SERIES, &body).await.detail(404),
            "table not found"
        );
    }
}

#[tokio::test]
async fn parents_and_filters_exclude_each_other() {
    let lab = lab().await;
    let both = json!({ "table": "curve", "parents": ["a"], "filters": {} });
    let problems = lab.client.post(SERIES, &both).await.problems();
    assert_eq!(
        problems,
        [("value_error".to_owned(), "body.filters".to_owned())]
    );
    let problems = lab.client.post(SERIES, &json!({})).await.problems();
    assert_eq!(problems, [("missing".to_owned(), "body.table".to_owned())]);
}

#[tokio::test]
async fn many_series_need_the_read_scope() {
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Write]).await;
    writer
        .post(SERIES, &json!({ "table": "curve" }))
        .await
        .detail(403);
}
