//! Sandboxes for the tests.

use std::{ffi::OsString, os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use labdata_redacted::Variables;
use labdata_sandbox::{
    ActiveWorkspace, HostCapabilities, Isolation, Limits, Network, ProcessOutcome, ProcessSpec,
    Sandbox, Settings, stop_channel,
};

/// Sandbox with a temporary data directory.
pub(crate) struct Lab {
    sandbox: Sandbox,
    _data: tempfile::TempDir,
}

impl Lab {
    /// Creates a sandbox with exactly that isolation, or none if the kernel does not allow it.
    pub(crate) async fn isolated(isolation: Isolation) -> Option<Self> {
        let data = data_directory();
        let sandbox = Sandbox::new(settings(data.path(), isolation));
        Self::of(sandbox, data, isolation).await
    }

    /// Wraps a sandbox that has exactly that isolation.
    pub(crate) async fn of(
        sandbox: Sandbox,
        data: tempfile::TempDir,
        isolation: Isolation,
    ) -> Option<Self> {
        let found = sandbox.host().await.unwrap().isolation();
        if found != isolation {
            eprintln!("NOT TESTED: this machine allows {found:?} and not {isolation:?}");
            return None;
        }
        Some(Self {
            sandbox,
            _data: data,
        })
    }

    pub(crate) async fn host(&self) -> Arc<HostCapabilities> {
        self.sandbox.host().await.unwrap()
    }

    /// Runs a script in a new workspace, and returns the outcome and the output.
    pub(crate) async fn run(&self, script: &str, network: Network) -> (ProcessOutcome, String) {
        let host = self.host().await;
        let workspace = host.workspace("run");
        let active = host.activate(&workspace, script).await.unwrap();
        let (_handle, mut stop) = stop_channel();
        let outcome = host
            .run(&active, &process(&active, network), &mut stop, |_| ())
            .await
            .unwrap();
        let log = workspace.read_log(outcome.logged, 0, 1 << 20).await;
        let log = String::from_utf8(log.unwrap().bytes).unwrap();
        workspace.remove().await.unwrap();
        (outcome, log)
    }
}

/// Creates a data directory that accounts of scripts can enter.
pub(crate) fn data_directory() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    std::fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).unwrap();
    data
}

/// Returns settings for that data directory, which accept every isolation.
pub(crate) fn settings(data: &Path, isolation: Isolation) -> Settings {
    let supervisor = OsString::from(env!("CARGO_BIN_EXE_labdata-sandbox-supervisor"));
    Settings {
        isolation,
        minimum: Isolation::Nothing,
        ..Settings::new(data.to_owned(), vec![supervisor])
    }
}

/// Returns the process that runs a workspace's script.
pub(crate) fn process(active: &ActiveWorkspace, network: Network) -> ProcessSpec {
    ProcessSpec {
        arguments: vec![active.script_path().to_str().unwrap().to_owned()],
        packages: None,
        environment: Variables::new(),
        network,
        limits: Limits {
            wall_clock: Duration::from_mins(1),
            cpu_time: Duration::from_mins(1),
            memory: 1 << 30,
            file_size: 1 << 30,
            scratch: 2 << 30,
            processes: 64,
            grace: Duration::from_secs(1),
        },
        logged: 0,
    }
}
