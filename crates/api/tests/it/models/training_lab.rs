//! A server with a worker that trains real models in the sandbox.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use labdata_application::{
    Services,
    models::training::begin_training::TrainingContext,
    work::{WorkContext, begin_run::RunContext},
};
use labdata_domain::{
    ids::{ModelId, ModelVersionId},
    models::{
        Dataset, ModelVersion, NewModel, NewVersion, Predictions, QualityPreset, TaskType,
        TrainingLimits, TrainingRequest,
    },
    work::BackendPolicy,
};
use labdata_local_runner::LocalRunner;
use labdata_memory::FixedClock;
use labdata_object_store::{GatewaySigner, LocalBlobStore};
use labdata_ports::{
    Clock,
    models::{PredictError, PredictionRequest, Predictor, ServedModel, TrainingScripts},
    work::runner::{JobRunner, RunLimits, RunResources},
};
use labdata_predictor::{PredictorScripts, PredictorSettings, SandboxPredictor};
use labdata_sandbox::{Network, NetworkSettings, Sandbox, Settings};
use labdata_trainer_scripts::{EntryPoint, script, training_script};
use labdata_worker::{
    BACKEND_TIMEOUT, BackendSettings, Background, NoObserver, TaskObserver, WorkSettings,
    WorkerSettings,
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::json;
use tempfile::TempDir;

use crate::server::{TestServer, in_memory, send};

/// Base of URLs that are signed before the server has an address.
const UNBOUND: &str = "http://localhost";

/// Secret of signed URLs.
const SECRET: [u8; 32] = [9; 32];

/// Maximum time that a test waits for something.
const PATIENCE_OF_TESTS: Duration = Duration::from_mins(4);

pub(super) const WINE: &str = include_str!("data/wine.csv");
pub(super) const DIABETES: &str = include_str!("data/diabetes.csv");

/// A server, and what its workers need.
pub(super) struct TrainingLab {
    pub(super) server: TestServer,
    pub(super) limits: TrainingLimits,
    /// Predictor of the server, in the sandbox.
    pub(super) predictor: Arc<BoundPredictor>,
    _objects: TempDir,
}

/// Predictor that is made when the address of its server is known.
#[derive(Default)]
pub(super) struct BoundPredictor {
    predictor: OnceLock<(String, SandboxPredictor)>,
}

impl BoundPredictor {
    /// Returns the predictor, and the model with an URL of the server.
    fn bound(&self, model: &ServedModel) -> (&SandboxPredictor, ServedModel) {
        let (address, predictor) = self.predictor.get().unwrap();
        let model = ServedModel {
            artifact_url: model.artifact_url.replace(UNBOUND, address),
            ..model.clone()
        };
        (predictor, model)
    }
}

#[async_trait]
impl Predictor for BoundPredictor {
    async fn predict(
        &self,
        model: &ServedModel,
        request: PredictionRequest,
    ) -> Result<Predictions, PredictError> {
        let (predictor, model) = self.bound(model);
        predictor.predict(&model, request).await
    }

    fn is_ready(&self, model: &ServedModel) -> bool {
        let (predictor, model) = self.bound(model);
        predictor.is_ready(&model)
    }

    fn prepare(&self, model: &ServedModel) {
        let (predictor, model) = self.bound(model);
        predictor.prepare(&model);
    }

    async fn close(&self) {
        if let Some((_, predictor)) = self.predictor.get() {
            predictor.close().await;
        }
    }
}

/// A predictor whose processes reach the server at that address.
fn sandboxed_predictor(address: &str) -> SandboxPredictor {
    let supervisor = vec![
        env!("CARGO_BIN_EXE_labdata").into(),
        "run-supervisor".into(),
    ];
    let sandbox = Sandbox::new(Settings {
        network: NetworkSettings {
            platform: address.parse().ok(),
            ..NetworkSettings::default()
        },
        ..Settings::new(data_directory(), supervisor)
    });
    let scripts = PredictorScripts {
        tabular: script(EntryPoint::Tabular),
        multimodal: script(EntryPoint::Multimodal),
    };
    let settings = PredictorSettings {
        timeout: PATIENCE_OF_TESTS,
        ..PredictorSettings::new(scripts)
    };
    SandboxPredictor::new(Arc::new(sandbox), settings)
}

struct Scripts;

impl TrainingScripts for Scripts {
    fn script(&self, _: TaskType, manifest: &str) -> String {
        training_script(EntryPoint::Tabular, manifest)
    }
}

/// Data directory of all sandboxes: its packages are installed once.
fn data_directory() -> PathBuf {
    let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trainings");
    fs::create_dir_all(&data).unwrap();
    data
}

impl TrainingLab {
    pub(super) async fn start() -> Self {
        let objects = tempfile::tempdir().unwrap();
        let predictor = Arc::new(BoundPredictor::default());
        let clock = Arc::new(FixedClock::default());
        let time: Arc<dyn Clock> = clock.clone();
        let mut services = in_memory(time);
        services.blobs = Arc::new(LocalBlobStore::open(objects.path()).await.unwrap());
        services.signer = Arc::new(GatewaySigner::new(UNBOUND, &SECRET));
        services.gateway = Arc::new(GatewaySigner::new(UNBOUND, &SECRET));
        services.predictor = predictor.clone();
        let server = TestServer::start_predicting(services, clock).await;
        let address = format!("http://{}", server.address);
        let predicts = sandboxed_predictor(&address);
        assert!(predictor.predictor.set((address, predicts)).is_ok());
        Self {
            server,
            predictor,
            limits: TrainingLimits {
                time_limit: Duration::from_mins(2),
                cpus: 2,
                memory: 8 << 30,
                gpus: 0,
            },
            _objects: objects,
        }
    }

    /// Services of a worker, which signs URLs of this server.
    fn services(&self) -> Services {
        let base = format!("http://{}", self.server.address);
        let mut services = self.server.services.clone();
        services.gateway = Arc::new(GatewaySigner::new(&base, &SECRET));
        services
    }

    /// A backend in the sandbox of this machine.
    pub(super) fn sandbox(&self) -> Arc<dyn JobRunner> {
        let supervisor = vec![
            env!("CARGO_BIN_EXE_labdata").into(),
            "run-supervisor".into(),
        ];
        let base = format!("http://{}", self.server.address);
        Arc::new(LocalRunner::new(Arc::new(Sandbox::new(Settings {
            network: NetworkSettings {
                access: Network::Internet,
                platform: base.parse().ok(),
                ..NetworkSettings::default()
            },
            ..Settings::new(data_directory(), supervisor)
        }))))
    }

    /// Starts a worker.
    pub(super) fn worker(&self, runner: &Arc<dyn JobRunner>) -> Background {
        let base_url = format!("http://{}", self.server.address);
        let backend = |concurrency| BackendSettings {
            runner: Arc::clone(runner),
            concurrency,
            timeout: BACKEND_TIMEOUT,
        };
        let worker = WorkerSettings {
            work: vec![
                WorkSettings {
                    backend: backend(1),
                    context: WorkContext::Run(RunContext {
                        limits: RunLimits::default(),
                        base_url: base_url.clone(),
                        policy: BackendPolicy::default(),
                    }),
                },
                WorkSettings {
                    backend: backend(1),
                    context: WorkContext::Training(TrainingContext {
                        base_url,
                        limits: self.limits,
                        resources: RunResources::default(),
                        policy: BackendPolicy::default(),
                        checkpoints: BTreeMap::new(),
                        scripts: Arc::new(Scripts),
                    }),
                },
            ],
            mail: None,
            webhooks: None,
        };
        let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
        Background::start(&self.services(), Some(worker), &observer)
    }

    /// Uploads a CSV file and makes a dataset of it.
    async fn dataset(&self, csv: &str) -> Dataset {
        let client = self.server.admin().await;
        let body = json!({ "job_name": "upload" });
        let execution = client.post("/api/v1/job-executions", &body).await.json(200);
        let execution = execution["job_execution_id"].as_str().unwrap();
        let part = Part::bytes(csv.as_bytes().to_vec()).file_name("data.csv");
        let form = Form::new()
            .text("job_execution_id", execution.to_owned())
            .part("file", part);
        let request = client.request(Method::POST, "/api/v1/files");
        let file = send(request.multipart(form)).await.json(200);
        let name = format!("dataset {execution}");
        let body = json!({ "name": name, "file_id": file["file_id"] });
        let dataset = client.post("/api/v1/datasets", &body).await.json(200);
        let id = dataset["id"].as_str().unwrap().parse().unwrap();
        let datasets = &self.server.services.datasets;
        datasets.get(self.server.organization, id).await.unwrap()
    }

    /// Queues the training of a new model.
    pub(super) async fn train(
        &self,
        csv: &str,
        target: &str,
        preset: QualityPreset,
    ) -> ModelVersion {
        let dataset = self.dataset(csv).await;
        self.train_on(&dataset, target, preset).await
    }

    /// Queues the training of a new model on a dataset.
    pub(super) async fn train_on(
        &self,
        dataset: &Dataset,
        target: &str,
        preset: QualityPreset,
    ) -> ModelVersion {
        let request = TrainingRequest {
            target: target.to_owned(),
            preset,
            ..TrainingRequest::default()
        };
        let services = &self.server.services;
        let model = ModelId::new(services.ids.next_id());
        let new = NewVersion {
            id: ModelVersionId::new(services.ids.next_id()),
            description: None,
            dataset: dataset.id,
            plan: request.plan(dataset).unwrap(),
            requested_by: self.server.user,
            requested_at: services.clock.now(),
        };
        let model = NewModel {
            id: model,
            name: format!("model {model}"),
        };
        let created = services
            .models
            .create(self.server.organization, &model, &new);
        created.await.unwrap()
    }

    /// Queues the training of another version of a model, on the same dataset.
    pub(super) async fn train_again(&self, of: &ModelVersion) -> ModelVersion {
        let services = &self.server.services;
        let new = NewVersion {
            id: ModelVersionId::new(services.ids.next_id()),
            description: None,
            dataset: of.dataset,
            plan: of.plan.clone(),
            requested_by: self.server.user,
            requested_at: services.clock.now(),
        };
        let added = services
            .models
            .add_version(self.server.organization, of.model, &new);
        added.await.unwrap()
    }

    pub(super) async fn version(&self, of: &ModelVersion) -> ModelVersion {
        let models = &self.server.services.models;
        let found = models.get(self.server.organization, of.model, Some(of.number));
        found.await.unwrap()
    }

    /// Waits until the version is as wanted.
    pub(super) async fn until(
        &self,
        of: &ModelVersion,
        is_wanted: impl Fn(&ModelVersion) -> bool,
    ) -> ModelVersion {
        let changes = async {
            loop {
                let version = self.version(of).await;
                if is_wanted(&version) {
                    return version;
                }
                assert!(version.state.is_in_flight(), "{version:#?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE_OF_TESTS, changes).await;
        waited.unwrap_or_else(|_| panic!("version {} is not as wanted in time", of.version))
    }

    /// Waits for the end of a training.
    pub(super) async fn ended(&self, of: &ModelVersion) -> ModelVersion {
        self.until(of, |version| !version.state.is_in_flight())
            .await
    }

    pub(super) async fn cancel(&self, version: &ModelVersion) -> ModelVersion {
        let services = &self.server.services;
        let now = services.clock.now();
        let organization = self.server.organization;
        let cancelled = services.models.cancel(organization, version.model, now);
        cancelled.await.unwrap()
    }
}

/// Processes whose command line names the version.
pub(super) fn processes(version: &ModelVersion) -> Vec<String> {
    let id = version.version.to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&id)).collect()
}

/// Workspaces of the version below a data directory.
pub(super) fn workspaces(version: &ModelVersion) -> Vec<PathBuf> {
    let id = version.version.to_string();
    let workers = fs::read_dir(data_directory().join("jobs/workers")).unwrap();
    let workspaces = workers
        .flatten()
        .filter_map(|worker| fs::read_dir(worker.path()).ok());
    let paths = workspaces.flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.to_string_lossy().contains(&id))
        .collect()
}
