//! Trainings on a worker and the memory fakes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use labdata_application::{
    Error,
    models::training::{
        begin_training::TrainingContext, exchange_token::exchange_token,
        receive_report::receive_report, running_training::running_training,
    },
    work::{
        WorkContext,
        end_work::end_work,
        sweep_work::{SweptWork, sweep_work},
    },
};
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId},
    models::{
        ColumnProfile, Dataset, DatasetColumn, DatasetSource, MAX_ARTIFACT_BYTES, ModelVersion,
        NewModel, NewVersion, TaskType, TrainingLimits, TrainingRequest, VersionState,
    },
    people::actor::Actor,
    refusal::{Refusal, RefusalKind},
    scalar::DataType,
    storage::StorageQuota,
    work::{BackendPolicy, NotStarted, RunVisibility, WORK_LEASE, WorkEnd, WorkId, WorkKind},
};
use labdata_memory::{FixedClock, InMemoryJobRunner};
use labdata_ports::{
    files::blob::{Granted, SignedRequest},
    models::TrainingScripts,
    work::{
        WorkClaim,
        runner::{
            EndReason, JobRunner, LogChunk, RunExit, RunId, RunResources, RunSpec, RunStatus,
            RunView, RunnerError, ScriptEnd,
        },
    },
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use super::*;
use crate::testing::{actor, in_memory_at};

/// SHA-256 of [`MODEL`].
const MODEL_SHA256: &str = "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4";
const MODEL: &[u8] = b"model";

/// Scripts that run until a test ends them, and their manifests.
#[derive(Default)]
struct Scripts(Mutex<Vec<Value>>);

impl TrainingScripts for Scripts {
    fn script(&self, _: TaskType, manifest: &str) -> String {
        let manifest = serde_json::from_str(manifest).unwrap();
        self.0.lock().unwrap().push(manifest);
        "time.sleep(600)".to_owned()
    }
}

/// A backend whose runs never get beyond their preparation.
struct NeverPrepared(InMemoryJobRunner);

impl NeverPrepared {
    fn hide(view: RunView) -> RunView {
        match view.status {
            RunStatus::Running => RunView {
                status: RunStatus::Preparing,
                ..view
            },
            RunStatus::Preparing | RunStatus::Ended(_) => view,
        }
    }
}

#[async_trait]
impl JobRunner for NeverPrepared {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        self.0.submit(spec).await
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        self.0.status(run).await.map(Self::hide)
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        let seen = match seen.status {
            RunStatus::Preparing => &RunView {
                status: RunStatus::Running,
                ..seen.clone()
            },
            RunStatus::Running | RunStatus::Ended(_) => seen,
        };
        self.0.wait(run, seen).await.map(Self::hide)
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogChunk, RunnerError> {
        self.0.logs(run, offset).await
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        self.0.cancel(run).await
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        self.0.reap(run).await
    }
}

/// A running worker.
struct Worker {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Worker {
    async fn stop(self) {
        self.stopping.send_replace(true);
        self.task.await.unwrap();
    }
}

/// An organization with a dataset, and a backend that the test plays.
struct Lab {
    services: Services,
    clock: Arc<FixedClock>,
    actor: Actor,
    dataset: DatasetId,
    runner: InMemoryJobRunner,
    scripts: Arc<Scripts>,
    policy: BackendPolicy,
}

impl Lab {
    /// Sweeps, and once more after a lease without a renewal.
    async fn sweep_after_a_lease(&self) -> SweptWork {
        let seen = sweep_work(&self.services).await.unwrap();
        assert_eq!(seen, SweptWork::default());
        self.clock.advance(WORK_LEASE);
        sweep_work(&self.services).await.unwrap()
    }

    async fn new() -> Self {
        let clock = Arc::new(FixedClock::default());
        let services = in_memory_at(Arc::clone(&clock));
        let actor = actor(&services).await;
        let dataset = Dataset {
            id: DatasetId::new(services.ids.next_id()),
            name: "wines".to_owned(),
            description: None,
            columns: ["alcohol", "cultivar"]
                .map(|name| DatasetColumn {
                    name: name.to_owned(),
                    data_type: DataType::Text,
                    profile: ColumnProfile {
                        nulls: 0,
                        distinct: Some(3),
                    },
                })
                .into(),
            row_count: 178,
            source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
            object: ObjectKey::new(services.ids.next_id()),
            size: 100,
            created_by: actor.user,
            created_at: services.clock.now(),
        };
        let added = services
            .datasets
            .add(actor.organization, &dataset, StorageQuota::UNLIMITED);
        added.await.unwrap();
        Self {
            services,
            clock,
            actor,
            dataset: dataset.id,
            runner: InMemoryJobRunner::new(),
            scripts: Arc::default(),
            policy: BackendPolicy::default(),
        }
    }

    /// Queues the training of a new model.
    async fn train(&self) -> ModelVersion {
        let services = &self.services;
        let organization = self.actor.organization;
        let dataset = services
            .datasets
            .get(organization, self.dataset)
            .await
            .unwrap();
        let request = TrainingRequest {
            target: "cultivar".to_owned(),
            ..TrainingRequest::default()
        };
        let version = NewVersion {
            id: ModelVersionId::new(services.ids.next_id()),
            description: None,
            dataset: dataset.id,
            plan: request.plan(&dataset).unwrap(),
            requested_by: self.actor.user,
            requested_at: services.clock.now(),
        };
        let id = ModelId::new(services.ids.next_id());
        let model = NewModel {
            id,
            name: format!("model {id}"),
        };
        services
            .models
            .create(organization, &model, &version)
            .await
            .unwrap()
    }

    /// Starts a worker with that backend and two slots.
    fn worker_on(&self, runner: Arc<dyn JobRunner>) -> Worker {
        let settings = WorkSettings {
            backend: BackendSettings {
                runner,
                concurrency: 2,
                timeout: BACKEND_TIMEOUT,
            },
            context: WorkContext::Training(TrainingContext {
                base_url: "http://lab.example.org".to_owned(),
                limits: TrainingLimits {
                    time_limit: Duration::from_mins(10),
                    cpus: 1,
                    memory: 1 << 30,
                    gpus: 0,
                },
                resources: RunResources::default(),
                policy: self.policy,
                checkpoints: BTreeMap::new(),
                scripts: self.scripts.clone(),
            }),
        };
        let (stopping, stopped) = watch::channel(false);
        let task = tokio::spawn(work(self.services.clone(), settings, stopped));
        Worker { stopping, task }
    }

    fn worker(&self) -> Worker {
        self.worker_on(Arc::new(self.runner.clone()))
    }

    async fn version(&self, of: &ModelVersion) -> ModelVersion {
        let organization = self.actor.organization;
        let found = self
            .services
            .models
            .get(organization, of.model, Some(of.number));
        found.await.unwrap()
    }

    async fn until(
        &self,
        of: &ModelVersion,
        is_wanted: impl Fn(&VersionState) -> bool,
    ) -> ModelVersion {
        loop {
            let version = self.version(of).await;
            if is_wanted(&version.state) {
                return version;
            }
            pause().await;
        }
    }

    /// Waits until that number of runs has begun; returns them.
    async fn begun(&self, count: usize) -> Vec<RunId> {
        loop {
            let submitted = self.runner.submitted();
            if submitted.len() >= count {
                return submitted.iter().map(|spec| spec.run).collect();
            }
            pause().await;
        }
    }

    /// Waits until the backend has nothing of the run.
    async fn until_reaped(&self, run: RunId) {
        while self.runner.status(run).await.unwrap() != RunView::lost() {
            pause().await;
        }
    }

    /// Manifest of a run.
    fn manifest(&self, run: RunId) -> Value {
        let manifests = self
            .scripts
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let of_run = manifests.iter().find(|manifest| {
            manifest["training_id"] == run.work.to_string() && manifest["attempt"] == run.attempt
        });
        of_run.unwrap().clone()
    }

    /// Reports as that run; returns whether it was taken.
    async fn report(&self, run: RunId, body: &Value) -> bool {
        let manifest = self.manifest(run);
        let token = &manifest["secrets"]["outputs"]["report"]["token"];
        self.report_with(token.as_str().unwrap(), body).await
    }

    /// Reports with that token; returns whether it was taken.
    async fn report_with(&self, token: &str, body: &Value) -> bool {
        let body = serde_json::to_vec(body).unwrap();
        match running_training(&self.services, token).await {
            Ok(training) => {
                receive_report(&self.services, &training, &body)
                    .await
                    .unwrap();
                true
            }
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Unauthenticated,
                ..
            })) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Uploads an artifact and reports a result, as that run.
    async fn succeed(&self, run: RunId) {
        let manifest = self.manifest(run);
        let artifact = &manifest["secrets"]["outputs"]["artifact"];
        let (_, path) = artifact["url"].as_str().unwrap().split_once("://").unwrap();
        let (_, path) = path.split_once('/').unwrap();
        let headers = artifact["headers"].as_object().unwrap().iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        let request = SignedRequest {
            method: "PUT",
            path: &format!("/{path}"),
            query: "",
            headers: &headers,
        };
        let granted = self
            .services
            .gateway
            .verify(&request, self.services.clock.now());
        let Granted::Upload(organization, grant) = granted.unwrap() else {
            panic!("{artifact}");
        };
        let body = Box::pin(stream::iter([Ok(Bytes::from_static(MODEL))]));
        let stored =
            self.services
                .blobs
                .put_new(organization, grant.object, body, MAX_ARTIFACT_BYTES);
        stored.await.unwrap();
        let result = json!({
            "problem_type": "multiclass", "classes": ["a", "b", "c"],
            "metrics": {"accuracy": {"value": 0.9, "higher_is_better": true}},
            "primary_metric": "accuracy", "leaderboard": [], "feature_importance": null,
            "confusion_matrix": null, "residuals": null, "rows": {"train": 142, "test": 36},
            "features": [], "versions": {},
            "artifact": {"sha256": MODEL_SHA256, "size": MODEL.len()},
        });
        assert!(self.report(run, &json!({ "result": result })).await);
    }
}

/// Between two looks at something that is about to change.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

fn exited(code: i32) -> ScriptEnd {
    ScriptEnd {
        reason: EndReason::Exited,
        exit: Some(RunExit::Code(code)),
        error_tail: "Traceback: the last line".to_owned(),
    }
}

fn constant_target() -> Value {
    json!({"error": {"code": "constant_target", "exit_code": 10, "message": "\"cultivar\" has one value."}})
}

fn is_training(state: &VersionState) -> bool {
    matches!(state, VersionState::Training { .. })
}

fn is_over(state: &VersionState) -> bool {
    !state.is_in_flight()
}

#[tokio::test]
async fn a_training_whose_lease_ended_is_stopped_and_its_attempt_fenced() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    let first = lab.begun(1).await[0];
    // The worker does not renew in time, as one that was suspended.
    assert_eq!(lab.sweep_after_a_lease().await.requeued, 1);
    lab.until_reaped(first).await;
    let second = lab.begun(2).await[1];
    assert_eq!(
        (first.work, first.attempt, second.attempt),
        (second.work, 1, 2)
    );

    assert!(!lab.report(first, &constant_target()).await);
    let late = WorkClaim {
        organization: lab.actor.organization,
        work: WorkId::Training(version.version),
        attempt: first.attempt,
    };
    let end = WorkEnd::not_started(WorkKind::Training, &NotStarted::NotAssembled);
    assert!(!end_work(&lab.services, late, &end).await.unwrap());
    assert!(is_training(&lab.version(&version).await.state));

    lab.succeed(second).await;
    lab.runner.finish(second, exited(0));
    let ready = lab.until(&version, is_over).await;
    assert_eq!((ready.error(), ready.is_active), (None, true));
    lab.until_reaped(second).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_training_that_lost_two_workers_fails() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    for attempt in 1..=2 {
        lab.begun(attempt).await;
        lab.sweep_after_a_lease().await;
    }
    let failed = lab.until(&version, is_over).await;
    assert!(failed.error().unwrap().contains("was lost"), "{failed:?}");
    for run in lab.begun(2).await {
        lab.until_reaped(run).await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_training_is_cancelled_while_its_packages_are_installed() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker_on(Arc::new(NeverPrepared(lab.runner.clone())));
    let run = lab.begun(1).await[0];
    let now = lab.services.clock.now();
    let organization = lab.actor.organization;
    let cancelled = lab
        .services
        .models
        .cancel(organization, version.model, now)
        .await;
    assert_eq!(cancelled.unwrap().state.as_str(), "cancelled");
    lab.until_reaped(run).await;
    assert!(!lab.report(run, &constant_target()).await);
    worker.stop().await;
    assert_eq!(lab.version(&version).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn the_reported_error_explains_a_failure_and_the_exit_code_one_without_a_report() {
    let lab = Lab::new().await;
    let worker = lab.worker();
    let reported = lab.train().await;
    let run = lab.begun(1).await[0];
    assert!(lab.report(run, &constant_target()).await);
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&reported, is_over).await;
    assert_eq!(failed.error(), Some("\"cultivar\" has one value."));

    let silent = lab.train().await;
    let run = lab.begun(2).await[1];
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&silent, is_over).await;
    let error = failed.error().unwrap();
    assert!(
        error.contains("exit code 10") && error.contains("the last line"),
        "{error}"
    );

    // An error of the process's last step does not count if it says that it succeeded.
    let contradictory = lab.train().await;
    let run = lab.begun(3).await[2];
    assert!(lab.report(run, &constant_target()).await);
    lab.runner.finish(run, exited(0));
    let failed = lab.until(&contradictory, is_over).await;
    let error = failed.error().unwrap();
    assert!(error.contains("it reported no result"), "{error}");
    worker.stop().await;
}

#[tokio::test]
async fn a_result_does_not_count_after_another_exit_code() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    let run = lab.begun(1).await[0];
    lab.succeed(run).await;
    lab.runner.finish(run, exited(20));
    let failed = lab.until(&version, is_over).await;
    assert!(
        failed.error().unwrap().contains("exit code 20"),
        "{failed:?}"
    );
    assert!(!failed.is_active);
    worker.stop().await;
}

