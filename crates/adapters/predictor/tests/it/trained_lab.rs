//! A predictor with models that the real trainer trained, in the real sandbox.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use labdata_domain::{
    jobs::ScriptMetadata,
    models::{Class, ModelFeature, ModelSignature, Predictions, ProblemType, TaskType, check_rows},
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};
use labdata_predictor::{PredictorScripts, PredictorSettings, SandboxPredictor};
use labdata_sandbox::{
    DeclaredPackages, EnvironmentOutcome, EnvironmentRequest, Exit, Limits, Network,
    PLATFORM_SCOPE, ProcessSpec, stop_channel,
};
use labdata_trainer_scripts::{EntryPoint, script, variables};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::{
    platform::Platform,
    support::{model, organization, sandbox},
};

/// Program that stores the datasets, and what they contain as JSON.
const DATASETS: &str = include_str!("programs/datasets.py");

/// Artifacts and datasets that all tests share.
struct Trained {
    /// Objects by path.
    objects: BTreeMap<&'static str, Vec<u8>>,
}

static TRAINED: OnceCell<Trained> = OnceCell::const_new();

/// Data directory of all tests: its packages are installed once.
pub(crate) fn data_directory() -> PathBuf {
    let data = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("predictor");
    std::fs::create_dir_all(&data).unwrap();
    data
}

fn limits() -> Limits {
    Limits {
        wall_clock: Duration::from_mins(10),
        cpu_time: Duration::from_mins(20),
        memory: 8 << 30,
        file_size: 2 << 30,
        scratch: 8 << 30,
        processes: 512,
        grace: Duration::from_secs(1),
    }
}

/// Runs a program with the packages of tabular models.
pub(crate) async fn run(
    platform: &Platform,
    name: &str,
    script: &str,
    arguments: &[&str],
    manifest: Option<Value>,
) {
    let sandbox = sandbox(&data_directory(), Some(&platform.url));
    let host = sandbox.host().await.unwrap();
    let workspace = host.workspace(name);
    let active = host.activate(&workspace, script).await.unwrap();
    let (_stop, mut signal) = stop_channel();
    let metadata = ScriptMetadata::read(script).unwrap().unwrap();
    let packages = DeclaredPackages {
        block: metadata.block,
        dependencies: metadata.dependencies,
        requires_python: metadata.requires_python,
    };
    let request = EnvironmentRequest {
        scope: PLATFORM_SCOPE,
        packages: Some(&packages),
        completion: None,
        limits: limits(),
    };
    let mut logged = 0;
    let installed = host.script_environment(&active, request, &mut signal, |it| logged = it);
    let EnvironmentOutcome::Installed(packages) = installed.await.unwrap() else {
        panic!("the packages were not installed");
    };
    let path = active.script_path().to_string_lossy().into_owned();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let manifest = manifest.map(|it| (variables::MANIFEST.to_owned(), it.to_string()));
    let spec = ProcessSpec {
        arguments: std::iter::once(path).chain(arguments).collect(),
        packages: Some(packages),
        environment: manifest.into_iter().collect(),
        network: Network::Platform,
        limits: limits(),
        logged,
    };
    let outcome = host.run(&active, &spec, &mut signal, |_| ()).await.unwrap();
    assert_eq!(outcome.exit, Exit::Code(0), "{}", outcome.error_tail);
    workspace.remove().await.unwrap();
}

/// Returns the program with the dependencies of tabular models.
pub(crate) fn with_packages(program: &str) -> String {
    let tabular = script(EntryPoint::Tabular);
    let (metadata, _) = tabular.split_once("# ///\n").unwrap();
    format!("{metadata}# ///\n{program}")
}

