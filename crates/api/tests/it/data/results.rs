//! Results as CSV, Arrow and Parquet, and series column by column.

use std::io::Cursor;

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_ipc::reader::StreamReader;
use bytes::Bytes;
use labdata_domain::{
    catalog::{Table, core_tables},
    people::scope::Scope,
};
use labdata_postgres::DatabaseSettings;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{on_postgres::OnPostgres, server::TestServer};

const QUERY: &str = "/api/v1/tools/query";
const SERIES: &str = "/api/v1/tools/series";
const CSV: &str = "text/csv";
const ARROW: &str = "application/vnd.apache.arrow.stream";
const PARQUET: &str = "application/vnd.apache.parquet";

/// A response: its type and its bytes.
struct Downloaded {
    content_type: String,
    bytes: Bytes,
}

async fn download(request: reqwest::RequestBuilder, accept: &str) -> Downloaded {
    let reply = request.header("accept", accept).send().await.unwrap();
    let status = reply.status();
    let content_type = reply.headers()["content-type"].to_str().unwrap().to_owned();
    let bytes = reply.bytes().await.unwrap();
    let displayed = String::from_utf8_lossy(&bytes);
    assert_eq!(status, StatusCode::OK, "{displayed}");
    Downloaded {
        content_type,
        bytes,
    }
}

fn read_arrow(bytes: Bytes) -> Vec<RecordBatch> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    reader.map(Result::unwrap).collect()
}

fn read_parquet(bytes: Bytes) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let reader = reader.with_batch_size(1 << 20).build().unwrap();
    reader.map(Result::unwrap).next().unwrap()
}

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let rows =
        json!([{ "id": "a", "name": "A, \"first\"", "volume": 1.5 }, { "id": "b", "name": "B" }]);
    lab.insert("sample", rows).await;
    let series = json!([{ "table": "curve", "parent": "a",
        "columns": { "od": [0.1, null, 0.3] } }]);
    lab.write(json!({ "series": series })).await.json(200);
    lab
}

fn asking(lab: &OnPostgres, query: &str) -> reqwest::RequestBuilder {
    let request = lab.client.request(Method::POST, QUERY);
    request.json(&json!({ "query": query }))
}

#[tokio::test]
async fn a_query_comes_in_the_form_that_is_asked_for() {
    let lab = lab().await;
    let every_type = "select 7::int as whole, 1.25::numeric as number, true as flag, \
        timestamptz '2026-03-01 12:00:00.5+01' as at, date '2024-02-29' as day, \
        name, '{\"a\": [1]}'::jsonb as doc, array[1, 2] as list, volume \
        from sample order by name";
    let csv = download(asking(&lab, every_type), CSV).await;
    assert!(csv.content_type.starts_with(CSV), "{}", csv.content_type);
    let text = String::from_utf8(csv.bytes.to_vec()).unwrap();
    assert_eq!(
        text,
        "whole,number,flag,at,day,name,doc,list,volume\r\n\
         7,1.25,true,2026-03-01T11:00:00.5Z,2024-02-29,\"A, \"\"first\"\"\",\"{\"\"a\"\": [1]}\",\"[1,2]\",1.5\r\n\
         7,1.25,true,2026-03-01T11:00:00.5Z,2024-02-29,B,\"{\"\"a\"\": [1]}\",\"[1,2]\",\r\n"
    );
    let arrow = download(asking(&lab, every_type), ARROW).await;
    assert_eq!(arrow.content_type, ARROW);
    let parquet = download(asking(&lab, every_type), PARQUET).await;
    assert_eq!(parquet.content_type, PARQUET);
    let batches = read_arrow(arrow.bytes);
    let [batch] = batches.as_slice() else {
        panic!("{} batches", batches.len())
    };
    assert_eq!(read_parquet(parquet.bytes).columns(), batch.columns());
    let column = |name: &str| batch.column_by_name(name).unwrap();
    assert_eq!(
        column("whole").as_primitive::<Int64Type>().values(),
        &[7, 7]
    );
    let numbers = column("number").as_primitive::<Float64Type>();
    assert_eq!(numbers.values(), &[1.25, 1.25]);
    assert!(column("flag").as_boolean().value(0));
    let at = column("at").as_primitive::<TimestampMicrosecondType>();
    assert_eq!(at.value(0), 1_772_362_800_500_000);
    assert_eq!(at.timezone(), Some("UTC"));
    assert_eq!(column("day").as_primitive::<Date32Type>().value(0), 19_782);
    assert_eq!(column("doc").as_string::<i32>().value(0), "{\"a\": [1]}");
    assert_eq!(column("list").as_string::<i32>().value(1), "[1,2]");
    assert!(column("volume").is_null(1));
}

