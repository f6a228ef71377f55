//! Checks what the platform depends on, for an administrator.

use futures::{future::join_all, lock::Mutex};
use labdata_domain::people::{actor::Actor, scope::Scope};
use labdata_ports::maintenance::{Dependency, DependencyState};
use time::{Duration, OffsetDateTime};

use crate::{Error, Services};

/// Time for which checks are stored. They start programs, and call servers that may charge for calls.
const KEPT_FOR: Duration = Duration::MINUTE;

/// States of all dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyReport {
    /// Time at which they were checked.
    pub checked_at: OffsetDateTime,
    /// States, in the order of [`Dependency::ALL`].
    pub states: Vec<(Dependency, DependencyState)>,
}

/// The last checks. One process has one: it makes one set of checks at a time.
#[derive(Debug, Default)]
pub struct RecentChecks(Mutex<Option<DependencyReport>>);

/// Checks what this server depends on, all at once; within a minute, the response is that of the last
/// checks. Says no reasons: an organization's administrator may be a guest of the operator, whose log has
/// them.
///
/// # Errors
/// `Forbidden` without the admin scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn check_dependencies(
    services: &Services,
    actor: &Actor,
) -> Result<DependencyReport, Error> {
    actor.require(Scope::Admin)?;
    // Held during the checks, so that simultaneous requests share one result.
    let mut last = services.recent_checks.0.lock().await;
    let now = services.clock.now();
    if let Some(report) = &*last
        // A clock that is set back must not make a report last longer.
        && report.checked_at <= now
        && now < report.checked_at + KEPT_FOR
    {
        return Ok(report.clone());
    }
    let checks = Dependency::ALL.map(async |it| (it, services.dependencies.check(it).await));
    let report = DependencyReport {
        states: join_all(checks).await,
        checked_at: services.clock.now(),
    };
    *last = Some(report.clone());
    Ok(report)
}
