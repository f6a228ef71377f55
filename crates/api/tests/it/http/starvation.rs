//! One organization that uses all it can, beside another that works.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;
use labdata_postgres::DatabaseSettings;
use labdata_test_database::TestDatabase;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinHandle};
use tokio_postgres::NoTls;

use crate::{
    on_postgres::{OnPostgres, waiting_statements},
    process::{Program, directory, labdata, run, text},
};

const GREEDY: &str = "ldk_greedy77_0123456789abcdefghijklmnopqrstuvwxyz";

struct Lab {
    program: Program,
    behind: tokio_postgres::Client,
    /// Keys of two users of the greedy organization: one user alone has half of its share.
    greedy: [String; 2],
    /// A key of the other organization.
    key: String,
    http: Client,
    written: AtomicU32,
    // Dropped after the program.
    _own: TestDatabase,
}

impl Lab {
    async fn start() -> Self {
        let (directory, own) = (directory(), TestDatabase::new().await);
        let settings = [
            ("DATABASE_URL", own.url()),
            ("LABDATA_BOOTSTRAP_KEY", GREEDY),
        ];
        let program = Program::serve(directory.path(), &settings);
        let key_of = |organization| {
            let arguments = [
                "api-key",
                "create",
                "--organization",
                organization,
                "--user",
                "a@example.org",
                "--scopes",
                "read,write,admin",
            ];
            let created = run(labdata(directory.path(), &arguments).env("DATABASE_URL", own.url()));
            assert!(created.status.success(), "{}", text(&created.stderr));
            text(&created.stdout).trim().to_owned()
        };
        let (colleague, key) = (key_of("default"), key_of("other"));
        let (behind, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let lab = Self {
            program,
            behind,
            greedy: [GREEDY.to_owned(), colleague],
            key,
            http: Client::new(),
            written: AtomicU32::new(0),
            _own: own,
        };
        lab.write(GREEDY).await;
        lab
    }

    fn request(&self, method: Method, path: &str, key: &str) -> RequestBuilder {
        let url = format!("{}/api/v1/{path}", self.program.url);
        self.http.request(method, url).bearer_auth(key)
    }

    async fn write(&self, key: &str) {
        let name = self.written.fetch_add(1, Ordering::Relaxed).to_string();
        let rows = json!({ "tables": [{ "table": "experiment", "rows": [{ "name": name }] }] });
        let request = self.request(Method::POST, "data/write", key).json(&rows);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }

    fn read(&self, key: &str) -> RequestBuilder {
        let body = json!({ "target_name": "experiment", "target_type": "core-table" });
        self.request(Method::POST, "tools/read", key).json(&body)
    }

    /// Begins `number` reads of the greedy organization, half of them for each of its users.
    fn greedy_reads(&self, number: usize) -> Vec<JoinHandle<reqwest::Result<Response>>> {
        let keys = self.greedy.iter().cycle().take(number);
        let reads = keys.map(|key| tokio::spawn(self.read(key).send()));
        reads.collect()
    }

    /// Makes every read of the greedy organization wait until the returned connection is closed.
    async fn block_greedy_reads(&self) {
        let schema: String = self
            .behind
            .query_one(
                "SELECT 'org_' || replace(id::text, '-', '') FROM labdata.organization \
                 WHERE name = 'default'",
                &[],
            )
            .await
            .unwrap()
            .get(0);
        let lock = format!("BEGIN; LOCK TABLE {schema}.experiment IN ACCESS EXCLUSIVE MODE");
        self.behind.batch_execute(&lock).await.unwrap();
    }

    async fn until_waiting(&self, fits: impl Fn(i64) -> bool) -> i64 {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let waiting = waiting_statements(&self.behind).await;
            if fits(waiting) || Instant::now() > until {
                return waiting;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reads_of_one_organization_keep_no_other_from_its_work() {
    let lab = Lab::start().await;
    lab.block_greedy_reads().await;
    let slow = lab.greedy_reads(24);
    // The greedy organization holds its share, and not all of the 16 connections.
    let waiting = lab.until_waiting(|waiting| waiting >= 11).await;
    assert_eq!(waiting, 11);
    for _ in 0..3 {
        // The key is new to the server, which has to look it up.
        for step in ["me", "write", "read"] {
            let begun = Instant::now();
            match step {
                "me" => {
                    let list = lab.request(Method::GET, "api-keys", &lab.key);
                    assert_eq!(list.send().await.unwrap().status(), 200);
                }
                "write" => lab.write(&lab.key).await,
                _ => {
                    let rows: Value = lab
                        .read(&lab.key)
                        .send()
                        .await
                        .unwrap()
                        .json()
                        .await
                        .unwrap();
                    assert!(!rows.as_array().unwrap().is_empty());
                }
            }
            assert!(
                begun.elapsed() < Duration::from_secs(2),
                "{step}: {:?}",
                begun.elapsed()
            );
        }
    }
    lab.behind.batch_execute("COMMIT").await.unwrap();
    for reply in join_all(slow).await {
        assert_eq!(reply.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_clients_that_left_are_cancelled_and_their_connections_not_lent() {
    let lab = Lab::start().await;
    lab.block_greedy_reads().await;
    for _ in 0..3 {
        let slow = lab.greedy_reads(8);
        assert_eq!(lab.until_waiting(|waiting| waiting == 8).await, 8);
        for request in slow {
            request.abort();
        }
        let begun = Instant::now();
        assert_eq!(lab.until_waiting(|waiting| waiting == 0).await, 0);
        // Long before the statements' own lock timeout of 10 s.
        assert!(
            begun.elapsed() < Duration::from_secs(4),
            "{:?}",
            begun.elapsed()
        );
    }
    lab.behind.batch_execute("COMMIT").await.unwrap();
    for reply in join_all(lab.greedy_reads(16)).await {
        assert_eq!(reply.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_request_that_gets_no_connection_is_told_when_to_try_again() {
    let lab = OnPostgres::empty(DatabaseSettings {
        max_connections: 1,
        wait: Duration::from_millis(200),
        ..DatabaseSettings::default()
    })
    .await;
    let list = async |path: &str| lab.client.get(path).await;
    // The key is known from now on.
    list("/api/v1/jobs").await.json(200);
    let behind = lab.behind().await;
    let lock = "BEGIN; LOCK TABLE labdata.instrument IN ACCESS EXCLUSIVE MODE";
    behind.batch_execute(lock).await.unwrap();
    let others = async {
        lab.until_a_statement_waits().await;
        let refused = list("/api/v1/jobs").await;
        refused.detail(503);
        assert_eq!(refused.header("retry-after"), Some("1"));
        behind.batch_execute("COMMIT").await.unwrap();
    };
    let (slow, ()) = futures::join!(list("/api/v1/instruments"), others);
    slow.json(200);
    list("/api/v1/jobs").await.json(200);
}

/// The memory that a process holds, in bytes.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Sends a request 200 times without reading an answer. Returns the connections, and the most by which
/// the server's memory grew, in MiB.
async fn leave_unread(lab: &Lab, path: &str, body: &Value) -> (Vec<TcpStream>, u64) {
    let address = lab.program.url.trim_start_matches("http://").to_owned();
    let body = body.to_string();
    let request = format!(
        "POST /api/v1/{path} HTTP/1.1\r\nHost: lab\r\nAuthorization: Bearer {GREEDY}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let before = resident(lab.program.pid());
    let mut unread = Vec::new();
    for _ in 0..200 {
        let mut client = TcpStream::connect(&address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        unread.push(client);
    }
    let mut most = before;
    let until = Instant::now() + Duration::from_secs(12);
    while Instant::now() < until {
        most = most.max(resident(lab.program.pid()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (unread, (most - before) >> 20)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_unread_answers_of_8_mb_do_not_fill_the_memory() {
    let lab = Lab::start().await;
    // The role of the queries exists from now on.
    let query = |sql: &str| {
        let request = lab.request(Method::POST, "tools/query", GREEDY);
        request.json(&json!({ "query": sql }))
    };
    assert_eq!(query("SELECT 1").send().await.unwrap().status(), 200);
    let sql = "SELECT repeat('x', 8000) FROM generate_series(1, 1000)";
    let body = json!({ "query": sql });
    let (unread, grown) = leave_unread(&lab, "tools/query", &body).await;
    assert!(grown < 200, "the server grew by {grown} MiB");
    // Another organization has its own.
    let request = lab.request(Method::POST, "tools/query", &lab.key);
    let other = request.json(&body).send().await.unwrap();
    assert_eq!(other.status(), 200);
    assert!(other.bytes().await.unwrap().len() > 8_000_000);
    drop(unread);
    let request = query("SELECT 1").send().await.unwrap();
    assert_eq!(request.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_unread_pages_of_8_mb_do_not_fill_the_memory() {
    let lab = Lab::start().await;
    let description = "x".repeat(80_000);
    for write in 0..3 {
        let row = |row| json!({ "name": format!("{write} {row}"), "description": description });
        let rows: Vec<Value> = (0..40).map(row).collect();
        let body = json!({ "tables": [{ "table": "experiment", "rows": rows }] });
        let request = lab.request(Method::POST, "data/write", GREEDY);
        assert_eq!(request.json(&body).send().await.unwrap().status(), 200);
    }
    // A page is shorter than its limit where its rows are large, and the next one has the rest.
    let body = json!({ "target_name": "experiment", "target_type": "core-table", "limit": 1000 });
    let request = lab.request(Method::POST, "tools/read", GREEDY).json(&body);
    let page = request.send().await.unwrap();
    assert!(page.headers().contains_key("link"));
    let page = page.bytes().await.unwrap();
    assert!((8 << 20..9 << 20).contains(&page.len()), "{}", page.len());
    let rows: Vec<Value> = serde_json::from_slice(&page).unwrap();
    assert_eq!(rows.len(), 105);

    let (unread, grown) = leave_unread(&lab, "tools/read", &body).await;
    assert!(grown < 200, "the server grew by {grown} MiB");
    let others = lab.read(&lab.key).send().await.unwrap();
    assert_eq!(others.status(), 200);
    drop(unread);
    assert_eq!(lab.read(GREEDY).send().await.unwrap().status(), 200);
}
