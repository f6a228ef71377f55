//! Capabilities of this host: its Python, its directories, the isolation that its kernel allows.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::OnceCell;

use crate::{
    accounts::{Account, AccountRegistry},
    blocking::blocking,
    directories::{ActiveWorkspace, RunDirectories, Workspace},
    error::SandboxError,
    launch::LaunchRequest,
    process::{self, StopSignal, stop_channel},
    python::Python,
    settings::Settings,
    spec::{Exit, Isolation, Limits, Network, ProcessOutcome, ProcessSpec},
    uv::Uv,
};

/// System paths that processes may read: programs, libraries, and the configuration of name, user
/// and certificate lookups.
const SYSTEM_PATHS: [&str; 31] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    "/etc/os-release",
];

/// Limits of the idle Python that tests a level of isolation.
const TRIAL_LIMITS: Limits = Limits {
    wall_clock: Duration::from_mins(1),
    cpu_time: Duration::from_mins(1),
    memory: 4 << 30,
    file_size: 2 << 30,
    processes: 256,
    grace: Duration::ZERO,
};

/// Capabilities of this host, and the operations that use them.
#[derive(Debug)]
pub struct HostCapabilities {
    pub(crate) python: Python,
    /// Environment with only the standard library.
    bare: PathBuf,
    pub(crate) directories: Arc<RunDirectories>,
    /// Accounts of this machine, if the platform is root.
    accounts: Option<Arc<AccountRegistry>>,
    isolation: Isolation,
    pub(crate) settings: Settings,
    uv: OnceCell<Uv>,
}

