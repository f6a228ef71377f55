//! Runners for the tests.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work;
use labdata_ports::work::runner::{JobRunner, RunId, RunSpec, ScriptEnd};
use labdata_sandbox::{Isolation, Python, Sandbox, Settings, Uv};

/// Environment variable with the path of another supervisor, for tests that run as another user.
pub(crate) const SUPERVISOR: &str = "LABDATA_TEST_SUPERVISOR";

/// Runner with a temporary data directory.
pub(crate) struct Lab {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) runner: Arc<LocalRunner>,
    pub(crate) data: tempfile::TempDir,
}

/// Returns settings for that data directory.
pub(crate) fn settings(data: &Path, isolation: Isolation) -> Settings {
    let supervisor = std::env::var_os(SUPERVISOR)
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_labdata-run-supervisor")));
    Settings {
        isolation,
        minimum: Isolation::Nothing,
        uv: uv(),
        ..Settings::new(data.to_owned(), vec![supervisor])
    }
}

/// Returns a uv that all tests share; none where the target directory cannot be reached.
fn uv() -> Option<PathBuf> {
    static UV: OnceLock<Option<PathBuf>> = OnceLock::new();
    UV.get_or_init(|| {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
        let uv = Uv::find(None, &tools, &Python::find(None).ok()?).ok()?;
        Some(uv.program().to_owned())
    })
    .clone()
}

impl Lab {
    pub(crate) fn new(isolation: Isolation) -> Self {
        let data = tempfile::tempdir().unwrap();
        // As root, accounts of scripts enter it.
        fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let sandbox = Arc::new(Sandbox::new(settings(data.path(), isolation)));
        let runner = Arc::new(LocalRunner::new(Arc::clone(&sandbox)));
        Self {
            sandbox,
            runner,
            data,
        }
    }

    /// Creates a lab with exactly that isolation, or none if the kernel does not allow it.
    pub(crate) async fn isolated(isolation: Isolation) -> Option<Self> {
        let lab = Self::new(isolation);
        let found = lab.sandbox.host().await.unwrap().isolation();
        if found != isolation {
            eprintln!("NOT TESTED: this machine allows {found:?} and not {isolation:?}");
            return None;
        }
        Some(lab)
    }

    /// Submits a run and waits for its first line.
    pub(crate) async fn begin(&self, spec: &RunSpec) -> String {
        self.begin_until(spec, "\n").await
    }

    /// Begins a run, and returns its log once it contains a text. Where the platform has to say what its
    /// isolation does not prevent, the first line is no sign of life of the script.
    pub(crate) async fn begin_until(&self, spec: &RunSpec, text: &str) -> String {
        self.runner.submit(spec).await.unwrap();
        let mut log = String::new();
        while !log.contains(text) {
            let length = u64::try_from(log.len()).unwrap();
            work::until(&*self.runner, spec.run, |view| view.logged > length).await;
            log = self.log(spec.run).await;
        }
        log
    }

    /// Runs a script to its end, and returns the end and the log.
    pub(crate) async fn run(&self, spec: &RunSpec) -> (ScriptEnd, String) {
        self.runner.submit(spec).await.unwrap();
        let end = work::end_of(&*self.runner, spec.run).await;
        (end, self.log(spec.run).await)
    }

    /// Returns the output of a script that must succeed.
    pub(crate) async fn output(&self, script: &str) -> String {
        let spec = work::spec(script);
        let (end, log) = self.run(&spec).await;
        assert!(end.succeeded(), "{end:?}\n{log}");
        self.runner.reap(spec.run).await.unwrap();
        log
    }

    pub(crate) async fn log(&self, run: RunId) -> String {
        work::log_from(&*self.runner, run, 0).await
    }
}

/// Counts the processes of this machine with that text in their command line.
pub(crate) fn processes_with(mark: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path().join("cmdline");
            let line = fs::read(path).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark).then_some(())
        })
        .count()
}

/// Returns a number of seconds that no other test sleeps.
pub(crate) fn mark() -> String {
    let nanoseconds = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_nanos();
    format!("{}.{}", 4000 + std::process::id() % 1000, nanoseconds)
}
