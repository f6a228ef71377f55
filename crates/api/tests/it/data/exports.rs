//! `GET /api/v1/tables/{name}/export`

use std::{io::Cursor, time::Duration};

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use arrow_ipc::reader::StreamReader;
use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use labdata_test_database::TestDatabase;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::{
    on_postgres::OnPostgres,
    process::{Program, directory},
    server::TestServer,
};

fn path(table: &str, format: &str) -> String {
    format!("/api/v1/tables/{table}/export?format={format}")
}

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let rows =
        json!([{ "id": "a", "name": "A, \"first\"", "volume": 1.5 }, { "id": "b", "name": "B" }]);
    lab.insert("sample", rows).await;
    let series =
        json!([{ "table": "curve", "parent": "a", "columns": { "od": [0.1, null, 0.3] } }]);
    lab.write(json!({ "series": series })).await.json(200);
    lab
}

fn places(batches: &[RecordBatch]) -> Vec<i64> {
    let places = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("order").unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    });
    places.collect()
}

#[tokio::test]
async fn formulas_are_neutralized_in_csv_if_so_wanted_in_exports_queries_and_series() {
    let lab = lab().await;
    lab.insert(
        "sample",
        json!([{ "id": "=id", "name": "=1+1", "volume": -1.5 }]),
    )
    .await;
    let series = json!([{ "table": "curve", "parent": "=id", "columns": { "od": [-0.5] } }]);
    lab.write(json!({ "series": series })).await.json(200);
    for (wanted, mark) in [(false, ""), (true, "'")] {
        let path = format!("{}&neutralize_formulas={wanted}", path("sample", "csv"));
        let table = lab.client.get(&path).await.text;
        assert!(table.contains(&format!("{mark}=1+1,")), "{table}");
        assert!(table.contains(",-1.5"), "{table}");
        let csv = async |path: &str, body: Value| {
            let mut body = body;
            body["neutralize_formulas"] = wanted.into();
            let request = lab
                .client
                .request(Method::POST, path)
                .header("accept", "text/csv");
            let reply = crate::server::send(request.json(&body)).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            reply.text
        };
        let query = json!({
            "query": "select name as \"@name\", volume from sample where volume < 0",
        });
        let expected = format!("{mark}@name,volume\r\n{mark}=1+1,-1.5\r\n");
        assert_eq!(csv("/api/v1/tools/query", query).await, expected);
        let series = json!({ "table": "curve", "parents": ["=id"] });
        let series = csv("/api/v1/tools/series", series).await;
        let (_, line) = series.split_once("\r\n").unwrap();
        assert!(line.starts_with(&format!("{mark}=id,")), "{series}");
        assert!(line.ends_with(",-0.5\r\n"), "{series}");
    }
}

/// A person who opens the console's SQL page runs what stands there.
#[tokio::test]
async fn the_first_statement_of_the_consoles_sql_page_runs() {
    let lab = lab().await;
    let page = include_str!("../../../../console/assets/pages/query.js");
    let (_, statement) = page.split_once("const FIRST = '").unwrap();
    let (statement, _) = statement.split_once('\'').unwrap();
    let body = json!({ "query": statement });
    let result = lab
        .client
        .post("/api/v1/tools/query", &body)
        .await
        .json(200);
    assert_eq!(result["columns"][0], "name");
    let rows = result["data"].as_array().unwrap();
    assert!(rows.iter().any(|row| row[0] == "sample"), "{result}");
}

