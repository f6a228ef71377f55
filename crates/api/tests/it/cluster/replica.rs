//! Queries that run on a replica.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::{lab::Cluster, replicated::ReplicatedPostgres};
use crate::{
    process::{directory, labdata, run, text},
    work::platform_runs::KEY,
};

/// Time in which a write reaches the replica.
const LAG: Duration = Duration::from_secs(20);

/// Connections of the organizations' roles.
const READERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'org\\_%\\_reader'";

struct Lab {
    url: String,
    http: Client,
}

impl Lab {
    async fn send(&self, method: Method, path: &str, body: Value) -> Response {
        let request = self
            .http
            .request(method, format!("{}/api/v1/{path}", self.url));
        request.bearer_auth(KEY).json(&body).send().await.unwrap()
    }

    async fn write(&self, name: &str) {
        let row = json!({"name": name});
        let body = json!({"tables": [{"table": "sample", "rows": [row]}]});
        let response = self.send(Method::POST, "data/write", body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    }

    async fn query(&self) -> Response {
        let body = json!({"query": "SELECT count(*) FROM sample"});
        self.send(Method::POST, "tools/query", body).await
    }

    /// Waits until a query fails: processes of a killed server end a moment later.
    async fn until_refused(&self) -> Response {
        let began = Instant::now();
        loop {
            let response = self.query().await;
            if response.status() != 200 {
                return response;
            }
            assert!(began.elapsed() < LAG, "the replica still answers");
        }
    }

    /// Waits until a query counts that number of rows.
    async fn until_counted(&self, rows: u64) {
        let began = Instant::now();
        loop {
            let response = self.query().await;
            let is_there = response.status() == 200;
            let body: Value = response.json().await.unwrap();
            if is_there && body["data"] == json!([[rows]]) {
                return;
            }
            assert!(began.elapsed() < LAG, "{body}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_run_on_the_replica_and_writes_do_not_need_it() {
    let mut database = ReplicatedPostgres::start_asynchronous().await;
    let replica = database.standby_url();
    let settings = [("LABDATA_QUERY_DATABASE_URL", replica.as_str())];
    let cluster = Cluster::start(1, 0, &database.url(), &settings).await;
    let lab = Lab {
        url: cluster.members[0].url().unwrap(),
        http: Client::new(),
    };
    let columns = json!([{"name": "name", "data_type": "string"}]);
    let definition = json!({"semantic_category": "curated", "columns": columns});
    let defined = lab.send(Method::PUT, "tables/sample", definition).await;
    assert_eq!(defined.status(), 200);
    lab.write("a").await;
    lab.until_counted(1).await;
    lab.write("b").await;
    lab.until_counted(2).await;
    assert_eq!(database.count_on_primary(READERS).await, 0);
    // The connection that waits for the next query, which is opened when the last one has been answered.
    let began = Instant::now();
    while database.count_on_standby(READERS).await == 0 {
        assert!(began.elapsed() < LAG, "no connection waits on the standby");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let doctor = |url: &str| {
        let directory = directory();
        let mut command = labdata(directory.path(), &["doctor"]);
        command.env("DATABASE_URL", url).envs(settings);
        text(&run(&mut command).stdout)
    };
    let displayed = doctor(&database.url());
    assert!(
        displayed.contains("; queries run on a replica with"),
        "{displayed}"
    );

    database.kill_standby();
    let refused = lab.until_refused().await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    lab.write("c").await;
    let displayed = doctor(&database.url());
    assert!(
        displayed.contains("check LABDATA_QUERY_DATABASE_URL"),
        "{displayed}"
    );
}