#[tokio::test]
async fn json_stays_what_comes_unless_it_is_excluded() {
    let lab = lab().await;
    for accept in ["*/*", "text/html", "application/json, text/csv;q=0.9"] {
        let json = download(asking(&lab, "select 1 as n"), accept).await;
        assert_eq!(json.content_type, "application/json", "{accept}");
        let body: Value = serde_json::from_slice(&json.bytes).unwrap();
        assert_eq!(body, json!({ "columns": ["n"], "data": [[1]] }));
    }
    let request = asking(&lab, "select 1").header("accept", "application/json;q=0");
    let refused = crate::server::send(request).await;
    assert!(refused.detail(406).contains(ARROW));
}

#[tokio::test]
async fn a_value_without_a_form_is_told() {
    let lab = lab().await;
    for value in [
        "'infinity'::timestamptz",
        "'Infinity'::float8",
        "'-Infinity'::numeric",
    ] {
        let query = format!("select {value} as ever");
        let request = asking(&lab, &query).header("accept", ARROW);
        let refused = crate::server::send(request).await;
        assert!(refused.detail(400).contains("column ever"), "{value}");
    }
    // In JSON it is a text, as in arrays, and NaN is null.
    let query =
        "select 'Infinity'::float8, '-Infinity'::numeric, 'NaN'::float8, array['Infinity'::float8]";
    let json = download(asking(&lab, query), "application/json").await;
    let body: Value = serde_json::from_slice(&json.bytes).unwrap();
    let expected = json!([["Infinity", "-Infinity", null, ["Infinity"]]]);
    assert_eq!(body["data"], expected);
    let twice = download(asking(&lab, "select 1 as a, 2 as a"), CSV).await;
    assert_eq!(twice.bytes, "a,a_2\r\n1,2\r\n");
}

#[tokio::test]
async fn a_file_of_a_query_has_more_rows_than_json_may() {
    let lab = lab().await;
    let query = "select i, 9007199254740993 + i as large, i / 4.0::float8 as quarter \
        from generate_series(1, 30000) i";
    asking(&lab, query)
        .send()
        .await
        .map(|reply| assert_eq!(reply.status(), 400))
        .unwrap();
    let batches = read_arrow(download(asking(&lab, query), ARROW).await.bytes);
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 30_000);
    let last = batches.last().unwrap();
    let column = last.column_by_name("large").unwrap();
    let large = column.as_primitive::<Int64Type>().values();
    assert_eq!(large.last(), Some(&9_007_199_254_770_993));
    let csv = download(asking(&lab, query), CSV).await;
    let last = String::from_utf8_lossy(&csv.bytes);
    assert_eq!(last.lines().count(), 30_001);
    assert!(last.contains("\r\n30000,9007199254770993,7500"));
    // Nothing is sent before the first rows, so an error at them is a response.
    for wrong in [
        "select 1 / (i - 1) from generate_series(1, 9) i",
        "select nothing",
    ] {
        let refused = crate::server::send(asking(&lab, wrong).header("accept", CSV)).await;
        refused.detail(400);
    }
    let none = download(asking(&lab, "select 1 as a where false"), CSV).await;
    assert_eq!(none.bytes, "a\r\n");
    // An error behind them breaks the body off, so that half a table is never taken for a whole one.
    let late = "select 1 / (i - 20000) from generate_series(1, 30000) i";
    let reply = asking(&lab, late)
        .header("accept", CSV)
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    assert!(reply.bytes().await.is_err());
}

#[tokio::test]
async fn a_series_comes_column_by_column() {
    let lab = lab().await;
    let path = format!("{SERIES}/curve?parent=a");
    let series = lab.client.get(&path).await.json(200);
    assert_eq!(
        series,
        json!({ "parent": "a", "points": 3,
            "columns": { "order": [0, 1, 2], "od": [0.1, null, 0.3] } })
    );
    let csv = download(lab.client.request(Method::GET, &path), CSV).await;
    assert_eq!(csv.bytes, "order,od\r\n0,0.1\r\n1,\r\n2,0.3\r\n");
    let none = lab.client.get(&format!("{SERIES}/curve?parent=b")).await;
    let none = none.json(200);
    assert_eq!(none["columns"], json!({ "order": [], "od": [] }));
    // What is read can be written again.
    let again = json!([{ "table": "curve", "parent": "b", "columns": series["columns"] }]);
    lab.write(json!({ "series": again })).await.json(200);
    let copy = lab.client.get(&format!("{SERIES}/curve?parent=b")).await;
    assert_eq!(copy.json(200)["columns"], series["columns"]);
}