#[tokio::test]
async fn a_table_comes_in_every_format_with_a_file_name() {
    let lab = lab().await;
    let download = async |table: &str, format: &str| {
        let request = lab.client.request(Method::GET, &path(table, format));
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let header = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
        let headers = (header("content-type"), header("content-disposition"));
        (headers, reply.bytes().await.unwrap())
    };
    let ((content_type, disposition), csv) = download("curve", "csv").await;
    assert!(content_type.starts_with("text/csv"), "{content_type}");
    assert_eq!(disposition, "attachment; filename=\"curve.csv\"");
    assert_eq!(csv, "sample,order,od\r\na,0,0.1\r\na,1,\r\na,2,0.3\r\n");
    let (_, csv) = download("sample", "csv").await;
    let text = String::from_utf8(csv.to_vec()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let header = lines.remove(0);
    assert!(
        header.starts_with("id,name,volume,note,parent,created_at,"),
        "{header}"
    );
    lines.sort_unstable();
    assert!(
        lines[0].starts_with("a,\"A, \"\"first\"\"\",1.5,,,2026-"),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with("b,B,,,,2026-"), "{}", lines[1]);
    let ((content_type, disposition), arrow) = download("curve", "arrow").await;
    assert_eq!(content_type, "application/vnd.apache.arrow.stream");
    assert_eq!(disposition, "attachment; filename=\"curve.arrows\"");
    let reader = StreamReader::try_new(Cursor::new(arrow), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(places(&batches), [0, 1, 2]);
    let ((_, disposition), parquet) = download("curve", "parquet").await;
    assert_eq!(disposition, "attachment; filename=\"curve.parquet\"");
    let reader = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(places(&batches), [0, 1, 2]);
    let (_, empty) = download("operation", "csv").await;
    assert!(empty.starts_with(b"id,name,operation_type,"));
}

#[tokio::test]
async fn tables_that_are_not_there_and_wrong_formats_are_refused() {
    let lab = lab().await;
    for missing in ["nothing", "job", "Sample", "sample;"] {
        let refused = lab.client.get(&path(missing, "csv")).await;
        assert_eq!(refused.detail(404), "table not found", "{missing}");
    }
    let stranger = lab.server.stranger().await;
    let refused = stranger.get(&path("sample", "csv")).await;
    assert_eq!(refused.detail(404), "table not found");
    let refused = lab.client.get(&path("sample", "xlsx")).await.problems();
    assert_eq!(refused, [("enum".to_owned(), "query.format".to_owned())]);
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Write]).await;
    let refused = writer.get(&path("sample", "csv")).await;
    assert_eq!(refused.code(403), "scope_missing");
}

#[tokio::test]
async fn as_many_rows_and_points_as_were_written_come() {
    let lab = lab().await;
    let rows = |from: u32| (from..from + 5000).map(|n| json!({ "name": format!("{n}") }));
    for from in [0, 5000, 10_000, 15_000] {
        lab.insert("sample", rows(from).collect()).await;
    }
    let csv = lab.client.request(Method::GET, &path("sample", "csv"));
    let csv = csv.send().await.unwrap().text().await.unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 + 20_000);
    let values: Vec<u32> = (0..100_000).collect();
    let series = json!([{ "table": "curve", "parent": "b", "columns": { "od": values } }]);
    lab.write(json!({ "series": series })).await.json(200);
    let arrow = lab.client.request(Method::GET, &path("curve", "arrow"));
    let arrow = arrow.send().await.unwrap().bytes().await.unwrap();
    let reader = StreamReader::try_new(Cursor::new(arrow), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let mut expected = vec![0, 1, 2];
    expected.extend(0..100_000);
    assert_eq!(places(&batches), expected);
}

/// Rows that are more than the buffers between a server and its client take, in parts of 4 MB.
fn large_rows() -> impl Iterator<Item = Value> {
    let text = "x".repeat(1_000_000);
    (0..10).map(move |write| {
        let row = |row| json!({ "name": format!("{write} {row}"), "description": text });
        Value::from_iter([0, 1, 2, 3].map(row))
    })
}

/// Begins an export; the client has read its head, and nothing since.
async fn begun(request: reqwest::RequestBuilder) -> reqwest::Response {
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status(), 200);
    reply
}