#[tokio::test]
async fn workers_never_train_one_version_twice() {
    const TRAININGS: usize = 12;
    let lab = Lab::new().await;
    let workers: Vec<_> = (0..3).map(|_| lab.worker()).collect();
    let mut versions = Vec::new();
    for _ in 0..TRAININGS {
        versions.push(lab.train().await);
    }
    for number in 0..TRAININGS {
        let run = lab.begun(number + 1).await[number];
        lab.succeed(run).await;
        lab.runner.finish(run, exited(0));
    }
    for version in &versions {
        assert_eq!(lab.until(version, is_over).await.error(), None);
    }
    for worker in workers {
        worker.stop().await;
    }
    let runs = lab.begun(TRAININGS).await;
    let mut works: Vec<_> = runs.iter().map(|run| run.work.to_string()).collect();
    works.sort();
    works.dedup();
    assert_eq!((runs.len(), works.len()), (TRAININGS, TRAININGS));
    assert!(runs.iter().all(|run| run.attempt == 1), "{runs:?}");
}

#[tokio::test]
async fn on_a_backend_that_others_see_a_training_exchanges_its_token_once() {
    let mut lab = Lab::new().await;
    lab.policy.visibility = RunVisibility::BackendUsers;
    let version = lab.train().await;
    let worker = lab.worker();
    let run = lab.begun(1).await[0];
    assert_eq!(lab.manifest(run)["secrets"], Value::Null);
    let spec = lab.runner.submitted().remove(0);
    let exchange = spec.key_exchange.unwrap();
    assert_eq!(exchange.url, "http://lab.example.org/training-token");

    let secrets = exchange_token(&lab.services, &exchange.nonce)
        .await
        .unwrap();
    let secrets: Value = serde_json::from_str(&secrets).unwrap();
    assert!(
        secrets["inputs"]["dataset"].is_string()
            && secrets["outputs"]["artifact"]["url"].is_string()
    );
    let again = exchange_token(&lab.services, &exchange.nonce).await;
    assert!(
        matches!(
            again,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Unauthenticated,
                ..
            }))
        ),
        "{again:?}"
    );
    assert!(!lab.report_with(&exchange.nonce, &constant_target()).await);
    let token = secrets["outputs"]["report"]["token"].as_str().unwrap();
    assert!(lab.report_with(token, &constant_target()).await);
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&version, is_over).await;
    assert_eq!(failed.error(), Some("\"cultivar\" has one value."));
    worker.stop().await;
}
