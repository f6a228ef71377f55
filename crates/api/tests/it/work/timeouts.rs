//! Real scripts that do not end in time.

use std::{sync::Arc, time::Duration};

use labdata_api::http::server::DRAIN_TIMEOUT;
use labdata_application::work::{WorkContext, begin_run::RunContext};
use labdata_domain::work::BackendPolicy;
use labdata_local_runner::LocalRunner;
use labdata_ports::work::runner::RunLimits;
use labdata_sandbox::{Sandbox, Settings};
use labdata_worker::{
    BACKEND_TIMEOUT, BackendSettings, Background, NoObserver, TaskObserver, WorkSettings,
    WorkerSettings,
};
use serde_json::{Value, json};

use crate::{
    process::directory,
    server::TestServer,
    work::platform_runs::{pause, processes, until_no_process_is_left},
};

/// Ignores every signal that can be ignored, and leaves a child in another session.
const STUBBORN: &str = "import signal, subprocess, time\n\
                        for it in (signal.SIGTERM, signal.SIGHUP): signal.signal(it, signal.SIG_IGN)\n\
                        subprocess.Popen(['sleep', '600'], start_new_session=True)\n\
                        print('begun', flush=True)\n\
                        time.sleep(600)\n";

#[tokio::test]
async fn a_real_script_over_its_time_fails_and_takes_its_key_and_its_children_with_it() {
    let (server, data) = (TestServer::start().await, directory());
    let program = env!("CARGO_BIN_EXE_labdata").into();
    let supervisor = vec![program, "run-supervisor".into()];
    let base_url = format!("http://{}", server.address);
    let settings = WorkSettings {
        backend: BackendSettings {
            runner: Arc::new(LocalRunner::new(Arc::new(Sandbox::new(Settings::new(
                data.path().to_owned(),
                supervisor,
            ))))),
            concurrency: 1,
            timeout: BACKEND_TIMEOUT,
        },
        context: WorkContext::Run(RunContext {
            limits: RunLimits {
                wall_clock: Duration::from_secs(3),
                ..RunLimits::default()
            },
            base_url,
            policy: BackendPolicy::default(),
        }),
    };
    let worker = WorkerSettings {
        work: vec![settings],
        mail: None,
        webhooks: None,
    };
    let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
    let worker = Background::start(&server.services, Some(worker), &observer);
    let client = server.admin().await;
    let job = json!({"name": "stubborn", "code": STUBBORN});
    let job = client.post("/api/v1/jobs", &job).await.json(200);
    let path = format!("/api/v1/jobs/{}/run", job["id"].as_str().unwrap());
    let run = client.post(&path, &Value::Null).await.json(200);
    let id = run["job_execution_id"].as_str().unwrap();

    let key = loop {
        let environments = processes(id);
        let mut lines = environments.iter().flat_map(|it| it.split('\0'));
        if let Some(key) = lines.find_map(|line| line.strip_prefix("LABDATA_API_KEY=")) {
            break key.to_owned();
        }
        pause().await;
    };
    let path = format!("/api/v1/job-executions/{id}");
    let ended = loop {
        let execution = client.get(&path).await.json(200);
        if !execution["completed_at"].is_null() {
            break execution;
        }
        pause().await;
    };
    assert_eq!(ended["status"], "failed", "{ended}");
    let message = ended["error_message"].as_str().unwrap();
    assert!(message.starts_with("timed out"), "{message}");
    let log = client.get(&format!("{path}/logs")).await.text;
    assert_eq!(log, "begun\n");
    assert_eq!(server.with_key(&key).get(&path).await.status, 401);
    until_no_process_is_left(id).await;
    worker.stop(DRAIN_TIMEOUT).await;
}
