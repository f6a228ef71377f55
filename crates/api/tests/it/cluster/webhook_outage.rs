//! A receiver of webhooks that is down for two days, while servers and workers are killed, and another organization whose
//! receiver works. The days pass in the rows of the outbox: their times are moved back.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use labdata_load::Random;
use labdata_test_database::TestDatabase;
use reqwest::Client;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use super::members::{Member, free_ports};
use crate::{
    outward::receiver::Receiver,
    process::{directory, labdata, run, text},
    work::platform_runs::KEY,
};

/// Events that wait for the receiver; the environment variable overrides it.
const EVENTS: usize = 300;

/// Parts of the two days, of [`PART`] each.
const PARTS: usize = 6;
const PART: &str = "interval '8 hours'";

const WRITERS: usize = 8;

const SERVER_KILLS: usize = 3;

fn events() -> usize {
    let given = std::env::var("WEBHOOK_OUTAGE_EVENTS").ok();
    given.map_or(EVENTS, |given| given.parse().unwrap())
}

/// Waits until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..60_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} never came true");
}

/// Calls a server with a key.
#[derive(Clone)]
struct Caller {
    http: Client,
    url: String,
    key: String,
}

impl Caller {
    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}/api/v1{path}", self.url));
        let response = request
            .bearer_auth(&self.key)
            .json(body)
            .send()
            .await
            .unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Makes a webhook for written tables; returns its id.
    async fn webhook(&self, url: &str) -> String {
        let body = json!({"url": url, "events": ["data.written"]});
        let made = self.post("/webhooks", &body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Causes one event. The server may be killed: a retry with the same key writes nothing twice.
    async fn write(&self, name: &str) {
        let rows = json!([{"name": name}]);
        let table = json!({"table": "experiment", "mode": "insert", "rows": rows});
        let body = json!({"job_name": "Import", "tables": [table]});
        loop {
            let request = self.http.post(format!("{}/api/v1/data/write", self.url));
            let keyed = request
                .bearer_auth(&self.key)
                .header("Idempotency-Key", name);
            match keyed.json(&body).send().await {
                Ok(response) if response.status().is_success() => return,
                // The first request with the key may still be in progress.
                Ok(response) => {
                    let status = response.status();
                    let text = response.text().await.unwrap_or_default();
                    assert!(status.is_server_error() || status == 409, "{status} {text}");
                }
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The organization whose receiver works: it writes until it is stopped.
struct Healthy {
    written: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    writing: JoinHandle<()>,
    /// Seconds from each event to its first arrival.
    latencies: Arc<Mutex<Vec<f64>>>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "times of the programs are those of the machine"
)]
fn seconds_since(at: &str) -> f64 {
    let at = OffsetDateTime::parse(at, &Rfc3339).unwrap();
    (OffsetDateTime::now_utc() - at).as_seconds_f64()
}

impl Healthy {
    fn start(caller: Caller, mut receiver: Receiver) -> Self {
        let (written, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, over) = (Arc::clone(&written), Arc::clone(&is_over));
        let writing = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let number = count.load(Ordering::Relaxed);
                caller.write(&format!("healthy {number}")).await;
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let latencies = Arc::<Mutex<Vec<f64>>>::default();
        let arrived = Arc::clone(&latencies);
        tokio::spawn(async move {
            let mut ids = BTreeSet::new();
            loop {
                let request = receiver.next().await;
                let body: Value = serde_json::from_str(&request.body).unwrap();
                if ids.insert(request.header("webhook-id").to_owned()) {
                    let latency = seconds_since(body["timestamp"].as_str().unwrap());
                    arrived.lock().unwrap().push(latency);
                }
            }
        });
        Self {
            written,
            is_over,
            writing,
            latencies,
        }
    }

    fn received(&self) -> usize {
        self.latencies.lock().unwrap().len()
    }

    /// Waits until as many more events have arrived.
    async fn until_more(&self, count: usize) {
        let start = self.received();
        let arrives = async || self.received() >= start + count;
        until("events of the other organization arrive", arrives).await;
    }

    /// Stops, and returns the latencies once all has arrived, shortest first.
    async fn stop(self) -> Vec<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.writing.await.unwrap();
        let written = self.written.load(Ordering::Relaxed);
        let latencies = Arc::clone(&self.latencies);
        let arrived = async || latencies.lock().unwrap().len() >= written;
        until("all events of the other organization arrive", arrived).await;
        let mut latencies = self.latencies.lock().unwrap().clone();
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}

/// The outbox of the webhook whose receiver is down.
struct Outbox {
    database: tokio_postgres::Client,
    webhook: String,
}

impl Outbox {
    async fn count(&self, what: &str) -> i64 {
        let query = format!(
            "SELECT coalesce({what}, 0)::bigint FROM labdata.webhook_delivery WHERE webhook_id = '{}'",
            self.webhook
        );
        self.database
            .query_one(query.as_str(), &[])
            .await
            .unwrap()
            .get(0)
    }

    /// Lets eight hours pass.
    async fn pass_time(&self) {
        let webhook = &self.webhook;
        let deliveries = format!(
            "UPDATE labdata.webhook_delivery SET at = at - {PART}, started_at = started_at - {PART}, \
             due_at = due_at - {PART} WHERE webhook_id = '{webhook}' AND status = 'pending'"
        );
        let failures = format!(
            "UPDATE labdata.webhook SET failing_since = failing_since - {PART} WHERE id = '{webhook}'"
        );
        // Each by itself: workers lock both tables, in another order.
        for statement in [deliveries, failures] {
            self.database.batch_execute(&statement).await.unwrap();
        }
    }

    async fn until_more_attempts(&self, count: i64) {
        let start = self.count("sum(attempts)").await;
        let grows = async || self.count("sum(attempts)").await >= start + count;
        until("deliveries are attempted", grows).await;
    }
}

struct Lab {
    server: Member,
    workers: Vec<Member>,
    random: Random,
    down: Caller,
    healthy: Caller,
    own: TestDatabase,
}

impl Lab {
    async fn start() -> Self {
        let own = TestDatabase::new().await;
        let port = free_ports(1)[0];
        let url = format!("http://127.0.0.1:{port}");
        let environment: Vec<(String, String)> = [
            ("DATABASE_URL", own.url()),
            ("LABDATA_BOOTSTRAP_KEY", KEY),
            ("LABDATA_PUBLIC_URL", &url),
            ("LABDATA_WEBHOOK_ALLOW", "127.0.0.0/8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let mut server = Member::server(port, environment.clone());
        server.until_ready().await;
        let (place, arguments) = (
            directory(),
            ["api-key", "create", "--organization", "other"],
        );
        let mut create = labdata(place.path(), &arguments);
        create.args([
            "--user",
            "ada@other.example",
            "--scopes",
            "read,write,admin",
        ]);
        let made = run(create.envs(environment.iter().cloned()));
        let made = text(&made.stdout);
        let key = made
            .split_whitespace()
            .find(|word| word.starts_with("ldk_"));
        let caller = |key: &str| Caller {
            http: Client::new(),
            url: url.clone(),
            key: key.to_owned(),
        };
        Self {
            server,
            workers: (0..2)
                .map(|_| Member::worker(environment.clone()))
                .collect(),
            random: Random::new(48),
            down: caller(KEY),
            healthy: caller(key.unwrap()),
            own,
        }
    }

    /// Kills the server while it writes, and starts it again.
    async fn kill_the_server(&mut self) {
        tokio::time::sleep(Duration::from_millis(100 + self.random.below(200))).await;
        self.server.assert_alive();
        self.server.kill();
        self.server.restart();
        self.server.until_ready().await;
    }

    /// Kills a worker at some moment, and starts it again.
    async fn kill_a_worker(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.random.below(200))).await;
        let index = usize::try_from(self.random.below(2)).unwrap();
        let worker = &mut self.workers[index];
        worker.assert_alive();
        worker.kill();
        worker.restart();
    }
}

/// Causes that many events, from several connections.
async fn write_all(caller: &Caller, events: usize) {
    let writers = (0..WRITERS).map(async |writer| {
        for number in (writer..events).step_by(WRITERS) {
            caller.write(&format!("event {number}")).await;
        }
    });
    join_all(writers).await;
}

/// Waits until each event has arrived; kills a worker on the way.
async fn receive_all(lab: &mut Lab, outbox: &Outbox, mut receiver: Receiver, events: usize) {
    let mut arrived = BTreeSet::new();
    while arrived.len() < events {
        let is_new = arrived.insert(receiver.next().await.header("webhook-id").to_owned());
        if is_new && arrived.len() == events / 3 {
            lab.kill_a_worker().await;
            // The leases of that worker end.
            outbox.pass_time().await;
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture: docs/adr/0048 has the figures of 10,000 events"
)]
#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_delivered_after_two_days_without_a_receiver_and_killed_programs() {
    let mut lab = Lab::start().await;
    let port = free_ports(1)[0];
    let webhook = lab
        .down
        .webhook(&format!("http://127.0.0.1:{port}/hook"))
        .await;
    let receiver = Receiver::start().await;
    lab.healthy.webhook(&receiver.url).await;
    let (database, connection) = tokio_postgres::connect(lab.own.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let outbox = Outbox { database, webhook };
    let healthy = Healthy::start(lab.healthy.clone(), receiver);

    let events = events();
    let down = lab.down.clone();
    let kills = async {
        for _ in 0..SERVER_KILLS {
            lab.kill_the_server().await;
        }
    };
    tokio::join!(write_all(&down, events), kills);
    let expected = i64::try_from(events).unwrap();
    let made = async || outbox.count("count(*)").await == expected;
    until("workers make a delivery of each event", made).await;

    for _ in 0..PARTS {
        // Those of the other organization arrive although all of these wait.
        healthy.until_more(5).await;
        lab.kill_a_worker().await;
        outbox.pass_time().await;
        outbox.until_more_attempts(10).await;
    }
    assert_eq!(
        outbox
            .count("count(*) FILTER (WHERE status <> 'pending')")
            .await,
        0
    );

    let receiver = Receiver::start_at(port).await;
    outbox.pass_time().await;
    receive_all(&mut lab, &outbox, receiver, events).await;
    let settled = async || {
        outbox
            .count("count(*) FILTER (WHERE status = 'delivered')")
            .await
    };
    until("all are delivered", async || settled().await == expected).await;
    let latencies = healthy.stop().await;
    let percentile = |share: usize| latencies[(latencies.len() - 1) * share / 100];
    println!(
        "{events} events and {} attempts; {} events of the other organization: p50 {:.2} s, p99 {:.2} s",
        outbox.count("sum(attempts)").await,
        latencies.len(),
        percentile(50),
        percentile(99),
    );
}
