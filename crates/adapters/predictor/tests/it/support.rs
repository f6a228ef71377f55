//! Predictors with small scripts instead of models.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use labdata_domain::{
    files::ObjectKey,
    ids::{FileId, ModelVersionId, OrganizationId},
    models::{
        Artifact, FeatureColumn, FeatureType, FeatureValues, ModelFailure, ModelFeature,
        ModelSignature, PredictedValue, PredictionDelay, PredictionInput, Predictions, ProblemType,
        TaskType,
    },
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};
use labdata_predictor::{PredictorScripts, PredictorSettings, SandboxPredictor};
use labdata_sandbox::{NetworkSettings, Sandbox, Settings};
use uuid::Uuid;

/// Time within which everything here happens.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Start of a script: functions that read and write frames of JSON, `STARTED`, a number that differs
/// between processes, and `ready`.
const PROTOCOL: &str = r#"
import json, os, struct, sys, time

STARTED = time.time_ns() % 10**12

def write(data):
    while data:
        data = data[os.write(1, data):]

def send(message):
    body = json.dumps(message).encode()
    write(struct.pack(">I", len(body)) + body)

def receive():
    header = sys.stdin.buffer.read(4)
    if len(header) < 4:
        os._exit(0)
    return json.loads(sys.stdin.buffer.read(struct.unpack(">I", header)[0]))

def ready():
    send({"type": "ready", "protocol": 1})

def answer(request, values):
    send({"id": request["id"], "predictions": values, "probabilities": None})
"#;

/// Script whose predictions are [`STARTED`](PROTOCOL).
pub(crate) const NUMBERED: &str = "ready()\nwhile True:\n    request = receive()\n    \
    answer(request, [STARTED] * len(request['columns']['x']))\n";

/// Predictor in a temporary data directory.
pub(crate) struct Lab {
    pub(crate) predictor: Arc<SandboxPredictor>,
    pub(crate) data: tempfile::TempDir,
}

impl Lab {
    /// Creates a predictor whose models are all that script.
    pub(crate) fn new(script: &str) -> Self {
        Self::with(script, |settings| settings)
    }

    /// Creates a predictor with other settings.
    pub(crate) fn with(
        script: &str,
        change: impl FnOnce(PredictorSettings) -> PredictorSettings,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        std::fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let script = format!("{PROTOCOL}\n{script}");
        let scripts = PredictorScripts {
            tabular: script.clone(),
            multimodal: script,
        };
        let settings = change(PredictorSettings {
            memory: 1 << 30,
            ..PredictorSettings::new(scripts)
        });
        let predictor = Arc::new(SandboxPredictor::new(sandbox(data.path(), None), settings));
        Self { predictor, data }
    }

    /// Predicts one row.
    pub(crate) async fn predict(&self, model: &ServedModel, x: f64) -> Result<f64, PredictError> {
        let predictions = self.predictor.predict(model, rows(&[x])).await?;
        Ok(number(&predictions))
    }

    /// Predicts one row in a task.
    pub(crate) fn begin(
        &self,
        model: &ServedModel,
        x: f64,
    ) -> tokio::task::JoinHandle<Result<f64, PredictError>> {
        let (predictor, model) = (Arc::clone(&self.predictor), model.clone());
        tokio::spawn(async move {
            let predictions = predictor.predict(&model, rows(&[x])).await?;
            Ok(number(&predictions))
        })
    }

    /// Waits until that many processes of models are left.
    pub(crate) async fn wait_for_processes(&self, count: usize) {
        let end = Instant::now() + SOON;
        loop {
            let found = processes_of(self.data.path(), "").len();
            if found == count {
                return;
            }
            assert!(Instant::now() < end, "{found} processes instead of {count}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Creates a sandbox with that data directory, whose processes reach the platform at that URL.
pub(crate) fn sandbox(data: &Path, platform: Option<&str>) -> Arc<Sandbox> {
    let supervisor = OsString::from(env!("CARGO_BIN_EXE_labdata-predictor-supervisor"));
    Arc::new(Sandbox::new(Settings {
        network: NetworkSettings {
            platform: platform.map(|url| url.parse().unwrap()),
            ..NetworkSettings::default()
        },
        ..Settings::new(data.to_owned(), vec![supervisor])
    }))
}

/// Returns the processes whose home is in the data directory, and whose environment has the text.
pub(crate) fn processes_of(data: &Path, marker: &str) -> Vec<u32> {
    let home = format!("HOME={}/", data.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let text = String::from_utf8_lossy(&environment);
            let is_below = text.split('\0').any(|line| line.starts_with(&home));
            if !is_below || !text.contains(marker) {
                return None;
            }
            entry.file_name().to_str()?.parse().ok()
        })
        .collect()
}

/// Returns an organization.
pub(crate) fn organization(number: u128) -> OrganizationId {
    OrganizationId::new(Uuid::from_u128(number))
}

/// Returns a version of a model with an image and a number as features, which predicts numbers.
pub(crate) fn model(owner: OrganizationId, version: u128) -> ServedModel {
    let feature = |name: &str, data_type| ModelFeature {
        name: name.to_owned(),
        data_type,
        nullable: true,
        levels: None,
    };
    ServedModel {
        organization: owner,
        version: ModelVersionId::new(Uuid::from_u128(version)),
        task: TaskType::Multimodal,
        signature: Arc::new(ModelSignature {
            features: vec![
                feature("x", FeatureType::Float),
                feature("photo", FeatureType::Image),
            ],
            problem: ProblemType::Regression,
            classes: None,
        }),
        artifact: Artifact {
            object: ObjectKey::new(Uuid::from_u128(version)),
            sha256: [0; 32],
            size: 1,
        },
        artifact_url: "http://127.0.0.1:1/artifact".to_owned(),
    }
}

/// Returns a request with these numbers.
pub(crate) fn rows(x: &[f64]) -> PredictionRequest {
    let column = |name: &str, values| FeatureColumn {
        name: name.to_owned(),
        values,
    };
    let photo = FileId::new(Uuid::from_u128(5));
    PredictionRequest {
        input: PredictionInput {
            rows: x.len(),
            columns: vec![
                column(
                    "x",
                    FeatureValues::Numbers(x.iter().copied().map(Some).collect()),
                ),
                column("photo", FeatureValues::Images(vec![photo; x.len()])),
            ],
        },
        image_urls: BTreeMap::new(),
        segmentation: None,
    }
}

/// Returns the only predicted number.
fn number(predictions: &Predictions) -> f64 {
    let numbers = numbers(predictions);
    assert_eq!(numbers.len(), 1);
    numbers.into_iter().sum()
}

/// Returns predicted numbers.
pub(crate) fn numbers(predictions: &Predictions) -> Vec<f64> {
    let values = predictions.values.iter();
    values
        .map(|value| match value {
            Some(PredictedValue::Number(number)) => *number,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Returns the error of a model that failed.
pub(crate) fn failed(failure: ModelFailure) -> PredictError {
    PredictionDelay::Failed(failure).into()
}
