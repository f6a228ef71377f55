//! An organization that trains, on a worker and the memory fakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use labdata_application::{
    Error, Services,
    models::training::{
        begin_training::TrainingContext, receive_report::receive_report,
        running_training::running_training,
    },
    work::{
        WorkContext,
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
    work::{BackendPolicy, WORK_LEASE},
};
use labdata_memory::{FixedClock, InMemoryJobRunner};
use labdata_ports::{
    files::blob::{Granted, SignedRequest},
    models::TrainingScripts,
    work::runner::{
        EndReason, JobRunner, LogChunk, RunExit, RunId, RunResources, RunSpec, RunStatus, RunView,
        RunnerError, ScriptEnd,
    },
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    testing::{actor, in_memory_at},
    work::{BACKEND_TIMEOUT, BackendSettings, WorkSettings, work},
};

/// SHA-256 of [`MODEL`].
const MODEL_SHA256: &str = "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4";
const MODEL: &[u8] = b"model";

/// Scripts that run until a test ends them, and their manifests.
#[derive(Default)]
pub(super) struct Scripts(Mutex<Vec<Value>>);

impl TrainingScripts for Scripts {
    fn script(&self, _: TaskType, manifest: &str) -> String {
        let manifest = serde_json::from_str(manifest).unwrap();
        self.0.lock().unwrap().push(manifest);
        "time.sleep(600)".to_owned()
    }
}

/// A backend whose runs never get beyond their preparation.
pub(super) struct NeverPrepared(pub(super) InMemoryJobRunner);

impl NeverPrepared {
    pub(super) fn hide(view: RunView) -> RunView {
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
pub(super) struct Worker {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Worker {
    pub(super) async fn stop(self) {
        self.stopping.send_replace(true);
        self.task.await.unwrap();
    }
}

/// An organization with a dataset, and a backend that the test plays.
pub(super) struct Lab {
    pub(super) services: Services,
    pub(super) clock: Arc<FixedClock>,
    pub(super) actor: Actor,
    pub(super) dataset: DatasetId,
    pub(super) runner: InMemoryJobRunner,
    pub(super) scripts: Arc<Scripts>,
    pub(super) policy: BackendPolicy,
}

impl Lab {
    /// Sweeps, and once more after a lease without a renewal.
    pub(super) async fn sweep_after_a_lease(&self) -> SweptWork {
        let seen = sweep_work(&self.services).await.unwrap();
        assert_eq!(seen, SweptWork::default());
        self.clock.advance(WORK_LEASE);
        sweep_work(&self.services).await.unwrap()
    }

    pub(super) async fn new() -> Self {
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
            tables: BTreeSet::new(),
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
    pub(super) async fn train(&self) -> ModelVersion {
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
    pub(super) fn worker_on(&self, runner: Arc<dyn JobRunner>) -> Worker {
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

    pub(super) fn worker(&self) -> Worker {
        self.worker_on(Arc::new(self.runner.clone()))
    }

    pub(super) async fn version(&self, of: &ModelVersion) -> ModelVersion {
        let organization = self.actor.organization;
        let found = self
            .services
            .models
            .get(organization, of.model, Some(of.number));
        found.await.unwrap()
    }

    pub(super) async fn until(
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
    pub(super) async fn begun(&self, count: usize) -> Vec<RunId> {
        loop {
            let submitted = self.runner.submitted();
            if submitted.len() >= count {
                return submitted.iter().map(|spec| spec.run).collect();
            }
            pause().await;
        }
    }

    /// Waits until the backend has nothing of the run.
    pub(super) async fn until_reaped(&self, run: RunId) {
        while self.runner.status(run).await.unwrap() != RunView::lost() {
            pause().await;
        }
    }

    /// Manifest of a run.
    pub(super) fn manifest(&self, run: RunId) -> Value {
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
    pub(super) async fn report(&self, run: RunId, body: &Value) -> bool {
        let manifest = self.manifest(run);
        let token = &manifest["secrets"]["outputs"]["report"]["token"];
        self.report_with(token.as_str().unwrap(), body).await
    }

    /// Reports with that token; returns whether it was taken.
    pub(super) async fn report_with(&self, token: &str, body: &Value) -> bool {
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
    pub(super) async fn succeed(&self, run: RunId) {
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
pub(super) async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub(super) fn exited(code: i32) -> ScriptEnd {
    ScriptEnd {
        reason: EndReason::Exited,
        exit: Some(RunExit::Code(code)),
        error_tail: "Traceback: the last line".to_owned(),
    }
}

pub(super) fn constant_target() -> Value {
    json!({"error": {"code": "constant_target", "exit_code": 10, "message": "\"cultivar\" has one value."}})
}

pub(super) fn is_training(state: &VersionState) -> bool {
    matches!(state, VersionState::Training { .. })
}

pub(super) fn is_over(state: &VersionState) -> bool {
    !state.is_in_flight()
}
