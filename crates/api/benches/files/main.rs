//! Files over HTTP, each beside its floor, measured in turn with it: 500 MB through the gateway
//! beside `cp` and fsync, and beside an S3 server on the same disk; listings among 1,000 and among
//! 1,000,000 files, and beside pgbench with the same SELECT. The server is the real program on a
//! database of its own, with fsync on. Run with `just bench`; needs 8 GB of disk and some minutes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

mod lists;
mod uploads;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

const KEY: &str = "ldk_benchkey_0123456789abcdefghijklmnopqrstuv";

struct Bench {
    url: String,
    server: Child,
    postgres: EmbeddedPostgres,
    directory: TempDir,
}

impl Bench {
    async fn start() -> Self {
        // On the disk that the figures are about, not in a memory file system.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let postgres = EmbeddedPostgres::start(Settings {
            data_dir: directory.path().to_owned(),
            bin_dir: None,
            durability: Durability::Durable,
        })
        .await
        .unwrap();
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
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let line = lines
            .map(Result::unwrap)
            .find(|line| line.contains("http://"))
            .unwrap();
        let url = line[line.find("http://").unwrap()..].trim_end_matches('/');
        Self {
            url: url.to_owned(),
            server,
            postgres,
            directory,
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = reqwest::Client::new().post(format!("{}/api/v1/{path}", self.url));
        let answer = request.bearer_auth(KEY).json(&body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.json().await.unwrap()
    }

    /// A new instrument's id.
    async fn instrument(&self, name: &str) -> String {
        let made = self.post("instruments", json!({ "name": name })).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// What `/proc` says of the server's memory, in MB.
    fn memory(&self, field: &str) -> f64 {
        let path = Path::new("/proc").join(self.server.id().to_string());
        let status = std::fs::read_to_string(path.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    }

    async fn stop(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.postgres.stop().await.unwrap();
    }
}

/// The one in the middle, in milliseconds.
fn median(mut taken: Vec<Duration>) -> f64 {
    taken.sort_unstable();
    taken[taken.len() / 2].as_secs_f64() * 1_000.0
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
        let bench = Bench::start().await;
        if wanted("uploads") {
            uploads::run(&bench).await;
        }
        if wanted("lists") {
            lists::run(&bench).await;
        }
        bench.stop().await;
    });
}
