//! `GET /api/v1/dependencies`: what works, and no more.

use std::{fs, fs::File, net::TcpListener, sync::Arc};

use labdata_api::{
    dependencies::ServerDependencies,
    settings::{Flags, Settings},
};
use labdata_memory::{InMemoryBlobStore, InMemoryStoreHealth, Memory};
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::maintenance::DependencyChecks;
use serde_json::json;
use tempfile::TempDir;

use crate::process::{Program, directory};

/// The checks of a server with a separate directory, on the machine of the test.
struct Checks {
    directory: TempDir,
}

#[async_trait]
impl Harness for Checks {
    async fn fresh() -> Self {
        Self {
            directory: directory(),
        }
    }
}

impl Subject<dyn DependencyChecks> for Checks {
    fn subject(&self) -> Arc<dyn DependencyChecks> {
        let config = self.directory.path().join("labdata.toml");
        let data = self.directory.path().join("data");
        // The machine of a test may offer no isolation.
        let lines = format!(
            "data_dir = \"{}\"\njob_isolation = \"none\"\n",
            data.display()
        );
        fs::write(&config, lines).unwrap();
        let memory = Memory::new();
        Arc::new(ServerDependencies {
            settings: Settings::load(Some(&config), &Flags::default()).unwrap(),
            health: Arc::new(InMemoryStoreHealth::new(&memory)),
            blobs: Arc::new(InMemoryBlobStore::new(&memory)),
        })
    }
}

labdata_port_contracts::dependency_checks!(Checks);

#[tokio::test]
async fn an_administrator_sees_what_fails_and_the_operator_why() {
    let directory = directory();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = dead.local_addr().unwrap();
    let mail = format!("smtp://lab:hunter2@{dead}?tls=none");
    let log = directory.path().join("server.log");
    let server = Program::serve_logging(
        directory.path(),
        &[
            ("LABDATA_JOB_ISOLATION", "none"),
            ("LABDATA_SMTP_URL", &mail),
            ("LABDATA_MAIL_FROM", "lab@example.org"),
        ],
        File::create(&log).unwrap(),
    );
    let response = reqwest::Client::new()
        .get(format!("{}/api/v1/dependencies", server.url))
        .bearer_auth(server.key.as_ref().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let text = response.text().await.unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let state = |name: &str, state: &str| json!({ "name": name, "state": state });
    assert_eq!(
        report["dependencies"],
        json!([
            state("database", "ok"),
            state("storage", "ok"),
            state("Python", "ok"),
            state("uv", "ok"),
            state("job isolation", "ok"),
            state("Ray", "unused"),
            state("SMTP", "failed"),
            state("LLM", "unused"),
            state("OpenID", "unused"),
        ])
    );
    assert!(!text.contains(&dead.to_string()), "{text}");
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains(&dead.to_string()), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}