#[tokio::test]
async fn a_series_that_is_not_there_is_told_apart() {
    let lab = lab().await;
    lab.define(
        "signal",
        json!({ "semantic_category": "raw", "columns": [
            { "name": "sample", "data_type": "string", "references": "sample" },
            { "name": "measurement", "data_type": "string", "references": "measurement" },
            { "name": "x", "data_type": "float" },
        ] }),
    )
    .await;
    for (path, status, reported) in [
        ("nothing?parent=a", 404, "table"),
        ("curve?parent=c", 404, "parent"),
        ("sample?parent=a", 400, "no series"),
        ("signal?parent=a", 400, "sample, measurement"),
        ("signal?parent=a&parent_column=x", 400, "parent_column"),
    ] {
        let reply = lab.client.get(&format!("{SERIES}/{path}")).await;
        let detail = reply.detail(status);
        assert!(detail.contains(reported), "{path}: {detail}");
    }
    let unnamed = lab.client.get(&format!("{SERIES}/curve")).await.problems();
    assert_eq!(unnamed, [("missing".to_owned(), "query.parent".to_owned())]);
    let named = format!("{SERIES}/signal?parent=a&parent_column=sample");
    assert_eq!(lab.client.get(&named).await.json(200)["points"], 0);
}

#[tokio::test]
async fn as_many_points_as_one_write_may_bring_come_back() {
    let lab = lab().await;
    let values: Vec<f64> = (0..125_000_u32).map(|n| f64::from(n) / 8.0).collect();
    let series = json!([{ "table": "curve", "parent": "a", "columns": { "od": values } }]);
    lab.write(json!({ "series": series })).await.json(200);
    let path = format!("{SERIES}/curve?parent=a");
    let arrow = download(lab.client.request(Method::GET, &path), ARROW).await;
    let batches = read_arrow(arrow.bytes);
    let floats = |batch: &RecordBatch| {
        let od = batch.column_by_name("od").unwrap();
        od.as_primitive::<Float64Type>().values().to_vec()
    };
    assert_eq!(batches.iter().flat_map(floats).collect::<Vec<_>>(), values);
    let parquet = download(lab.client.request(Method::GET, &path), PARQUET).await;
    assert_eq!(floats(&read_parquet(parquet.bytes)), values);
    let csv = download(lab.client.request(Method::GET, &path), CSV).await;
    let lines = csv.bytes.split(|byte| *byte == b'\n').count();
    assert_eq!(lines, 1 + values.len() + 1);
    let json = lab.client.get(&path).await.json(200);
    assert_eq!(json["columns"]["od"], json!(values));
}

#[tokio::test]
async fn the_schema_tells_how_much_there_is() {
    let lab = lab().await;
    let schema = lab.client.get("/api/v1/tools/schema").await.json(200);
    let count = |name: &str| {
        let mut tables = schema.as_array().unwrap().iter();
        tables.find(|table| table["name"] == name).unwrap()["row_count_estimate"].clone()
    };
    assert_eq!((count("sample"), count("curve")), (json!(2), json!(3)));
    assert_eq!(count("experiment"), json!(0));
}

#[tokio::test]
async fn the_schema_ends_each_table_with_its_system_columns() {
    let lab = lab().await;
    let schema = lab.client.get("/api/v1/tools/schema").await.json(200);
    let raw_core_tables = core_tables().into_iter().filter(Table::is_raw);
    let raw_core_tables: Vec<String> = raw_core_tables.map(|table| table.name).collect();
    for table in schema.as_array().unwrap() {
        let columns = table["columns"].as_array().unwrap();
        let (system, own): (Vec<_>, Vec<_>) =
            columns.iter().partition(|it| it["is_system"] == true);
        assert!(own.iter().all(|it| it["is_system"] == false), "{table}");
        let names: Vec<_> = system.iter().map(|it| &it["name"]).collect();
        let is_raw_core_table = raw_core_tables.iter().any(|name| table["name"] == **name);
        if table["semantic_category"] == "raw" || is_raw_core_table {
            assert_eq!(names, ["created_by_execution_id"]);
            continue;
        }
        assert_eq!(
            names,
            [
                "created_at",
                "updated_at",
                "created_by_execution_id",
                "updated_by_execution_id"
            ]
        );
        assert!(columns.ends_with(&system.into_iter().cloned().collect::<Vec<_>>()));
        let created_at = columns
            .iter()
            .find(|it| it["name"] == "created_at")
            .unwrap();
        assert_eq!(
            (&created_at["id"], &created_at["is_nullable"]),
            (&json!(null), &json!(false))
        );
        assert_eq!(created_at["data_type"], "datetime");
    }
}

#[tokio::test]
async fn series_need_the_read_scope() {
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Write]).await;
    let path = format!("{SERIES}/curve?parent=a");
    writer.get(&path).await.detail(403);
}
