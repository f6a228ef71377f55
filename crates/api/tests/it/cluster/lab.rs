//! A cluster with everything around it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use clap::Parser;
use labdata_load::{Options, Report};
use labdata_test_llm::{Provider, Reply};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{
    balancer,
    members::{Member, free_ports},
};
use crate::{process::directory, s3_server::S3Server, work::platform_runs::KEY};

/// Rows after which a load is under way, and the time until then.
const ROWS: usize = 20;
const FIRST_ROWS: Duration = Duration::from_mins(1);

/// A `uv` that installs nothing. Trainings fail with it, which takes no time: what counts here is that
/// each is recorded once and ends.
const UV: &str =
    "#!/bin/sh\n[ \"$1\" = --version ] && exec echo uv 0.0.0\necho no index >&2\nexit 1\n";

/// Servers behind a load balancer, workers, a bucket and a language model.
pub(super) struct Cluster {
    pub(super) members: Vec<Member>,
    _s3: S3Server,
    _llm: Provider,
    _tools: TempDir,
}

impl Cluster {
    /// Starts it on that database, and returns once the servers are ready.
    pub(super) async fn start(
        servers: usize,
        workers: usize,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let own = || vec![("DATABASE_URL".to_owned(), database.to_owned())];
        Self::start_each(servers, workers, settings, own).await
    }

    /// Starts it with variables of each member's own, servers first, and returns once the servers are ready.
    pub(super) async fn start_each(
        servers: usize,
        workers: usize,
        settings: &[(&str, &str)],
        mut own: impl FnMut() -> Vec<(String, String)>,
    ) -> Self {
        let s3 = S3Server::start().await;
        let llm = Provider::start().await;
        llm.otherwise(|_| Reply::text("There are tables."));
        let tools = directory();
        let uv = tools.path().join("uv");
        fs::write(&uv, UV).unwrap();
        fs::set_permissions(&uv, Permissions::from_mode(0o755)).unwrap();
        let services = free_ports(servers);
        let url = balancer::start(services.clone()).await;
        let shared = [
            ("LABDATA_BOOTSTRAP_KEY", KEY),
            ("LABDATA_PUBLIC_URL", &url),
            ("LABDATA_STORAGE_URL", "s3://lab/files"),
            ("LABDATA_LLM_PROVIDER", "openai"),
            ("LABDATA_LLM_BASE_URL", &llm.base_url()),
            ("LABDATA_LLM_API_KEY", "stub"),
            ("LABDATA_LLM_MODEL", "stub"),
            ("LABDATA_UV", uv.to_str().unwrap()),
            ("LABDATA_NOTIFICATIONS_PER_HOUR", "100000"),
            ("LABDATA_NOTIFICATIONS_PER_DAY", "100000"),
        ];
        let bucket = s3.environment();
        let shared: Vec<(String, String)> = shared
            .iter()
            .chain(&bucket)
            .chain(settings)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut environment = || [shared.clone(), own()].concat();
        let mut members = Vec::new();
        for port in services {
            // One after the other: the first one migrates the database and makes the key.
            let mut server = Member::server(port, environment());
            server.until_ready().await;
            members.push(server);
        }
        members.extend((0..workers).map(|_| Member::worker(environment())));
        Self {
            members,
            _s3: s3,
            _llm: llm,
            _tools: tools,
        }
    }

    /// Starts a load on all servers, and returns once it writes.
    pub(super) async fn load(&self, seconds: u64, seed: u64) -> JoinHandle<anyhow::Result<Report>> {
        let urls: Vec<String> = self.members.iter().filter_map(Member::url).collect();
        let (urls, seed, seconds) = (urls.join(","), seed.to_string(), seconds.to_string());
        let mut arguments = vec![
            "labdata-load",
            "--agent",
            "--trainings",
            "--connections",
            "8",
        ];
        arguments.extend(["--key", KEY, "--url", &urls]);
        arguments.extend(["--seed", &seed, "--seconds", &seconds]);
        let options = Options::try_parse_from(arguments).unwrap();
        let load = tokio::spawn(labdata_load::run(options));
        self.until_written().await;
        load
    }

    /// Waits until the load has prepared itself and has written rows.
    async fn until_written(&self) {
        let url = self.members.iter().find_map(Member::url).unwrap();
        let body = json!({"target_name": "load_sample", "target_type": "table", "limit": ROWS});
        let began = Instant::now();
        loop {
            let request = Client::new().post(format!("{url}/api/v1/tools/read"));
            let response = request.bearer_auth(KEY).json(&body).send().await.unwrap();
            let rows: Value = response.json().await.unwrap();
            if rows.as_array().is_some_and(|rows| rows.len() == ROWS) {
                return;
            }
            assert!(began.elapsed() < FIRST_ROWS, "{rows}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asserts that no member has ended by itself.
    pub(super) fn assert_alive(&mut self) {
        self.members.iter_mut().for_each(Member::assert_alive);
    }
}
