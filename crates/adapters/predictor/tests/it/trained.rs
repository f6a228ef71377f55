//! Models that the real trainer trained, in the real sandbox.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use labdata_domain::models::{
    Class, ModelFeature, ModelSignature, PredictedValue, Predictions, ProblemType, TaskType,
    check_rows,
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};
use labdata_predictor::{PredictorScripts, PredictorSettings, SandboxPredictor};
use labdata_sandbox::{
    EnvironmentOutcome, EnvironmentRequest, Exit, Limits, Network, PLATFORM_SCOPE, ProcessSpec,
    stop_channel,
};
use labdata_trainer_scripts::{EntryPoint, script, variables};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::{
    platform::Platform,
    support::{model, organization, processes_of, sandbox},
};

/// Program that stores the datasets, and what they contain as JSON.
const DATASETS: &str = include_str!("programs/datasets.py");

/// Program that replaces the predictor of an artifact by code, and stores it.
const POISON: &str = include_str!("programs/poison.py");

/// Code in the poisoned artifact: tries what it must not do, and reports what it could.
const ATTACK: &str = include_str!("programs/attack.py");

/// Artifacts and datasets that all tests share.
struct Trained {
    /// Objects by path.
    objects: BTreeMap<&'static str, Vec<u8>>,
}

static TRAINED: OnceCell<Trained> = OnceCell::const_new();

