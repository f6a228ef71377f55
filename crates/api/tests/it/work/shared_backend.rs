//! Several organizations on a backend whose users see the runs of all of them.

use std::fs;

use labdata_domain::work::{BackendPolicy, RunVisibility};
use serde_json::Value;

use super::run_lab::{Lab, id_of, run_path};
use crate::process::{Program, directory, labdata, run, text};

/// Starts a lab with a worker of a visible backend.
async fn lab(allows_sharing: bool) -> Lab {
    let mut lab = Lab::without_worker().await;
    lab.policy = BackendPolicy {
        visibility: RunVisibility::BackendUsers,
        allows_sharing,
        ..BackendPolicy::default()
    };
    lab.start_worker();
    lab
}

#[tokio::test]
async fn a_second_organization_ends_all_runs_on_a_backend_that_shows_them_to_both() {
    let lab = lab(false).await;
    let alone = lab.queue("print(\"alone\")").await;
    lab.until(&alone, "completed").await;
    let stranger = lab.server.stranger().await;
    let own = lab.queue("print(\"secret\")").await;
    let failed = lab.until(&own, "failed").await;
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains("LABDATA_JOB_RAY_SHARED=true"), "{message}");
    let job = serde_json::json!({ "name": "job", "code": "print(1)" });
    let job = stranger.post("/api/v1/jobs", &job).await.json(200);
    let path = run_path(job["id"].as_str().unwrap());
    let theirs = id_of(&stranger.post(&path, &Value::Null).await.json(200));
    loop {
        let path = format!("{}/{theirs}", super::run_lab::EXECUTIONS);
        let execution = stranger.get(&path).await.json(200);
        if execution["status"] == "failed" {
            assert_eq!(execution["error_message"], failed["error_message"]);
            break;
        }
        assert!(execution["completed_at"].is_null(), "{execution}");
        super::run_lab::pause().await;
    }
    assert!(lab.specs(&own).is_empty() && lab.specs(&theirs).is_empty());
}

#[tokio::test]
async fn the_operator_can_let_organizations_share_a_backend() {
    let lab = lab(true).await;
    lab.server.stranger().await;
    let shared = lab.queue("print(\"shared\")").await;
    lab.until(&shared, "completed").await;
}

#[tokio::test]
async fn two_organizations_and_a_ray_cluster_do_not_start_without_the_opt_in() {
    let directory = directory();
    let create = |organization: &str, settings: &[(&str, &str)]| {
        let arguments = ["api-key", "create", "--scopes", "read", "--user", "ada@lab"];
        let mut command = labdata(directory.path(), &arguments);
        command.args(["--organization", organization]);
        run(command.envs(settings.iter().copied()))
    };
    let ray = ("LABDATA_JOB_BACKEND", "ray+http://127.0.0.1:1");
    assert!(create("one", &[ray]).status.success());
    assert!(create("one", &[ray]).status.success(), "it exists already");
    let refused = create("two", &[ray]);
    let line = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{line}");
    assert!(line.contains("LABDATA_JOB_RAY_SHARED=true"), "{line}");
    // The operator's shell has no settings of the service.
    assert!(create("two", &[]).status.success());

    for arguments in [&["serve", "--bind", "127.0.0.1:0"][..], &["worker"]] {
        let mut command = labdata(directory.path(), arguments);
        let refused = run(command.envs([ray, ("LABDATA_LOG", "error")]));
        let line = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert!(line.contains("LABDATA_JOB_RAY_SHARED=true"), "{line}");
        assert_eq!(line.trim().lines().count(), 1, "{line}");
    }
    let program = Program::serve_with(directory.path(), &["--no-worker"], &[ray]);
    assert_eq!(program.end("TERM").0.code(), Some(0));
    fs::write(
        directory.path().join("labdata.toml"),
        "job_ray_shared = true",
    )
    .unwrap();
    let program = Program::serve(directory.path(), &[ray]);
    assert_eq!(program.end("TERM").0.code(), Some(0));
}
