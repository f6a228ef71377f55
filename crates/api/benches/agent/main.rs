//! Overhead of the platform in a run of the agent, with the real program on a separate database and a
//! scripted provider of models: the first token, a step of the loop, streams that wait, and the time
//! until a client that leaves has cancelled everything. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use labdata_test_llm::{Fault, Provider, Reply};
use reqwest::Response;
use serde_json::{Value, json};
use support::{KEY, Server};
use tokio::time::sleep;

const WARM_UP: usize = 5;
const ROUNDS: usize = 40;
/// Steps of a run with tool calls.
const STEPS: u32 = 20;
/// Streams that wait for their provider.
const IDLE: usize = 200;

#[tokio::main]
async fn main() {
    // `cargo test --benches` and clippy build this; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bench = Bench::start().await;
    println!("{:<66} {:>9} {:>9}", "", "p50", "most");
    first_token(&bench).await;
    steps(&bench).await;
    leaving(&bench).await;
    leaving_a_query(&bench).await;
    idle_streams(&bench).await;
    bench.server.stop().await;
}

struct Bench {
    server: Server,
    provider: Provider,
    http: reqwest::Client,
}

impl Bench {
    async fn start() -> Self {
        let provider = Provider::start().await;
        let base_url = provider.base_url();
        let server = Server::start_as(
            &["serve", "--no-worker"],
            &[
                ("LABDATA_LLM_PROVIDER", "openai"),
                ("LABDATA_LLM_BASE_URL", &base_url),
                ("LABDATA_LLM_API_KEY", "stub"),
                ("LABDATA_LLM_MODEL", "stub"),
                ("LABDATA_AGENT_CONCURRENCY", "1000"),
            ],
        )
        .await;
        Self {
            server,
            provider,
            http: reqwest::Client::new(),
        }
    }

    /// Begins a run; the answer has begun when this returns.
    async fn run(&self, stream: bool) -> Response {
        let request = self.http.post(self.server.url("/agent/runs"));
        let body = json!({ "prompt": "Count the samples.", "stream": stream });
        let response = request.bearer_auth(KEY).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Asks the provider itself.
    async fn ask(&self) -> Response {
        let url = format!("{}/chat/completions", self.provider.base_url());
        let body = json!({ "model": "stub", "stream": true, "messages": [] });
        self.http.post(url).json(&body).send().await.unwrap()
    }
}

/// Reads until the text has come.
async fn until(response: &mut Response, text: &str) {
    let mut read = Vec::new();
    let wanted = text.as_bytes();
    while !read.windows(wanted.len()).any(|part| part == wanted) {
        read.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
}

/// The time from a request to the first token, beyond that of the provider.
async fn first_token(bench: &Bench) {
    bench.provider.otherwise(|_| Reply::text("first second"));
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let began = Instant::now();
        let mut response = bench.ask().await;
        until(&mut response, "first").await;
        let provider = began.elapsed();
        response.bytes().await.unwrap();

        let began = Instant::now();
        let mut response = bench.run(true).await;
        until(&mut response, "first").await;
        let platform = began.elapsed();
        response.bytes().await.unwrap();
        if round >= WARM_UP {
            direct.push(provider);
            through.push(platform.saturating_sub(provider));
        }
    }
    report("first token of the provider itself", direct);
    report("first token of a stream, beyond it (50 ms asked)", through);
}

/// The time of a step whose tool does nothing, beyond that of the provider.
async fn steps(bench: &Bench) {
    bench.provider.otherwise(|request| {
        let body = request.body.get("messages").and_then(Value::as_array);
        let results = body.into_iter().flatten();
        let made = results.filter(|message| message["role"] == "tool").count();
        if made < usize::try_from(STEPS).unwrap() {
            Reply::call(&format!("call_{made}"), "no_such_tool", &json!({}))
        } else {
            Reply::text("done")
        }
    });
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let began = Instant::now();
        for _ in 0..STEPS {
            bench.ask().await.bytes().await.unwrap();
        }
        let provider = began.elapsed() / STEPS;
        let began = Instant::now();
        let response: Value = bench.run(false).await.json().await.unwrap();
        let platform = began.elapsed() / STEPS;
        assert_eq!(response["tool_calls"].as_array().unwrap().len(), 20);
        if round >= WARM_UP {
            direct.push(provider);
            through.push(platform.saturating_sub(provider));
        }
    }
    report("answer of the provider itself", direct);
    report("step of a run, beyond it (10 ms asked)", through);
}

/// The time from a client's leaving to the end of the request to the provider.
async fn leaving(bench: &Bench) {
    let stalled = |_: &_| Reply::text("first second").with_fault(Fault::SilentEnd);
    bench.provider.otherwise(stalled);
    let mut left = Vec::new();
    for _ in 0..ROUNDS {
        let mut response = bench.run(true).await;
        until(&mut response, "second").await;
        drop(response);
        let began = Instant::now();
        bench.provider.idle().await;
        left.push(began.elapsed());
    }
    report(
        "client leaves to request of the provider closed (6 s asked)",
        left,
    );
}

/// The time from a client's leaving to the end of its query.
async fn leaving_a_query(bench: &Bench) {
    let query = "SELECT count(*) FROM generate_series(1, 2000000000) AS s (n)";
    bench
        .provider
        .otherwise(move |_| Reply::call("a", "query_data", &json!({ "query": query })));
    let database = bench.server.database().await;
    let running = async || {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
            AND query LIKE '%2000000000%' AND query NOT LIKE '%pg_stat%'";
        database
            .query_one(count, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            > 0
    };
    let mut left = Vec::new();
    for _ in 0..5 {
        let mut response = bench.run(true).await;
        until(&mut response, "tool_call").await;
        while !running().await {
            sleep(Duration::from_millis(5)).await;
        }
        drop(response);
        let began = Instant::now();
        while running().await {
            sleep(Duration::from_millis(5)).await;
        }
        left.push(began.elapsed());
    }
    report("client leaves to query ended (6 s asked)", left);
}

/// The memory of streams whose provider is silent.
async fn idle_streams(bench: &Bench) {
    let stalled = |_: &_| Reply::text("first second").with_fault(Fault::SilentEnd);
    bench.provider.otherwise(stalled);
    let mut streams = Vec::new();
    let before = bench.server.memory("VmRSS");
    for _ in 0..IDLE {
        let mut response = bench.run(true).await;
        until(&mut response, "second").await;
        streams.push(response);
    }
    // Several signs of life.
    sleep(Duration::from_secs(11)).await;
    let after = bench.server.memory("VmRSS");
    let title = format!("memory of {IDLE} streams that wait (50 MB asked)");
    println!("{title:<66} {:>6.1} MB", after - before);
}

fn report(title: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let p50 = milliseconds(times[times.len() / 2]);
    let most = milliseconds(times[times.len() - 1]);
    println!("{title:<66} {p50:>6.1} ms {most:>6.1} ms");
}
