//! Takes the reports of running trainings.

use labdata_domain::{
    models::{Progress, Score, TrainingError, TrainingPhase, TrainingReport, TrainingResult},
    refusal::{ErrorCode, Refusal},
};
use serde::Deserialize;
use serde_json::Value;

use super::running_training::{RunningTraining, unknown_token};
use crate::{Error, Services};

/// Body of a report.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ReportBody {
    Progress(ReportedProgress),
    Result(Value),
    Error(TrainingError),
}

#[derive(Deserialize)]
struct ReportedProgress {
    phase: TrainingPhase,
    models_tried: u32,
    best_score: Option<ReportedScore>,
}

#[derive(Deserialize)]
struct ReportedScore {
    metric: String,
    value: f64,
}

/// Stores a report of a running training.
///
/// # Errors
/// `Unauthenticated` if the training was taken from its worker in the meantime; `Invalid`
/// for a body that is no report.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn receive_report(
    services: &Services,
    training: &RunningTraining,
    body: &[u8],
) -> Result<(), Error> {
    let body = serde_json::from_slice(body).map_err(invalid)?;
    let report = match body {
        ReportBody::Progress(reported) => TrainingReport::Progress(Progress {
            phase: reported.phase,
            models_tried: reported.models_tried,
            best_score: reported
                .best_score
                .and_then(|score| Score::reported(&score.metric, score.value)),
            updated_at: services.clock.now(),
        }),
        ReportBody::Result(result) => {
            let result = TrainingResult::from_json(result).map_err(invalid)?;
            TrainingReport::Result(Box::new(result))
        }
        ReportBody::Error(error) => TrainingReport::Error(error.bounded()),
    };
    let stored = services
        .trainings
        .report(training.version, training.token, &report);
    if stored.await? {
        Ok(())
    } else {
        Err(unknown_token())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` expects"
)]
fn invalid(error: impl ToString) -> Error {
    Refusal::invalid(ErrorCode::InvalidReport, error.to_string()).into()
}