/// Data directory of all tests: its packages are installed once.
fn data_directory() -> PathBuf {
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
async fn run(
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
    let request = EnvironmentRequest {
        scope: PLATFORM_SCOPE,
        script,
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
fn with_packages(program: &str) -> String {
    let tabular = script(EntryPoint::Tabular);
    let (metadata, _) = tabular.split_once("# ///\n").unwrap();
    format!("{metadata}# ///\n{program}")
}

async fn train(platform: &Platform, name: &str, problem: &str) {
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
struct Lab {
    platform: Platform,
    predictor: Arc<SandboxPredictor>,
}

impl Lab {
    async fn new() -> Self {
        let platform = Platform::start().await;
        for (path, body) in &trained().await.objects {
            platform.store(path, body.clone());
        }
        let settings = PredictorSettings {
            patience: Duration::from_mins(2),
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
    fn model(&self, name: &str, artifact: &str, version: u128) -> ServedModel {
        let described = self.dataset(name);
        let types = described["types"].as_object().unwrap();
        let feature = |(name, data_type): (&String, &Value)| ModelFeature {
            name: name.clone(),
            data_type: serde_json::from_value(data_type.clone()).unwrap(),
            nullable: true,
            levels: None,
        };
        let classes = match name {
            "wine" => (0..3).map(Class::Integer).collect(),
            _ => ["bad", "good"].map(|it| Class::Text(it.to_owned())).into(),
        };
        let mut model = model(organization(1), version);
        model.task = TaskType::Tabular;
        model.signature = ModelSignature {
            features: types.iter().map(feature).collect(),
            problem: ProblemType::Multiclass,
            classes: Some(classes),
        };
        let body = self.platform.stored(artifact);
        model.artifact.sha256 = Sha256::digest(&body).into();
        model.artifact_url = format!("{}{artifact}", self.platform.url);
        model
    }

    fn dataset(&self, name: &str) -> Value {
        serde_json::from_slice(&self.platform.stored(&format!("/{name}.json"))).unwrap()
    }

    /// Returns the rows of a dataset.
    fn rows(&self, name: &str) -> Vec<Map<String, Value>> {
        serde_json::from_value(self.dataset(name)["rows"].clone()).unwrap()
    }

    async fn predict(
        &self,
        model: &ServedModel,
        rows: Vec<Map<String, Value>>,
    ) -> Result<Predictions, PredictError> {
        let request = PredictionRequest {
            input: check_rows(&model.signature.features, rows)?,
            image_urls: BTreeMap::new(),
        };
        self.predictor.predict(model, request).await
    }
}

/// Share of the rows whose target was predicted.
fn accuracy(rows: &[Map<String, Value>], predictions: &Predictions) -> f64 {
    let right = rows.iter().zip(&predictions.values).filter(|(row, value)| {
        let Some(PredictedValue::Class(class)) = value else {
            panic!("{value:?}");
        };
        serde_json::to_value(class).unwrap() == row["target"]
    });
    let count = |number: usize| f64::from(u32::try_from(number).unwrap());
    count(right.count()) / count(rows.len())
}

#[tokio::test]
async fn a_trained_model_predicts_classes_with_their_probabilities() {
    let lab = Lab::new().await;
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows = lab.rows("wine");
    let predictions = lab.predict(&model, rows.clone()).await.unwrap();
    assert!(accuracy(&rows, &predictions) > 0.9);
    let probabilities = predictions.probabilities.unwrap();
    assert_eq!(probabilities.columns.len(), 3);
    for row in 0..rows.len() {
        let columns = probabilities.columns.iter();
        let sum: f64 = columns.map(|column| column[row].unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
}

#[tokio::test]
async fn values_of_all_types_and_nulls_reach_the_model() {
    let lab = Lab::new().await;
    let model = lab.model("mixed", "/mixed.artifact", 2);
    let rows = lab.rows("mixed");
    let predictions = lab.predict(&model, rows.clone()).await.unwrap();
    assert!(accuracy(&rows, &predictions) > 0.9);
    let mut nulls = rows[0].clone();
    nulls.values_mut().for_each(|value| *value = Value::Null);
    let predictions = lab.predict(&model, vec![nulls]).await.unwrap();
    assert_eq!(predictions.values.len(), 1);
}

#[tokio::test]
async fn requests_that_wait_together_have_the_answers_of_single_ones() {
    let lab = Arc::new(Lab::new().await);
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows: Vec<_> = lab.rows("wine").into_iter().step_by(6).collect();
    let all = lab.predict(&model, rows.clone()).await.unwrap();
    let begun: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let (lab, model) = (Arc::clone(&lab), model.clone());
            tokio::spawn(async move { lab.predict(&model, vec![row]).await })
        })
        .collect();
    for (expected, prediction) in all.values.iter().zip(begun) {
        let predicted = prediction.await.unwrap().unwrap();
        assert_eq!(&predicted.values[0], expected);
    }
}

#[tokio::test]
async fn an_artifact_with_another_hash_is_not_loaded() {
    let lab = Lab::new().await;
    let mut model = lab.model("wine", "/wine.artifact", 1);
    model.artifact.sha256[0] ^= 1;
    let refused = lab.predict(&model, lab.rows("wine")).await.unwrap_err();
    assert!(refused.to_string().contains("SHA-256 differs"), "{refused}");
}

#[tokio::test]
async fn a_killed_process_fails_what_it_predicts_and_another_one_follows() {
    let lab = Arc::new(Lab::new().await);
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows = lab.rows("wine");
    lab.predict(&model, rows.clone()).await.unwrap();
    let many: Vec<_> = rows.iter().cycle().take(10_000).cloned().collect();
    let begun: Vec<_> = (0..8)
        .map(|_| {
            let (lab, model, many) = (Arc::clone(&lab), model.clone(), many.clone());
            tokio::spawn(async move { lab.predict(&model, many).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    for pid in processes_of(&data_directory(), &lab.platform.url) {
        let _ = std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status();
    }
    let mut failed = 0;
    for prediction in begun {
        match prediction.await.unwrap() {
            Ok(predictions) => assert_eq!(predictions.values.len(), 10_000),
            Err(PredictError::Delayed(_)) => failed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed > 0);
    lab.predict(&model, rows).await.unwrap();
}

#[tokio::test]
async fn no_prediction_fails_while_another_version_takes_over() {
    let lab = Arc::new(Lab::new().await);
    let versions = [10, 11].map(|version| lab.model("wine", "/wine.artifact", version));
    let rows = lab.rows("wine");
    lab.predict(&versions[0], rows.clone()).await.unwrap();
    let (switch, active) = tokio::sync::watch::channel(0_usize);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (lab, versions, rows) = (Arc::clone(&lab), versions.clone(), rows.clone());
            let mut active = active.clone();
            tokio::spawn(async move {
                let mut predicted = [0, 0];
                while predicted[1] < 5 {
                    let version = *active.borrow_and_update();
                    lab.predict(&versions[version], rows.clone()).await.unwrap();
                    predicted[version] += 1;
                }
                predicted
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    switch.send_replace(1);
    for client in clients {
        assert!(client.await.unwrap().iter().all(|count| *count > 0));
    }
}

#[tokio::test]
async fn a_poisoned_artifact_reaches_nothing_but_the_platform() {
    let lab = Lab::new().await;
    let database = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = data_directory().join("objects");
    std::fs::create_dir_all(&secret).unwrap();
    let secret = secret.join("other-organization");
    std::fs::write(&secret, "secret").unwrap();
    let attack = ATTACK
        .replace("{platform}", &lab.platform.url)
        .replace(
            "{database}",
            &database.local_addr().unwrap().port().to_string(),
        )
        .replace("{secret}", &secret.display().to_string())
        .replace("{server}", &std::process::id().to_string());
    let arguments = [&*lab.platform.url, &*attack];
    run(
        &lab.platform,
        "poison",
        &with_packages(POISON),
        &arguments,
        None,
    )
    .await;
    let model = lab.model("wine", "/poison.artifact", 3);
    let refused = lab.predict(&model, lab.rows("wine")).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.ends_with("RuntimeError: could: platform"), "{text}");
}