/// Trains a model of the dataset with that name, which becomes the object `/{name}.artifact`.
pub(crate) async fn train(platform: &Platform, name: &str, problem: &str) {
    let manifest = json!({
        "training_id": name, "attempt": 1, "task_type": "tabular",
        "quality_preset": "medium_quality", "problem_type": problem, "target_column": "target",
        "feature_columns": null, "image_columns": null, "seed": 1, "time_limit_seconds": 300,
        "cpus": 1, "memory_bytes": null, "gpus": 0,
        "inputs": {"dataset": format!("{}/{name}.parquet", platform.url), "images": {}},
        "outputs": {"artifact": {"url": format!("{}/{name}.artifact", platform.url), "headers": {}}},
    });
    let trainer = script(EntryPoint::Tabular);
    run(platform, name, &trainer, &["train", "."], Some(manifest)).await;
}

async fn trained() -> &'static Trained {
    TRAINED
        .get_or_init(|| async {
            let platform = Platform::start().await;
            let datasets = with_packages(DATASETS);
            run(&platform, "datasets", &datasets, &[&platform.url], None).await;
            train(&platform, "wine", "multiclass").await;
            train(&platform, "mixed", "binary").await;
            let paths = [
                "/diabetes.json",
                "/diabetes.parquet",
                "/wine.json",
                "/wine.artifact",
                "/mixed.json",
                "/mixed.artifact",
            ];
            Trained {
                objects: paths.map(|path| (path, platform.stored(path))).into(),
            }
        })
        .await
}

/// Platform with the trained models, and a predictor.
pub(crate) struct Lab {
    pub(crate) platform: Platform,
    pub(crate) predictor: Arc<SandboxPredictor>,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        let platform = Platform::start().await;
        for (path, body) in &trained().await.objects {
            platform.store(path, body.clone());
        }
        let settings = PredictorSettings {
            timeout: Duration::from_mins(2),
            ..PredictorSettings::new(PredictorScripts {
                tabular: script(EntryPoint::Tabular),
                multimodal: script(EntryPoint::Multimodal),
            })
        };
        let sandbox = sandbox(&data_directory(), Some(&platform.url));
        Self {
            predictor: Arc::new(SandboxPredictor::new(sandbox, settings)),
            platform,
        }
    }

    /// Returns a version of the model with that artifact.
    pub(crate) fn model(&self, name: &str, artifact: &str, version: u128) -> ServedModel {
        let described = self.dataset(name);
        let types = described["types"].as_object().unwrap();
        let feature = |(name, data_type): (&String, &Value)| ModelFeature {
            name: name.clone(),
            data_type: serde_json::from_value(data_type.clone()).unwrap(),
            nullable: true,
            levels: None,
        };
        let classes = match name {
            "wine" => Some((0..3).map(Class::Integer).collect()),
            "diabetes" => None,
            _ => Some(["bad", "good"].map(|it| Class::Text(it.to_owned())).into()),
        };
        let problem = match classes {
            Some(_) => ProblemType::Multiclass,
            None => ProblemType::Regression,
        };
        let mut model = model(organization(1), version);
        model.task = TaskType::Tabular;
        model.signature = Arc::new(ModelSignature {
            features: types.iter().map(feature).collect(),
            problem,
            classes,
        });
        let body = self.platform.stored(artifact);
        model.artifact.sha256 = Sha256::digest(&body).into();
        model.artifact_url = format!("{}{artifact}", self.platform.url);
        model
    }

    fn dataset(&self, name: &str) -> Value {
        serde_json::from_slice(&self.platform.stored(&format!("/{name}.json"))).unwrap()
    }

    /// Returns the rows of a dataset.
    pub(crate) fn rows(&self, name: &str) -> Vec<Map<String, Value>> {
        serde_json::from_value(self.dataset(name)["rows"].clone()).unwrap()
    }

    pub(crate) async fn predict(
        &self,
        model: &ServedModel,
        rows: Vec<Map<String, Value>>,
    ) -> Result<Predictions, PredictError> {
        let request = PredictionRequest {
            input: check_rows(&model.signature.features, &rows.into_iter().collect())?,
            image_urls: BTreeMap::new(),
            segmentation: None,
        };
        self.predictor.predict(model, request).await
    }
}
