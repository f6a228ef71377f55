//! Starts and finishes the passes of periodic tasks.

use std::time::Duration;

use labdata_ports::maintenance::{PassClaim, PassResult};
use time::OffsetDateTime;

use crate::{Error, Services};

/// Pause before a task that failed is tried again, unless its period is shorter.
const RETRY_AFTER: Duration = Duration::from_mins(5);

/// Minimum wait for a task that is not due, so that clocks that differ cause no busy loop.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Servers that run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Every server, each in its own time.
    EveryServer,
    /// One server at a time, once per period across all servers.
    OneServer,
}

/// Response to the request to start a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassStart {
    /// The pass may start.
    Granted,
    /// Another pass started less than a period ago.
    NotDue {
        /// Time until the task is due.
        wait: Duration,
        /// End of the last successful pass, on whichever server.
        last_success_at: Option<OffsetDateTime>,
    },
}

/// Reason why a pass did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassFailure {
    /// It failed with this error.
    Failed(String),
    /// The server stopped during the pass.
    Interrupted,
}

/// Asks to start a pass of a task. Always granted under [`Guard::EveryServer`].
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_pass(
    services: &Services,
    task: &str,
    period: Duration,
    guard: Guard,
) -> Result<PassStart, Error> {
    if guard == Guard::EveryServer {
        return Ok(PassStart::Granted);
    }
    let now = services.clock.now();
    let claim = services
        .periodic_tasks
        .claim(task, now, now + period)
        .await?;
    Ok(match claim {
        PassClaim::Granted => PassStart::Granted,
        PassClaim::NotDue {
            due_at,
            last_success_at,
        } => PassStart::NotDue {
            wait: Duration::try_from(due_at - now)
                .unwrap_or_default()
                // A due time in the past would make the caller spin.
                .max(MIN_WAIT),
            last_success_at,
        },
    })
}

/// Finishes a pass; returns the time. Under [`Guard::OneServer`] it stores the result for all
/// servers, and makes the task due earlier than after a period if the pass did not succeed.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn finish_pass<T>(
    services: &Services,
    task: &str,
    period: Duration,
    guard: Guard,
    result: &Result<T, PassFailure>,
) -> OffsetDateTime {
    let now = services.clock.now();
    if guard == Guard::EveryServer {
        return now;
    }
    let stored = match result {
        Ok(_) => PassResult::Succeeded { at: now },
        Err(PassFailure::Failed(error)) => PassResult::Failed {
            at: now,
            error: error.clone(),
            // A failed daily task must not wait for a day.
            due_at: now + period.min(RETRY_AFTER),
        },
        Err(PassFailure::Interrupted) => PassResult::Failed {
            at: now,
            error: "the server stopped".to_owned(),
            // Another server can take over at once.
            due_at: now,
        },
    };
    if let Err(error) = services.periodic_tasks.record(task, &stored).await {
        tracing::warn!(task, %error, "could not store the result of a periodic task");
    }
    now
}
