//! Tables, and what is written to them and read from them.

use serde_json::{Value, json};

use crate::{
    connection::Request,
    report::{Report, timed},
    requests::{FEW, READS, WRITES, delete, each, get, ids, many, post, same},
};

/// Points of a curve, as of a plate reader.
const POINTS: usize = 577;

pub(crate) async fn measure(report: &mut Report) {
    tables(report).await;
    let parents = data(report).await;
    reads(report, &parents).await;
}

/// Definition of `sample` or another table of rows.
pub(crate) fn sample() -> Value {
    json!({ "semantic_category": "curated", "columns": [
        { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
        { "name": "volume", "data_type": "float" } ] })
}

/// Definition of a table of curves of `sample`.
pub(crate) fn curve() -> Value {
    json!({ "semantic_category": "raw", "columns": [
        { "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false },
        { "name": "hours", "data_type": "float" }, { "name": "od600", "data_type": "float" } ] })
}

pub(crate) fn put(table: &str, definition: &Value) -> Request {
    Request::new("PUT", format!("/tables/{table}")).json(definition)
}

async fn tables(report: &mut Report) {
    let names: Vec<String> = (0..FEW).map(|n| format!("table_{n}")).collect();
    report
        .run(
            "PUT /tables/{name}",
            "a new table",
            each(&names, |name| put(name, &sample())),
        )
        .await;
    report
        .run(
            "PUT /tables/{name}",
            "no change",
            same(WRITES, &put("table_0", &sample())),
        )
        .await;
    let column = |name: &str| delete(format!("/tables/{name}/columns/volume"));
    report
        .run(
            "DELETE /tables/{name}/columns/{column}",
            "",
            each(&names, column),
        )
        .await;
    report
        .run(
            "DELETE /tables/{name}",
            "",
            each(&names, |name| delete(format!("/tables/{name}"))),
        )
        .await;
}

/// Values of a curve, the same for the same number.
pub(crate) fn values(number: usize, points: usize) -> Value {
    let value = |point: usize| ((number * 31 + point * 7) % 4_000) as f64 / 1_000.0;
    let hours: Vec<f64> = (0..points).map(|point| point as f64 / 12.0).collect();
    json!({ "hours": hours, "od600": (0..points).map(value).collect::<Vec<f64>>() })
}

/// A write of rows named `prefix number`.
pub(crate) fn rows(prefix: &str, first: usize, count: usize) -> Vec<Value> {
    let row =
        |n: usize| json!({ "name": format!("{prefix} {}", first + n), "volume": n as f64 / 2.0 });
    (0..count).map(row).collect()
}

/// A write of a sample and its curve.
pub(crate) fn curve_write(prefix: &str, number: usize) -> Request {
    post(
        "/data/write",
        &json!({
        "tables": [{ "table": "sample", "rows": [
            { "_ref": "s", "name": format!("{prefix} {number}"), "volume": 1 }] }],
        "series": [{ "table": "curve", "parent": "@s", "columns": values(number, POINTS) }] }),
    )
}

pub(crate) fn upsert(prefix: &str, number: usize) -> Request {
    post(
        "/data/write",
        &json!({ "tables": [{
        "table": "sample", "rows": rows(prefix, number, 10), "mode": "upsert", "key": ["name"] }] }),
    )
}

pub(crate) fn read(filters: &Value) -> Request {
    post(
        "/tools/read",
        &json!({ "target_name": "sample", "target_type": "table", "filters": filters, "limit": 50 }),
    )
}

/// Measures writes; returns the keys of rows that have a curve.
async fn data(report: &mut Report) -> Vec<String> {
    for (table, definition) in [("sample", sample()), ("curve", curve())] {
        timed(&report.base, 1, vec![put(table, &definition)]).await;
    }
    let write = "POST /data/write";
    let insert = |n: usize| {
        post(
            "/data/write",
            &json!({ "tables": [{ "table": "sample", "rows": rows("one", n, 1) }] }),
        )
    };
    report.run(write, "1 row", many(WRITES * 4, insert)).await;
    let insert = |n: usize| {
        post(
            "/data/write",
            &json!({ "tables": [{ "table": "sample", "rows": rows("hundred", n * 100, 100) }] }),
        )
    };
    report.run(write, "100 rows", many(WRITES, insert)).await;
    report
        .run(
            write,
            "upsert of 10 rows",
            many(WRITES, |n| upsert("hundred", n * 10)),
        )
        .await;
    let curves = report
        .run(
            write,
            "a row and its curve of 577 points",
            many(WRITES, |n| curve_write("curve", n)),
        )
        .await;
    ids(&curves, "/tables/0/ids/0")
}

async fn reads(report: &mut Report, parents: &[String]) {
    report
        .run(
            "POST /tools/read",
            "1 row by its name",
            many(READS, |n| read(&json!({ "name": format!("one {n}") }))),
        )
        .await;
    report
        .run(
            "POST /tools/read",
            "the newest 50 rows",
            same(READS, &read(&json!({}))),
        )
        .await;
    let query = |sql: &str| post("/tools/query", &json!({ "query": sql }));
    report
        .run(
            "POST /tools/query",
            "an aggregate of 33,600 rows",
            same(WRITES, &query("select count(*), avg(volume) from sample")),
        )
        .await;
    report
        .run("GET /tools/schema", "", same(READS, &get("/tools/schema")))
        .await;
    let history = |id: &str| get(format!("/tables/sample/rows/{id}/history"));
    report
        .run(
            "GET /tables/{name}/rows/{id}/history",
            "",
            each(parents, history),
        )
        .await;
    let series = |id: &str| get(format!("/tools/series/curve?parent={id}"));
    report
        .run(
            "GET /tools/series/{table}",
            "577 points",
            each(parents, series),
        )
        .await;
    let ten = |n: usize| {
        post(
            "/tools/series",
            &json!({ "table": "curve", "parents": parents[n * 10..n * 10 + 10] }),
        )
    };
    report
        .run("POST /tools/series", "10 curves", many(WRITES / 10, ten))
        .await;
    let access = get("/tables/curve/access");
    report
        .run("GET /tables/{name}/access", "", same(READS, &access))
        .await;
    let export = get("/tables/curve/export?format=arrow");
    report
        .run_at(
            2,
            "GET /tables/{name}/export",
            "184,640 points as Arrow, 2 at a time an organization",
            same(32, &export),
        )
        .await;
    let import = |n: usize| {
        let lines = (0..100).map(|row| format!("import {n} {row},{row}"));
        let lines: Vec<String> = lines.collect();
        let lines = lines.join("\n");
        Request::new("POST", "/tables/sample/import").form(
            &[("mode", "insert")],
            "rows.csv",
            format!("name,volume\n{lines}").as_bytes(),
        )
    };
    report
        .run(
            "POST /tables/{name}/import",
            "100 rows of CSV, one after another",
            many(FEW, import),
        )
        .await;
    let preview = |_: usize| {
        let lines: Vec<String> = (0..100).map(|row| format!("row {row};{row},5")).collect();
        let text = format!("name;volume\n{}\n", lines.join("\n"));
        Request::new("POST", "/tools/preview-table").form(&[], "rows.txt", text.as_bytes())
    };
    report
        .run("POST /tools/preview-table", "100 rows", many(FEW, preview))
        .await;
}