impl HostCapabilities {
    /// Examines the host.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, SandboxError> {
        let named = settings.python.clone();
        let python = blocking(move || Python::find(named.as_deref()))
            .await
            .map_err(SandboxError::NoPython)?;
        Self::open_with(settings, python)
            .await
            .map_err(SandboxError::Unavailable)
    }

    async fn open_with(settings: &Settings, python: Python) -> Result<Self, String> {
        if let Some(above) = python
            .required_paths()
            .into_iter()
            .chain(SYSTEM_PATHS.map(PathBuf::from))
            .find(|path| settings.data_dir.starts_with(path))
        {
            return Err(format!(
                "the data directory {} is below {}, which scripts can read; move it",
                settings.data_dir.display(),
                above.display()
            ));
        }
        let data_dir = settings.data_dir.clone();
        let program = python.program.clone();
        let (directories, bare, accounts) = blocking(move || {
            let open = || {
                let directories = RunDirectories::open(&data_dir)?;
                let bare = directories.bare_environment(&program)?;
                let is_root = nix::unistd::geteuid().is_root();
                let accounts = is_root
                    .then(|| AccountRegistry::open(directories.jobs()))
                    .transpose()?;
                Ok((directories, bare, accounts.map(Arc::new)))
            };
            open().map_err(|error: std::io::Error| format!("{}: {error}", data_dir.display()))
        })
        .await?;
        let mut host = Self {
            python,
            bare,
            directories: Arc::new(directories),
            accounts,
            isolation: Isolation::Nothing,
            settings: settings.clone(),
            uv: OnceCell::new(),
        };
        host.isolation = host.strongest_isolation().await?;
        Ok(host)
    }

    /// Finds the strongest permitted isolation by starting an idle Python at each level.
    async fn strongest_isolation(&self) -> Result<Isolation, String> {
        let mut refused = Vec::new();
        let levels = [
            Isolation::Namespaces,
            Isolation::Landlock,
            Isolation::Nothing,
        ];
        let wanted = levels
            .iter()
            .position(|level| *level == self.settings.isolation);
        for level in levels.into_iter().skip(wanted.unwrap_or_default()) {
            match self.try_isolation(level).await {
                Ok(()) => {
                    match level {
                        Isolation::Namespaces => tracing::info!("scripts run in namespaces"),
                        Isolation::Landlock => tracing::warn!(
                            reason = refused.join("; "),
                            "scripts run under Landlock, without namespaces: see docs/OPERATING.md \
                             for its limits"
                        ),
                        Isolation::Nothing => tracing::warn!(
                            reason = refused.join("; "),
                            "scripts are NOT isolated: they can do everything that the platform's \
                             account can; see docs/OPERATING.md"
                        ),
                    }
                    return Ok(level);
                }
                Err(reason) => refused.push(format!("{level:?}: {reason}")),
            }
        }
        Err(format!("no script can be run: {}", refused.join("; ")))
    }

    async fn try_isolation(&self, level: Isolation) -> Result<(), String> {
        let workspace = self.directories.workspace(&format!("{level:?}"));
        let active = self.activate_at(level, &workspace, "").await?;
        let spec = ProcessSpec {
            arguments: ["-I", "-c", "pass"].map(str::to_owned).into(),
            packages: None,
            environment: Vec::new(),
            network: Network::Host,
            limits: TRIAL_LIMITS,
            logged: 0,
        };
        let request = self.launch_request(level, &active, &spec);
        let (_handle, mut stop) = stop_channel();
        let outcome = process::run(&self.settings.supervisor, &request, &mut stop, |_| ()).await;
        workspace
            .remove()
            .await
            .map_err(|error| error.to_string())?;
        match outcome? {
            outcome if outcome.exit == Exit::Code(0) => Ok(()),
            outcome => Err(format!("{:?} {}", outcome.exit, outcome.error_tail)),
        }
    }

    /// Returns the isolation of all processes of this sandbox.
    #[must_use]
    pub const fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns the workspace of that name, which need not exist. The name is one path component,
    /// unique among the workspaces of this sandbox.
    #[must_use]
    pub fn workspace(&self, name: &str) -> Workspace {
        self.directories.workspace(name)
    }

    /// Creates the directories of a workspace, and the script in it.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the file system fails.
    pub async fn activate(
        &self,
        workspace: &Workspace,
        script: &str,
    ) -> Result<ActiveWorkspace, SandboxError> {
        self.activate_at(self.isolation, workspace, script)
            .await
            .map_err(SandboxError::Unavailable)
    }

    async fn activate_at(
        &self,
        isolation: Isolation,
        workspace: &Workspace,
        script: &str,
    ) -> Result<ActiveWorkspace, String> {
        let (workspace, script) = (workspace.clone(), script.to_owned());
        let accounts = self.accounts_at(isolation).cloned();
        blocking(move || {
            let account = accounts
                .map(|accounts| accounts.allocate())
                .transpose()
                .map_err(|error| format!("no account for the script: {error}"))?;
            workspace
                .create(&script, account.as_ref())
                .map_err(|error| format!("{}: {error}", workspace.script_path().display()))?;
            Ok(ActiveWorkspace { workspace, account })
        })
        .await
    }

    /// Returns the registry of accounts, if processes get dedicated ones: the platform is root, and
    /// namespaces give an account access to its files.
    fn accounts_at(&self, isolation: Isolation) -> Option<&Arc<AccountRegistry>> {
        self.accounts
            .as_ref()
            .filter(|_| isolation == Isolation::Namespaces)
    }

    /// Returns the cache of a scope, and its account.
    pub(crate) async fn cache(&self, scope: &str) -> Result<(PathBuf, Option<Account>), String> {
        let accounts = self.accounts_at(self.isolation).cloned();
        let (directories, scope) = (Arc::clone(&self.directories), scope.to_owned());
        blocking(move || {
            directories
                .cache(&scope, accounts.as_deref())
                .map_err(|error| format!("the cache of dependencies: {error}"))
        })
        .await
    }

    /// Runs a process to its end. Dropping the future kills the process.
    ///
    /// `on_output` receives the length of the workspace's log whenever it has grown.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the process could not be started, or its supervisor was
    /// killed.
    pub async fn run(
        &self,
        workspace: &ActiveWorkspace,
        spec: &ProcessSpec,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, SandboxError> {
        let request = self.launch_request(self.isolation, workspace, spec);
        process::run(&self.settings.supervisor, &request, stop, on_output)
            .await
            .map_err(SandboxError::Unavailable)
    }

    /// Translates a specification into a request for a supervisor.
    pub(crate) fn launch_request(
        &self,
        isolation: Isolation,
        active: &ActiveWorkspace,
        spec: &ProcessSpec,
    ) -> LaunchRequest {
        let workspace = &active.workspace;
        let mut readable: Vec<PathBuf> = SYSTEM_PATHS.map(PathBuf::from).into();
        readable.extend(self.python.required_paths());
        readable.extend([self.bare.clone(), workspace.script()]);
        let bare_programs = self.bare.join("bin");
        let mut path = format!("{}:/usr/local/bin:/usr/bin:/bin", bare_programs.display());
        let mut python = bare_programs.join("python");
        let mut virtual_environment = None;
        if let Some(packages) = &spec.packages {
            readable.push(packages.cache.clone());
            let programs = packages.directory.join("bin");
            path = format!("{}:{path}", programs.display());
            python = programs.join("python");
            virtual_environment = Some(("VIRTUAL_ENV", text(&packages.directory)));
        }
        let environment = [
            ("PATH", path),
            ("HOME", text(&workspace.scratch())),
            ("TMPDIR", text(&workspace.temporary())),
            ("LANG", "C.UTF-8".to_owned()),
            // Lines arrive when they are written, not when a buffer is full.
            ("PYTHONUNBUFFERED", "1".to_owned()),
        ]
        .into_iter()
        .chain(virtual_environment)
        .map(|(name, value)| (name.to_owned(), value))
        .chain(spec.environment.iter().cloned());
        let command = std::iter::once(text(&python)).chain(spec.arguments.iter().cloned());
        LaunchRequest {
            isolation,
            command: command.collect(),
            environment: environment.collect(),
            directory: workspace.scratch(),
            readable,
            writable: vec![workspace.scratch(), workspace.temporary()],
            temporary: workspace.temporary(),
            root: workspace.root(),
            log: workspace.log(),
            logged: spec.logged,
            account: active.account.as_ref().map(Into::into),
            network: spec.network,
            limits: spec.limits,
        }
    }

    /// Returns the uv, found or fetched on first use.
    pub(crate) async fn uv(&self) -> Result<&Uv, String> {
        let found = self.uv.get_or_try_init(|| {
            let (named, tools) = (self.settings.uv.clone(), self.directories.tools());
            let python = self.python.clone();
            blocking(move || Uv::find(named.as_deref(), &tools, &python))
        });
        found.await
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
