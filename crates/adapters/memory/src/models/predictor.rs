//! A predictor that adds up.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use labdata_domain::models::{
    Class, FeatureValues, PredictionInput, Predictions, ProblemType, RawPredictions,
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};

/// Predictor without models. A regression predicts the sum of a row's numbers. A classification is
/// certain of the class whose index is that sum, or of the last one.
#[derive(Debug, Default)]
pub struct InMemoryPredictor {
    errors: Mutex<VecDeque<PredictError>>,
    served: Mutex<Vec<ServedModel>>,
}

impl InMemoryPredictor {
    /// Fails the next prediction that has no planned error yet.
    pub fn fail_next(&self, error: PredictError) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.push_back(error);
    }

    /// Returns the models of all predictions, in order.
    #[must_use]
    pub fn served(&self) -> Vec<ServedModel> {
        let served = self.served.lock();
        served.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Predictor for InMemoryPredictor {
    async fn predict(
        &self,
        model: &ServedModel,
        request: PredictionRequest,
    ) -> Result<Predictions, PredictError> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.push(model.clone());
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = errors.pop_front() {
            return Err(error);
        }
        let rows = request.input.rows;
        let sums = sums(&request.input);
        let raw = match (model.signature.problem, &model.signature.classes) {
            (ProblemType::SemanticSegmentation, _) => RawPredictions {
                values: vec![Some(Class::Text(String::new())); rows],
                probabilities: None,
            },
            (_, Some(classes)) => classified(classes, &sums),
            (_, None) => RawPredictions {
                values: sums.into_iter().map(Class::Float).map(Some).collect(),
                probabilities: None,
            },
        };
        Predictions::check(&model.signature, rows, raw)
            .map_err(|error| PredictError::Refused(error.to_string()))
    }
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
