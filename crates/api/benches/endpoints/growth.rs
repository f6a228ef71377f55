//! Cost of requests with ten times the rows, points, files and executions.

use std::time::Instant;

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::{
    connection::Request,
    report::{CONNECTIONS, Report, timed},
    support::{Server, percentile},
    tables::{curve, curve_write, put, read, rows, sample, upsert, values},
};

/// Stored records before the first measurement; ten times as many before the second.
const ROWS: usize = 100_000;
const CURVES: usize = 1_728;
const FILES: usize = 10_000;
const EXECUTIONS: usize = 10_000;
/// Points of a curve, as of a plate reader: 997,056 points at first.
const POINTS: usize = 577;
/// Curves of one write: 250,000 values are the most.
const CURVES_OF_WRITE: usize = 216;
/// Requests of each kind in a round, and rounds. The best round counts, as a busy machine is slow at times.
const REQUESTS: usize = 320;
const ROUNDS: usize = 10;
/// The most that a request may cost with ten times the data.
const MOST: f64 = 1.3;

const INSERT_FILES: &str = "INSERT INTO labdata.file (id, organization_id, instrument_id, source_type, \
         status, original_path, file_name, path_folded, extension, path_hash, content_type, \
         object_key, size_bytes, crc32c, uploaded_at, created_at) \
     SELECT gen_random_uuid(), i.organization_id, i.id, 'manual_upload', 'confirmed', path, path, path, 'csv', \
         sha256(convert_to(path, 'UTF8')), 'text/csv', gen_random_uuid(), 1000, 'AAAAAA==', at, at \
     FROM generate_series($1::int, $2::int) n \
     JOIN labdata.instrument i ON i.name = 'Growth' \
     CROSS JOIN LATERAL (SELECT '2024-01-01Z'::timestamptz + n * interval '1 minute', \
         concat('stored_', n, '.csv')) f (at, path)";

const INSERT_EXECUTIONS: &str = "INSERT INTO labdata.job_execution (id, organization_id, job_id, origin, status, \
         started_by, created_at, started_at, completed_at) \
     SELECT gen_random_uuid(), e.organization_id, e.job_id, e.origin, 'completed', e.started_by, at, at, at \
     FROM generate_series($1::int, $2::int) n \
     CROSS JOIN LATERAL (SELECT '2024-01-01Z'::timestamptz + n * interval '1 minute') t (at) \
     JOIN labdata.job_execution e ON e.id = $3::text::uuid";

struct Growth<'a> {
    base: &'a str,
    database: Client,
    instrument: String,
    execution: String,
    /// Number of requests so far, so that each writes something else.
    sent: usize,
}

pub(crate) async fn measure(server: &Server, report: &mut Report) {
    let mut growth = Growth {
        base: &report.base,
        database: server.database().await,
        instrument: String::new(),
        execution: String::new(),
        sent: 0,
    };
    growth.prepare().await;
    growth.store(0, 1).await;
    let before = growth.times().await;
    let start = Instant::now();
    growth.store(1, 10).await;
    println!(
        "\nTen times the data ({} rows, {} points, {} files, {} executions; stored in {:.0} s):\n",
        ROWS * 10,
        CURVES * POINTS * 10,
        FILES * 10,
        EXECUTIONS * 10,
        start.elapsed().as_secs_f64()
    );
    println!("| request | p50 ms | with ten times the data | ratio | at most {MOST} |");
    println!("|---|--:|--:|--:|---|");
    for ((name, before), (_, after)) in before.into_iter().zip(growth.times().await) {
        let ratio = after / before;
        let verdict = if ratio <= MOST { "yes" } else { "**no**" };
        println!("| {name} | {before:.2} | {after:.2} | {ratio:.2} | {verdict} |");
    }
}

