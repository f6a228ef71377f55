//! Sandboxes of snippets for the tests.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use labdata_domain::{
    agent::{PythonEnd, PythonOutcome},
    ids::OrganizationId,
};
use labdata_port_contracts::given;
use labdata_ports::agent::{PythonSandbox, PythonSnippet};
use labdata_python_sandbox::{SnippetSandbox, SnippetSettings};
use labdata_sandbox::{Sandbox, Settings};

/// Time within which everything here happens.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// Data directory of all tests, so that the packages are installed once. Workspaces are each sandbox's.
fn data() -> &'static Path {
    static DATA: OnceLock<PathBuf> = OnceLock::new();
    DATA.get_or_init(|| {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-sandbox");
        fs::create_dir_all(&data).unwrap();
        fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
        data
    })
}

/// Sandbox of snippets.
pub(crate) struct Lab {
    pub(crate) snippets: Arc<SnippetSandbox>,
    pub(crate) organization: OrganizationId,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(SnippetSettings {
            timeout: Duration::from_mins(10),
            ..SnippetSettings::default()
        })
    }

    pub(crate) fn with(settings: SnippetSettings) -> Self {
        let supervisor = OsString::from(env!("CARGO_BIN_EXE_labdata-python-supervisor"));
        let sandbox = Sandbox::new(Settings::new(data().to_owned(), vec![supervisor]));
        Self {
            snippets: Arc::new(SnippetSandbox::new(Arc::new(sandbox), settings)),
            organization: OrganizationId::new(given::uuid()),
        }
    }

    /// Returns a snippet without inputs.
    pub(crate) fn snippet(&self, code: &str) -> PythonSnippet {
        PythonSnippet {
            organization: self.organization,
            code: code.to_owned(),
            inputs: Vec::new(),
        }
    }

    pub(crate) async fn run(&self, code: &str) -> PythonOutcome {
        self.snippets.run(self.snippet(code)).await.unwrap()
    }

    /// Runs a snippet that must succeed; returns its standard output.
    pub(crate) async fn output(&self, code: &str) -> String {
        let outcome = self.run(code).await;
        assert_eq!(outcome.end, PythonEnd::Completed, "{outcome:?}");
        outcome.stdout.display()
    }
}

/// Returns the workspaces of snippets that are left below the data directory.
pub(crate) fn workspaces_with(mark: &str) -> usize {
    let workers = fs::read_dir(data().join("jobs/workers")).unwrap();
    let workspaces = workers.flatten().flat_map(|worker| {
        let found = fs::read_dir(worker.path()).into_iter().flatten().flatten();
        found.map(|workspace| workspace.path().join("scratch").join(mark))
    });
    workspaces.filter(|path| path.exists()).count()
}

/// Counts the processes of this machine with that text in their command line.
pub(crate) fn processes_with(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| {
            fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        })
        .count()
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns a text that no other test uses.
pub(crate) fn mark() -> String {
    format!("mark-{}", given::uuid().simple())
}
