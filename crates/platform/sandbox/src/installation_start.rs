//! The start of an installation, which waits for the end of another one of the same packages.

use std::{io, time::Duration};

use tokio::time::sleep;

use crate::{
    blocking::blocking,
    dependency_cache::{DependencyCache, InstallationStart},
    process::StopSignal,
    spec::{EndCause, Exit, ProcessOutcome},
};

/// Interval between attempts to take the lock of an environment that another process installs.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until an environment is installed, or is the caller's to install. `Busy` if the caller is stopped
/// before, or that time is over.
pub(crate) async fn begin_installation(
    cache: &DependencyCache,
    name: &str,
    wait_limit: Duration,
    stop: &mut StopSignal,
) -> Result<InstallationStart, String> {
    let waiting = async {
        loop {
            let start = in_cache(cache, name, DependencyCache::begin_installation).await;
            if !matches!(start, Ok(InstallationStart::Busy)) {
                return start;
            }
            // The other process may be of another server, and the end of its lock is no event.
            sleep(LOCK_INTERVAL).await;
        }
    };
    tokio::select! {
        start = waiting => start,
        () = stop.stopped() => Ok(InstallationStart::Busy),
        () = sleep(wait_limit) => Ok(InstallationStart::Busy),
    }
}

/// Returns the outcome of an installation that waited for another one to its own end.
pub(crate) fn not_begun(stop: &StopSignal) -> ProcessOutcome {
    let cause = match stop.requested() {
        Some(_) => EndCause::Cancelled,
        None => EndCause::TimedOut,
    };
    ProcessOutcome {
        cause,
        exit: Exit::Signal(15),
        error_tail: "another installation of the same packages had not ended".to_owned(),
        logged: 0,
    }
}

/// Does work on the cache, on a thread that may block.
pub(crate) async fn in_cache<T: Send + 'static>(
    cache: &DependencyCache,
    name: &str,
    work: impl FnOnce(&DependencyCache, &str) -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let (cache, name) = (cache.clone(), name.to_owned());
    blocking(move || {
        work(&cache, &name).map_err(|error| format!("the cache of dependencies: {error}"))
    })
    .await
}