impl Growth<'_> {
    async fn one(&self, request: Request) -> crate::connection::Response {
        let (_, mut responses) = timed(self.base, 1, vec![request]).await;
        responses.remove(0)
    }

    async fn post(&self, path: &str, body: &Value) -> crate::connection::Response {
        self.one(Request::new("POST", path).json(body)).await
    }

    async fn prepare(&mut self) {
        self.one(put("sample", &sample())).await;
        self.one(put("curve", &curve())).await;
        let instrument = self
            .post("/instruments", &json!({ "name": "Growth" }))
            .await;
        self.instrument = instrument.text("/id");
        let execution = self
            .post("/job-executions", &json!({ "job_name": "growth" }))
            .await;
        self.execution = execution.text("/job_execution_id");
    }

    /// Stores the records from `from` times to `to` times the first number.
    async fn store(&mut self, from: usize, to: usize) {
        for part in from..to {
            let lines = (0..ROWS).map(|n| format!("stored {},{n}", part * ROWS + n));
            let lines = lines.collect::<Vec<_>>().join("\n");
            let import = Request::new("POST", "/tables/sample/import");
            let file = format!("name,volume\n{lines}");
            self.one(import.form(&[("mode", "insert")], "rows.csv", file.as_bytes()))
                .await;
        }
        for first in (from * CURVES..to * CURVES).step_by(CURVES_OF_WRITE) {
            let numbers = first..first + CURVES_OF_WRITE;
            let samples: Vec<Value> = numbers
                .clone()
                .map(|n| json!({ "_ref": format!("{n}"), "name": format!("of curve {n}") }))
                .collect();
            let series: Vec<Value> = numbers
                .map(|n| json!({ "table": "curve", "parent": format!("@{n}"), "columns": values(n, POINTS) }))
                .collect();
            let tables = json!([{ "table": "sample", "rows": samples }]);
            self.post(
                "/data/write",
                &json!({ "tables": tables, "series": series }),
            )
            .await;
        }
        let range = |count: usize| {
            let number = |part: usize| i32::try_from(part * count).unwrap();
            (number(from), number(to) - 1)
        };
        let (first, last) = range(FILES);
        self.database
            .execute(INSERT_FILES, &[&first, &last])
            .await
            .unwrap();
        let (first, last) = range(EXECUTIONS);
        let execution = &self.execution;
        self.database
            .execute(INSERT_EXECUTIONS, &[&first, &last, execution])
            .await
            .unwrap();
        self.database.batch_execute("VACUUM ANALYZE").await.unwrap();
        self.database.batch_execute("CHECKPOINT").await.unwrap();
    }

    /// The median of each request's best round, in milliseconds.
    async fn times(&mut self) -> Vec<(&'static str, f64)> {
        let names = KINDS.iter().map(|(name, _)| *name);
        let mut best = vec![f64::INFINITY; KINDS.len()];
        let parents = self.parents().await;
        for _ in 0..ROUNDS {
            for ((_, request), best) in KINDS.iter().zip(&mut best) {
                let requests: Vec<Request> = (0..REQUESTS)
                    .map(|n| request(self, &parents, self.sent + n))
                    .collect();
                self.sent += REQUESTS;
                let (times, _) = timed(self.base, CONNECTIONS, requests).await;
                *best = best.min(percentile(times, 50));
            }
        }
        names.zip(best).collect()
    }

    /// Ids of some samples that have a curve.
    async fn parents(&self) -> Vec<String> {
        let query = json!({ "query": "select id from sample where name like 'of curve 1__'" });
        let response = self.post("/tools/query", &query).await;
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let rows = body["data"].as_array().unwrap().iter();
        rows.map(|row| row[0].as_str().unwrap().to_owned())
            .collect()
    }
}

type Kind = (&'static str, fn(&Growth<'_>, &[String], usize) -> Request);

const KINDS: [Kind; 13] = [
    ("read a row by its name", |_, _, n| {
        read(&json!({ "name": format!("stored {}", n * 37 % ROWS) }))
    }),
    ("read the newest 50 rows", |_, _, _| read(&json!({}))),
    ("write a row", |_, _, n| {
        let write = json!({ "tables": [{ "table": "sample", "rows": rows("growth", n, 1) }] });
        Request::new("POST", "/data/write").json(&write)
    }),
    ("upsert 10 rows by name", |_, _, n| {
        upsert("stored", n * 10 % ROWS)
    }),
    ("write a row and its curve", |_, _, n| {
        curve_write("growth curve", n)
    }),
    ("read a curve", |_, parents, n| {
        Request::new(
            "GET",
            format!("/tools/series/curve?parent={}", parents[n % parents.len()]),
        )
    }),
    ("describe the tables", |_, _, _| {
        Request::new("GET", "/tools/schema")
    }),
    ("list 50 files", |_, _, _| Request::new("GET", "/files")),
    ("search files by a name", |_, _, n| {
        Request::new("GET", format!("/files?query=stored_{}.", n * 7 % FILES))
    }),
    ("upload a file", |growth, _, n| {
        let parts = [("instrument_id", growth.instrument.as_str())];
        Request::new("POST", "/files").form(&parts, &format!("new {n}.csv"), &[b'x'; 10_000])
    }),
    ("list 50 executions", |_, _, _| {
        Request::new("GET", "/job-executions")
    }),
    ("list failed executions", |_, _, _| {
        Request::new("GET", "/job-executions?status=failed")
    }),
    ("open an execution", |_, _, _| {
        Request::new("POST", "/job-executions").json(&json!({ "job_name": "growth" }))
    }),
];
