//! A server whose worker runs scripts that the test plays.

use std::{sync::Arc, time::Duration};

use labdata_application::work::{WorkContext, begin_run::RunContext};
use labdata_domain::work::BackendPolicy;
use labdata_memory::InMemoryJobRunner;
use labdata_ports::work::runner::{RunLimits, RunSpec};
use labdata_worker::{
    BackendSettings, Background, NoObserver, TaskObserver, WorkSettings, WorkerSettings,
};
use serde_json::{Value, json};

use crate::server::{Client, TestServer};

pub(super) const EXECUTIONS: &str = "/api/v1/job-executions";

/// A server, and a worker unless it was left out.
pub(super) struct Lab {
    pub(super) server: TestServer,
    pub(super) client: Client,
    pub(super) runner: InMemoryJobRunner,
    pub(super) worker: Option<Background>,
    pub(super) policy: BackendPolicy,
}

impl Lab {
    pub(super) async fn without_worker() -> Self {
        Self::on(TestServer::start().await).await
    }

    /// A lab over the given server, without a worker.
    pub(super) async fn on(server: TestServer) -> Self {
        let client = server.admin().await;
        Self {
            server,
            client,
            runner: InMemoryJobRunner::new(),
            worker: None,
            policy: BackendPolicy::default(),
        }
    }

    pub(super) async fn start() -> Self {
        let mut lab = Self::without_worker().await;
        lab.start_worker();
        lab
    }

    pub(super) fn start_worker(&mut self) {
        let base_url = format!("http://{}", self.server.address);
        let settings = WorkSettings {
            backend: BackendSettings {
                runner: Arc::new(self.runner.clone()),
                concurrency: 2,
                timeout: Duration::from_millis(200),
            },
            context: WorkContext::Run(RunContext {
                limits: RunLimits::default(),
                base_url,
                policy: self.policy,
            }),
        };
        let worker = WorkerSettings {
            work: vec![settings],
            mail: None,
            webhooks: None,
        };
        let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
        let background = Background::start(&self.server.services, Some(worker), &observer);
        self.worker = Some(background);
    }

    /// A job with that script.
    pub(super) async fn job(&self, code: &str) -> String {
        let name = format!("job {}", self.server.services.ids.next_id());
        self.job_of(json!({ "name": name, "code": code })).await
    }

    pub(super) async fn job_of(&self, body: Value) -> String {
        let job = self.client.post("/api/v1/jobs", &body).await.json(200);
        job["id"].as_str().unwrap().to_owned()
    }

    /// A queued run of a new job with that script.
    pub(super) async fn queue(&self, code: &str) -> String {
        let job = self.job(code).await;
        let run = self.client.post(&run_path(&job), &Value::Null).await;
        id_of(&run.json(200))
    }

    pub(super) async fn execution(&self, id: &str) -> Value {
        self.client
            .get(&format!("{EXECUTIONS}/{id}"))
            .await
            .json(200)
    }

    /// The execution, once it stands so.
    pub(super) async fn until(&self, id: &str, status: &str) -> Value {
        loop {
            let execution = self.execution(id).await;
            if execution["status"] == status {
                return execution;
            }
            assert!(
                execution["completed_at"].is_null(),
                "{execution} will never be {status}"
            );
            pause().await;
        }
    }

    /// Waits until that execution is retried; returns the id of the one that retries it.
    pub(super) async fn retry(&self, id: &str) -> String {
        loop {
            let execution = self.execution(id).await;
            if let Some(retry) = execution["retried_by"].as_str() {
                return retry.to_owned();
            }
            assert!(execution["completed_at"].is_null(), "{execution:#}");
            pause().await;
        }
    }

    /// Submissions to the runner for that execution.
    pub(super) fn specs(&self, id: &str) -> Vec<RunSpec> {
        let mut specs = self.runner.submitted();
        specs.retain(|spec| spec.run.work.to_string() == id);
        specs
    }

    pub(super) async fn logs(&self, id: &str) -> String {
        let reply = self.client.get(&format!("{EXECUTIONS}/{id}/logs")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        reply.text
    }
}

pub(super) fn run_path(job: &str) -> String {
    format!("/api/v1/jobs/{job}/run")
}

pub(super) fn id_of(execution: &Value) -> String {
    execution["job_execution_id"].as_str().unwrap().to_owned()
}

/// Between two looks at something that is about to change.
pub(super) async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

pub(super) fn value<'s>(spec: &'s RunSpec, name: &str) -> &'s str {
    let found = spec.environment.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("{name} is missing")).1
}
