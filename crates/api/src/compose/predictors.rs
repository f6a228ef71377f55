//! Models that predict, in processes of this machine.

use std::{path::PathBuf, sync::Arc};

use labdata_ports::models::Predictor;
use labdata_predictor::{PredictorScripts, PredictorSettings, SandboxPredictor};
use labdata_trainer_scripts::{EntryPoint, script};

use super::backends::sandbox;
use crate::settings::Settings;

/// Creates the predictor, whose processes reach the platform at `public_url`; `program` is the `labdata`
/// binary.
#[must_use]
pub fn predictor(settings: &Settings, program: PathBuf, public_url: &str) -> Arc<dyn Predictor> {
    let wanted = settings.predictors;
    let defaults = PredictorSettings::new(PredictorScripts {
        tabular: script(EntryPoint::Tabular),
        multimodal: script(EntryPoint::Multimodal),
    });
    Arc::new(SandboxPredictor::new(
        sandbox(settings, program, public_url),
        PredictorSettings {
            limit: wanted.limit.try_into().unwrap_or(usize::MAX),
            idle: wanted.idle,
            memory: wanted.memory,
            ..defaults
        },
    ))
}