/// Waits until no export reads from the database any more.
async fn until_none_reads(behind: &tokio_postgres::Client) {
    let reading = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND state = 'active' AND pid <> pg_backend_pid() AND query LIKE 'SELECT%\"experiment\"%'";
    while behind
        .query_one(reading, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        > 0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_connection() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    for rows in large_rows() {
        lab.insert("experiment", rows).await;
    }
    let behind = lab.look_behind().await;
    let export = || begun(lab.client.request(Method::GET, &path("experiment", "csv")));
    for _ in 0..5 {
        // As many as a user may have at a time.
        drop(export().await);
        until_none_reads(&behind).await;
    }
    let whole = export().await.bytes().await.unwrap();
    assert!(whole.len() > 40_000_000, "{}", whole.len());
}

/// Waits until a statement of this database waits for a lock.
async fn until_one_waits(behind: &tokio_postgres::Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND wait_event_type = 'Lock'";
    while behind
        .query_one(waiting, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_table_that_is_changed_or_dropped_meanwhile_is_exported_as_it_was() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let behind = lab.look_behind().await;
    let definition = |column: Value| {
        let name = json!({ "name": "name", "data_type": "string" });
        json!({ "semantic_category": "curated", "columns": [name, column] })
    };
    let before = definition(json!({ "name": "description", "data_type": "text" }));
    lab.define("wide", before).await;
    for rows in large_rows() {
        lab.insert("wide", rows).await;
    }
    let after = json!({ "name": "remark", "data_type": "text", "renamed_from": "description" });
    let table = "/api/v1/tables/wide";
    let rename = lab
        .client
        .request(Method::PUT, table)
        .json(&definition(after));
    let force = format!("{table}?force=true");
    let drop_table = lab.client.request(Method::DELETE, &force);
    for (change, column) in [(rename, "description"), (drop_table, "remark")] {
        let export = begun(lab.client.request(Method::GET, &path("wide", "csv"))).await;
        let export = async {
            until_one_waits(&behind).await;
            export.text().await.unwrap()
        };
        let (changed, csv) = tokio::join!(change.send(), export);
        assert!(changed.unwrap().status().is_success());
        assert!(csv.starts_with(&format!("id,name,{column},")));
        assert_eq!(csv.lines().count(), 1 + 40);
        assert_eq!(csv.matches(&"x".repeat(1_000_000)).count(), 40);
    }
    lab.client.get(&path("wide", "csv")).await.detail(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stalls_is_cut_off_after_the_set_time() {
    const KEY: &str = "ldk_stalling_0123456789abcdefghijklmnopqrstuvwxyz";
    let (directory, own) = (directory(), TestDatabase::new().await);
    let settings = [
        ("DATABASE_URL", own.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
        ("LABDATA_STALL_SECONDS", "2"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let http = reqwest::Client::new();
    for rows in large_rows() {
        let url = format!("{}/api/v1/data/write", program.url);
        let body = json!({ "tables": [{ "table": "experiment", "rows": rows }] });
        let write = http.post(url).bearer_auth(KEY).json(&body);
        assert_eq!(write.send().await.unwrap().status(), 200);
    }
    let url = format!("{}{}", program.url, path("experiment", "csv"));
    let export = || begun(http.get(&url).bearer_auth(KEY));
    let stalled = export().await;
    let (behind, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    until_none_reads(&behind).await;
    assert!(stalled.bytes().await.is_err(), "the body ends early");
}

#[tokio::test]
async fn exports_and_series_are_planned_again_while_columns_come_and_go() {
    let lab = lab().await;
    let column = |name: &str| json!({ "name": name, "data_type": "float" });
    let parent = json!({ "name": "sample", "data_type": "string", "references": "sample" });
    let columns = json!([parent, column("od"), column("passing")]);
    let definition = json!({ "semantic_category": "raw", "columns": columns });
    let define = async || {
        let request = lab.client.request(Method::PUT, "/api/v1/tables/trace");
        let defined = crate::server::send(request.json(&definition)).await;
        assert!(defined.status.is_success(), "{}", defined.text);
    };
    define().await;
    let changing = async {
        for _ in 0..25 {
            let column = "/api/v1/tables/trace/columns/passing?force=true";
            assert_eq!(lab.client.delete(column).await.status, 204);
            define().await;
        }
    };
    let reading = async {
        for _ in 0..60 {
            let export = lab.client.get(&path("trace", "csv")).await;
            assert_eq!(export.status, 200, "{}", export.text);
            let series = json!({ "table": "trace", "parents": ["a"] });
            lab.client
                .post("/api/v1/tools/series", &series)
                .await
                .json(200);
        }
    };
    futures::join!(changing, reading);
}
