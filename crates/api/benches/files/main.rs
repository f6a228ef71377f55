//! Files over HTTP, each beside its floor, measured in turn with it: 500 MB through the gateway
//! beside `cp` and fsync, and beside an S3 server on the same disk; listings among 1,000 and among
//! 1,000,000 files, and beside pgbench with the same SELECT. The server is the real program on a
//! separate database, with fsync on. Run with `just bench`; needs 8 GB of disk and some minutes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

mod lists;
#[path = "../support/mod.rs"]
mod support;
mod uploads;

use std::time::Duration;

use serde_json::{Value, json};

use support::{KEY, Server};

struct Bench {
    server: Server,
}

impl Bench {
    async fn post(&self, path: &str, body: Value) -> Value {
        let request = reqwest::Client::new().post(self.server.url(path));
        let response = request.bearer_auth(KEY).json(&body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        response.json().await.unwrap()
    }

    /// A new instrument's id.
    async fn instrument(&self, name: &str) -> String {
        let made = self.post("/instruments", json!({ "name": name })).await;
        made["id"].as_str().unwrap().to_owned()
    }
}

/// The one in the middle, in milliseconds.
fn median(taken: &[Duration]) -> f64 {
    support::median(
        taken
            .iter()
            .map(|taken| taken.as_secs_f64() * 1_000.0)
            .collect(),
    )
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let wanted = |name: &str| {
            let mut names = std::env::args()
                .skip(1)
                .filter(|name| !name.starts_with('-'));
            let any = std::env::args().skip(1).any(|name| !name.starts_with('-'));
            !any || names.any(|given| given == name)
        };
        let server = Server::start(&[]).await;
        let bench = Bench { server };
        if wanted("uploads") {
            uploads::run(&bench).await;
        }
        if wanted("lists") {
            lists::run(&bench).await;
        }
        bench.server.stop().await;
    });
}
