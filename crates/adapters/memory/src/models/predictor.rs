//! A predictor that adds up.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use labdata_domain::{
    ids::{ModelVersionId, OrganizationId},
    instruments::images::PixelSize,
    models::{
        Class, FeatureValues, PredictedMask, PredictionDelay, PredictionInput, Predictions,
        ProblemType, RawPredictions,
    },
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};

/// A PNG of one white pixel.
const MASK: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mP4DwQACfsD/Wj6HMwAAAAASUVORK5CYII=";

/// Confidence of every mask.
const CONFIDENCE: f64 = 0.75;

/// Predictor without models. A regression predicts the sum of a row's numbers. A classification is
/// certain of the class whose index is that sum, or of the last one. A segmentation predicts a mask of one pixel.
#[derive(Debug, Default)]
pub struct InMemoryPredictor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    errors: VecDeque<PredictError>,
    served: Vec<ServedModel>,
    ready: HashSet<(OrganizationId, ModelVersionId)>,
    /// Versions whose preparation does not end.
    held: Option<HashSet<(OrganizationId, ModelVersionId)>>,
    is_closed: bool,
}

impl InMemoryPredictor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails the next prediction that has no planned error yet.
    pub fn fail_next(&self, error: PredictError) {
        self.state().errors.push_back(error);
    }

    /// Returns the models of all predictions, in order.
    #[must_use]
    pub fn served(&self) -> Vec<ServedModel> {
        self.state().served.clone()
    }

    /// Lets no preparation end that begins from now on.
    pub fn hold_preparations(&self) {
        self.state().held = Some(HashSet::new());
    }

    /// Lets all preparations end.
    pub fn finish_preparations(&self) {
        let mut state = self.state();
        let held = state.held.take();
        state.ready.extend(held.into_iter().flatten());
    }
}

#[async_trait]
impl Predictor for InMemoryPredictor {
    async fn predict(
        &self,
        model: &ServedModel,
        request: PredictionRequest,
    ) -> Result<Predictions, PredictError> {
        {
            let mut state = self.state();
            if state.is_closed {
                return Err(PredictionDelay::Busy.into());
            }
            state.served.push(model.clone());
            if let Some(error) = state.errors.pop_front() {
                return Err(error);
            }
            state.ready.insert((model.organization, model.version));
        }
        let rows = request.input.rows;
        let sums = sums(&request.input);
        let raw = match (model.signature.problem, &model.signature.classes) {
            (ProblemType::SemanticSegmentation, _) => RawPredictions {
                values: vec![Some(Class::Text(String::new())); rows],
                probabilities: None,
                masks: Some(masks(&request)),
            },
            (_, Some(classes)) => classified(classes, &sums),
            (_, None) => RawPredictions {
                values: sums.into_iter().map(Class::Float).map(Some).collect(),
                probabilities: None,
                masks: None,
            },
        };
        Predictions::check(&model.signature, rows, raw)
            .map_err(|error| PredictError::Refused(error.to_string()))
    }

    fn is_ready(&self, model: &ServedModel) -> bool {
        let key = (model.organization, model.version);
        self.state().ready.contains(&key)
    }

    fn prepare(&self, model: &ServedModel) {
        let key = (model.organization, model.version);
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        match &mut state.held {
            Some(held) => {
                held.insert(key);
            }
            None => {
                state.ready.insert(key);
            }
        }
    }

    async fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.ready.clear();
    }
}

/// A mask per row, of one pixel with that confidence; none above it.
fn masks(request: &PredictionRequest) -> Vec<Vec<PredictedMask>> {
    let least = request.segmentation.unwrap_or_default().min_confidence;
    let mask = PredictedMask {
        class: None,
        mask: MASK.to_owned(),
        size: PixelSize {
            width: 1,
            height: 1,
        },
        foreground_fraction: 1.0,
        confidence: CONFIDENCE,
    };
    let masks = if least > CONFIDENCE {
        Vec::new()
    } else {
        vec![mask]
    };
    vec![masks; request.input.rows]
}

fn classified(classes: &[Class], sums: &[f64]) -> RawPredictions {
    let last = classes.len().saturating_sub(1);
    let chosen: Vec<usize> = sums
        .iter()
        .map(|sum| (0..last).find(|index| index.to_string() == sum.to_string()))
        .map(|index| index.unwrap_or(last))
        .collect();
    let certain = |class| {
        let column = chosen
            .iter()
            .map(|index| Some(f64::from(u8::from(*index == class))));
        column.collect()
    };
    RawPredictions {
        values: chosen
            .iter()
            .map(|index| classes.get(*index).cloned())
            .collect(),
        probabilities: Some((0..classes.len()).map(certain).collect()),
        masks: None,
    }
}

/// Returns the sum of each row's numbers.
fn sums(input: &PredictionInput) -> Vec<f64> {
    let mut sums = vec![0.0; input.rows];
    for column in &input.columns {
        if let FeatureValues::Numbers(values) = &column.values {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value.unwrap_or_default();
            }
        }
    }
    sums
}
