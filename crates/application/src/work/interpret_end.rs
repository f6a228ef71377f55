//! Finds out what the end of a script means for its work.

use labdata_domain::work::{ScriptEnd, WorkEnd};
use labdata_ports::work::{ClaimedWork, Task};

use super::{Interpretation, WorkContext};
use crate::{Error, Services, models::training::interpret_training::interpret_training};

/// Finds out what the end of a script means. `prepared` is true if its dependencies were installed.
///
/// # Errors
/// Errors of the queue and the storage.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn interpret_end(
    services: &Services,
    claimed: &ClaimedWork,
    context: &WorkContext,
    end: &ScriptEnd,
    prepared: bool,
) -> Result<Interpretation, Error> {
    match (&claimed.task, context) {
        (Task::Training(training), WorkContext::Training(context)) => {
            let limits = context.limits;
            interpret_training(
                services,
                claimed.claim,
                &training.version,
                limits,
                end,
                prepared,
            )
            .await
        }
        _ => Ok(end
            .interpret(context.limits(), prepared)
            .map_or(Interpretation::LostByBackend, |end| {
                Interpretation::Ended(WorkEnd::Run(end))
            })),
    }
}
