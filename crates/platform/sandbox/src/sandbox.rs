//! The sandbox: entry point of the crate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Mutex, time::sleep};

#[cfg(target_os = "linux")]
use crate::supervisor::can_limit_tcp;
use crate::{
    error::SandboxError,
    host::HostCapabilities,
    isolation_trial::WorkingIsolation,
    settings::Settings,
    spec::{Isolation, Network},
};

/// Pause before the second trial, when the first one finds less isolation than the minimum.
const SECOND_TRIAL_AFTER: Duration = Duration::from_millis(500);

/// Runner of isolated processes. Its processes end with it.
#[derive(Debug)]
pub struct Sandbox {
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The host, examined on first use.
    examined: Option<HostCapabilities>,
    /// The host at the isolation of the last trial that found enough.
    host: Option<TriedHost>,
}

#[derive(Debug)]
struct TriedHost {
    host: Arc<HostCapabilities>,
    tried_at: Instant,
}

impl Sandbox {
    /// Creates a sandbox. The host is examined on first use, so that a server without Python can
    /// serve everything else.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the capabilities of this host. The first call runs a Python to find them. While the
    /// isolation is weaker than [`Settings::isolation`], a call after [`Settings::retrial`] tries
    /// again; processes that run already keep theirs.
    ///
    /// # Errors
    /// [`SandboxError`], with the missing prerequisite. The next call tries again.
    pub async fn host(&self) -> Result<Arc<HostCapabilities>, SandboxError> {
        // Held during the trial, so that callers wait for one trial instead of starting their own.
        let mut state = self.state.lock().await;
        let State { examined, host } = &mut *state;
        if let (Some(tried), Some(examined)) = (host.as_mut(), examined.as_ref()) {
            if tried.host.isolation() < self.settings.isolation
                && tried.tried_at.elapsed() >= self.settings.retrial
            {
                self.try_stronger(tried, examined).await;
            }
            return Ok(Arc::clone(&tried.host));
        }
        // Stored before the trial, because one that fails is repeated on the same directories.
        let examined = match examined {
            Some(examined) => examined,
            None => examined.insert(HostCapabilities::open(&self.settings).await?),
        };
        let working = self.try_all(examined).await?;
        self.report(&working);
        let found = Arc::new(working.host);
        *host = Some(TriedHost {
            host: Arc::clone(&found),
            tried_at: Instant::now(),
        });
        Ok(found)
    }

    /// Retains the caches of dependencies below [`Settings::cache_quota`]. Does nothing before the first
    /// process.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the file system fails.
    pub async fn evict_dependencies(&self) -> Result<(), SandboxError> {
        let host = self
            .state
            .lock()
            .await
            .host
            .as_ref()
            .map(|tried| Arc::clone(&tried.host));
        match host {
            Some(host) => host
                .evict_dependencies()
                .await
                .map_err(SandboxError::Unavailable),
            None => Ok(()),
        }
    }

    async fn try_all(&self, host: &HostCapabilities) -> Result<WorkingIsolation, SandboxError> {
        let Settings {
            isolation, minimum, ..
        } = self.settings;
        if let Ok(working) = host.try_isolation(isolation, minimum).await {
            return Ok(working);
        }
        // A machine that is short of processes or memory for a moment is not refused for it.
        sleep(SECOND_TRIAL_AFTER).await;
        let second = host.try_isolation(isolation, minimum).await;
        second.map_err(|reasons| match minimum {
            Isolation::Nothing => {
                SandboxError::Unavailable(format!("no script can be run: {reasons}"))
            }
            Isolation::Landlock | Isolation::Namespaces => {
                SandboxError::InsufficientIsolation(reasons)
            }
        })
    }

    /// Replaces the host if stronger isolation works by now.
    async fn try_stronger(&self, tried: &mut TriedHost, examined: &HostCapabilities) {
        let current = tried.host.isolation();
        let working = examined.try_isolation(self.settings.isolation, current);
        if let Ok(working) = working.await
            && working.host.isolation() > current
        {
            self.report(&working);
            tried.host = Arc::new(working.host);
        }
        tried.tried_at = Instant::now();
    }

    /// Logs the isolation of all processes from now on, and what limits their network.
    fn report(&self, working: &WorkingIsolation) {
        let (reason, level) = (&*working.refused, working.host.isolation());
        let python = working.host.python_program().display();
        match level {
            Isolation::Namespaces => tracing::info!(%python, "scripts run in namespaces"),
            Isolation::Landlock => tracing::warn!(
                reason,
                %python,
                "scripts run under Landlock, without namespaces: see docs/SCRIPTS-AND-MODELS.md for its \
                 limits"
            ),
            Isolation::Nothing => tracing::warn!(
                reason,
                "scripts are NOT isolated: they can do everything that the platform's account can; \
                 see docs/SCRIPTS-AND-MODELS.md"
            ),
        }
        if self.settings.network.access != Network::Host {
            match level {
                Isolation::Namespaces => {}
                Isolation::Landlock if can_limit_tcp() => tracing::warn!(
                    "scripts connect by TCP to the ports of the platform and the proxy only, at any \
                     address; UDP is not limited"
                ),
                Isolation::Landlock | Isolation::Nothing => {
                    tracing::warn!("the network of scripts is NOT limited on this machine");
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
const fn can_limit_tcp() -> bool {
    false
}
