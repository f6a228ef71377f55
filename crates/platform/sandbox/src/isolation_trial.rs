//! Trial of the levels of isolation: an idle Python is started at each.

use std::time::Duration;

use labdata_redacted::Variables;

use crate::{
    host::HostCapabilities,
    network::Reach,
    process::stop_channel,
    spec::{Exit, Isolation, Limits, ProcessSpec},
};

/// Levels of isolation, strongest first.
const LEVELS: [Isolation; 3] = [
    Isolation::Namespaces,
    Isolation::Landlock,
    Isolation::Nothing,
];

/// Limits of the idle Python.
const LIMITS: Limits = Limits {
    wall_clock: Duration::from_mins(1),
    cpu_time: Duration::from_mins(1),
    memory: 4 << 30,
    file_size: 2 << 30,
    scratch: 2 << 30,
    processes: 256,
    grace: Duration::ZERO,
};

/// Isolation that works.
pub(crate) struct WorkingIsolation {
    /// The host at that level.
    pub(crate) host: HostCapabilities,
    /// Why stronger levels do not work.
    pub(crate) refused: String,
}

impl HostCapabilities {
    /// Finds the strongest isolation that works, from `strongest` down to `weakest`. The error
    /// contains the reason of each failure.
    pub(crate) async fn try_isolation(
        &self,
        strongest: Isolation,
        weakest: Isolation,
    ) -> Result<WorkingIsolation, String> {
        let mut refused = Vec::new();
        let levels = LEVELS.into_iter();
        for level in levels.filter(|level| (weakest..=strongest).contains(level)) {
            match self.tried(level).await {
                Ok(host) => {
                    return Ok(WorkingIsolation {
                        host,
                        refused: refused.join("; "),
                    });
                }
                Err(reason) => refused.push(format!("{level:?}: {reason}")),
            }
        }
        Err(refused.join("; "))
    }

    /// Returns these capabilities at that level, at which an idle Python has run.
    async fn tried(&self, level: Isolation) -> Result<Self, String> {
        let host = self.at(level).await?;
        host.start_idle().await?;
        Ok(host)
    }

    async fn start_idle(&self) -> Result<(), String> {
        let workspace = self.workspace(&format!("{:?}", self.isolation()));
        let active = self.try_activate(&workspace, "").await?;
        let spec = ProcessSpec {
            arguments: ["-I", "-c", "pass"].map(str::to_owned).into(),
            packages: None,
            environment: Variables::new(),
            network: self.settings.network.access,
            limits: LIMITS,
            logged: 0,
        };
        let request = self.launch_request(&active, &spec);
        let (_handle, mut stop) = stop_channel();
        let outcome = self
            .launch(request, None, Reach::default(), &mut stop, |_| ())
            .await;
        workspace
            .remove()
            .await
            .map_err(|error| error.to_string())?;
        match outcome? {
            outcome if outcome.exit == Exit::Code(0) => Ok(()),
            outcome => Err(format!("{:?} {}", outcome.exit, outcome.error_tail)),
        }
    }
}
