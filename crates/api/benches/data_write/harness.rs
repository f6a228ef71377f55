//! A server of its own, a client, a direct connection, and paired timings.

use std::{
    future::Future,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_postgres::{Client, NoTls};

const KEY: &str = "ldk_benchkey_0123456789abcdefghijklmnopqrstuv";

pub(crate) struct Bench {
    pub(crate) http: reqwest::Client,
    pub(crate) database: Client,
    base: String,
    server: Child,
    postgres: EmbeddedPostgres,
    _directory: TempDir,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        // On the disk that the figures are about, not in a memory file system.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let settings = Settings {
            data_dir: directory.path().to_owned(),
            bin_dir: None,
            durability: Durability::Durable,
        };
        let postgres = EmbeddedPostgres::start(settings).await.unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_labdata"))
            .arg("serve")
            .env("DATABASE_URL", postgres.database_url())
            .env("LABDATA_DATA_DIR", directory.path())
            .env("LABDATA_BIND", "127.0.0.1:0")
            .env("LABDATA_BOOTSTRAP_KEY", KEY)
            .env("LABDATA_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut base = String::new();
        for line in BufReader::new(server.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(at) = line.find("http://") {
                let url = line[at..].split_whitespace().next().unwrap();
                base = String::from(url.trim_end_matches('/'));
                break;
            }
        }
        let (database, connection) = tokio_postgres::connect(postgres.database_url(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let bench = Self {
            http: reqwest::Client::new(),
            database,
            base,
            server,
            postgres,
            _directory: directory,
        };
        bench.define_tables().await;
        bench
    }

    async fn define_tables(&self) {
        let column = |name: &str, data_type: &str| json!({ "name": name, "data_type": data_type });
        self.put(
            "sample",
            json!({ "semantic_category": "curated", "columns": [
            { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
            column("volume", "float"), column("taken_at", "datetime") ] }),
        )
        .await;
        self.put("measurement", json!({ "semantic_category": "curated", "columns": [
            { "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false },
            column("kind", "string"), column("value", "float"), column("replicate", "integer") ] })).await;
        self.put("curve", json!({ "semantic_category": "raw", "columns": [
            { "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false },
            column("order", "integer"), column("t", "float"), column("od", "float") ] })).await;
    }

    pub(crate) async fn put(&self, table: &str, definition: Value) {
        let url = format!("{}/api/v1/tables/{table}", self.base);
        let answer = self
            .http
            .put(url)
            .bearer_auth(KEY)
            .json(&definition)
            .send()
            .await
            .unwrap();
        assert!(
            answer.status().is_success(),
            "{}",
            answer.text().await.unwrap()
        );
    }

    /// The quoted schema of the one organization.
    pub(crate) async fn schema(&self) -> String {
        let row = self
            .database
            .query_one("SELECT schema_name FROM labdata.organization", &[])
            .await
            .unwrap();
        row.get(0)
    }

    pub(crate) async fn write(&self, body: String) -> Value {
        let url = format!("{}/api/v1/data/write", self.base);
        let request = self
            .http
            .post(url)
            .bearer_auth(KEY)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.unwrap();
        let ok = answer.status().is_success();
        let value: Value = answer.json().await.unwrap();
        assert!(ok, "{value}");
        value
    }

    /// A connection for writes without a client's own cost, which would be counted as the server's.
    pub(crate) fn plain_connection(&self) -> impl Future<Output = PlainConnection> + use<> {
        let host = self.base.trim_start_matches("http://").to_owned();
        async move {
            PlainConnection {
                stream: TcpStream::connect(&host).await.unwrap(),
                host,
                received: Vec::new(),
            }
        }
    }

    /// Posts JSON to a path of the API.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let url = format!("{}/api/v1{path}", self.base);
        let answer = self
            .http
            .post(url)
            .bearer_auth(KEY)
            .json(&body)
            .send()
            .await
            .unwrap();
        let ok = answer.status().is_success();
        let value: Value = answer.json().await.unwrap();
        assert!(ok, "{value}");
        value
    }

    /// Posts JSON to a path of the API; yields the answer's body as it is.
    pub(crate) async fn post_for_bytes(&self, path: &str, body: &Value) -> Vec<u8> {
        let url = format!("{}/api/v1{path}", self.base);
        let request = self.http.post(url).bearer_auth(KEY).json(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.bytes().await.unwrap().into()
    }

    /// Gets a path of the API in a form.
    pub(crate) async fn get(&self, path: &str, form: &str) -> reqwest::Response {
        let url = format!("{}/api/v1{path}", self.base);
        let request = self.http.get(url).bearer_auth(KEY).header("accept", form);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer
    }

    pub(crate) fn database_url(&self) -> String {
        self.postgres.database_url().to_owned()
    }

    /// The server's resident memory now, in megabytes.
    pub(crate) fn resident_mb(&self) -> f64 {
        self.status("VmRSS:")
    }

    /// Its most since [`Self::forget_peak`].
    pub(crate) fn peak_mb(&self) -> f64 {
        self.status("VmHWM:")
    }

    pub(crate) fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.server.id()), "5").unwrap();
    }

    fn status(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    }

    pub(crate) async fn stop(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.postgres.stop().await.unwrap();
    }
}

/// One kept-alive connection, written to and read from by hand.
pub(crate) struct PlainConnection {
    stream: TcpStream,
    host: String,
    received: Vec<u8>,
}

impl PlainConnection {
    /// Writes, and waits for the answer, which must be 200.
    pub(crate) async fn write(&mut self, body: &str) {
        let request = format!(
            "POST /api/v1/data/write HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.received.clear();
        while !self.is_complete() {
            assert_ne!(self.stream.read_buf(&mut self.received).await.unwrap(), 0);
        }
        assert!(self.received.starts_with(b"HTTP/1.1 200"));
    }

    fn is_complete(&self) -> bool {
        let text = String::from_utf8_lossy(&self.received);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return false;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        length.is_some_and(|length| body.len() >= length.parse().unwrap())
    }
}

/// Milliseconds that something takes.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> f64 {
    let start = Instant::now();
    work.await;
    as_ms(start.elapsed())
}

fn as_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// As [`report`], for rates.
pub(crate) fn report_at_least(what: &str, limit: f64, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let floor = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!("{what:<58} {ours:>9.1} {floor:>9.1} {ratio:>7.3}  (asked: at least {limit})");
}

/// Prints one line; the ratio is the median of the pairs' own ratios, which drift cancels out of.
pub(crate) fn report(what: &str, limit: f64, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let floor = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!("{what:<58} {ours:>9.1} {floor:>9.1} {ratio:>7.3}  (asked: at most {limit})");
}
