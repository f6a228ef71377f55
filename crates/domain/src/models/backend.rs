//! Training backends: what workers recorded about them, and whether a training can be accepted.

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Time for which a worker's record of its backend counts. Workers record it more often.
pub const TRAINING_BACKEND_LIFETIME: Duration = Duration::minutes(1);

/// State of a worker's training backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingBackend {
    /// The worker, by an id that it chose when it started.
    pub worker: Uuid,
    /// When the worker checked the backend.
    pub checked_at: OffsetDateTime,
    /// Deficiency of the backend, for the person who requests a training; `None` if it can take work.
    pub missing: Option<String>,
}

/// Error: no training backend can take work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrainingBackend {
    /// No worker has reported lately.
    #[error("no model can be trained now: no worker that trains models is running")]
    NoWorker,
    /// Every backend lacks something.
    #[error("no model can be trained now: {0}")]
    Missing(String),
}

impl Refuse for NoTrainingBackend {
    fn code(&self) -> ErrorCode {
        ErrorCode::TrainingUnavailable
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unavailable
    }
}

/// Checks that one of the backends can take work.
///
/// # Errors
/// [`NoTrainingBackend`], with what the backend lacks that was checked last.
pub fn check_backends(
    backends: &[TrainingBackend],
    now: OffsetDateTime,
) -> Result<(), NoTrainingBackend> {
    let is_recent =
        |backend: &&TrainingBackend| now - backend.checked_at < TRAINING_BACKEND_LIFETIME;
    let mut last: Option<(OffsetDateTime, &str)> = None;
    for backend in backends.iter().filter(is_recent) {
        // One worker that can take work is enough.
        let Some(missing) = &backend.missing else {
            return Ok(());
        };
        // The latest report: what a worker lacked before may be there by now.
        if last.is_none_or(|(at, _)| at < backend.checked_at) {
            last = Some((backend.checked_at, missing));
        }
    }
    Err(match last {
        Some((_, missing)) => NoTrainingBackend::Missing(missing.to_owned()),
        None => NoTrainingBackend::NoWorker,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn backend(seconds_ago: i64, missing: Option<&str>) -> TrainingBackend {
        TrainingBackend {
            worker: Uuid::from_u128(1),
            checked_at: NOW - Duration::seconds(seconds_ago),
            missing: missing.map(str::to_owned),
        }
    }

    #[test]
    fn one_backend_that_can_take_work_is_enough() {
        let backends = [backend(1, Some("uv is missing")), backend(30, None)];
        assert_eq!(check_backends(&backends, NOW), Ok(()));
    }

    #[test]
    fn the_refusal_names_what_the_backend_lacks_that_was_checked_last() {
        let backends = [
            backend(90, None),
            backend(20, Some("uv is missing")),
            backend(3, Some("the Ray cluster does not respond")),
        ];
        let refusal = check_backends(&backends, NOW).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "no model can be trained now: the Ray cluster does not respond"
        );
    }

    #[test]
    fn a_record_of_a_worker_that_is_gone_does_not_count() {
        for backends in [vec![], vec![backend(60, None)]] {
            let refused = check_backends(&backends, NOW);
            assert_eq!(refused, Err(NoTrainingBackend::NoWorker));
        }
    }
}
