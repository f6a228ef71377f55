//! Capabilities of this host: its Python, its directories, the isolation that its kernel allows.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::OnceCell;

use crate::{
    accounts::{Account, AccountRegistry},
    blocking::blocking,
    directories::{ActiveWorkspace, RunDirectories, Workspace},
    error::SandboxError,
    install_access::name_mirror,
    launch::{LaunchRequest, NamespaceNetwork},
    network::{Gateway, GatewayRequest, Reach, Upstream},
    pipes::ProcessPipes,
    process::{self, StopSignal},
    python::Python,
    readable_paths::readable_paths,
    settings::Settings,
    spec::{Isolation, Network, ProcessOutcome, ProcessSpec},
    uv::Uv,
};
#[cfg(target_os = "linux")]
use crate::{
    cgroups::{Cgroups, RunCgroup},
    spec::{EndCause, Limits},
};

/// Capabilities of this host, and the operations that use them.
#[derive(Clone, Debug)]
pub struct HostCapabilities {
    pub(crate) python: Python,
    /// Environment with only the standard library.
    bare: PathBuf,
    pub(crate) directories: Arc<RunDirectories>,
    /// Accounts of this machine, if the platform is root.
    accounts: Option<Arc<AccountRegistry>>,
    /// Control group for runs, if one is delegated.
    #[cfg(target_os = "linux")]
    cgroups: Option<Arc<Cgroups>>,
    /// Paths that every process may read.
    readable: Vec<PathBuf>,
    isolation: Isolation,
    pub(crate) settings: Settings,
    uv: Arc<OnceCell<Uv>>,
}

impl HostCapabilities {
    /// Examines the host, without a trial of its isolation.
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
        let readable = readable(settings, &python)?;
        let data_dir = settings.data_dir.clone();
        let program = python.program.clone();
        let (directories, bare, accounts) = blocking(move || {
            let open = || {
                let directories = RunDirectories::open(&data_dir)?;
                let bare = directories.bare_environment(&program)?;
                // Only root can run a process as another account.
                let is_root = nix::unistd::geteuid().is_root();
                let accounts = is_root
                    .then(|| AccountRegistry::open(directories.jobs()))
                    .transpose()?;
                Ok((directories, bare, accounts.map(Arc::new)))
            };
            open().map_err(|error: std::io::Error| format!("{}: {error}", data_dir.display()))
        })
        .await?;
        #[cfg(target_os = "linux")]
        // Moving processes between groups writes to the kernel's file system, which may wait.
        let cgroups = blocking(|| Ok(Cgroups::open().map(Arc::new))).await?;
        Ok(Self {
            python,
            bare,
            directories: Arc::new(directories),
            accounts,
            #[cfg(target_os = "linux")]
            cgroups,
            readable,
            isolation: Isolation::Nothing,
            settings: settings.clone(),
            uv: Arc::default(),
        })
    }

    /// Returns these capabilities with processes at that level of isolation. Where only root can run the
    /// Python that was found, and processes are not root's, it is another one.
    pub(crate) async fn at(&self, isolation: Isolation) -> Result<Self, String> {
        let mut host = Self {
            isolation,
            uv: Arc::default(),
            ..self.clone()
        };
        if self.settings.python.is_some() || host.is_usable(&self.python.program) {
            return Ok(host);
        }
        let (directories, tried) = (Arc::clone(&self.directories), host.clone());
        let found = blocking(move || {
            let Some(python) = Python::find_that(|it| tried.is_usable(&it.program)) else {
                return Ok(None);
            };
            let bare = directories.bare_environment(&python.program);
            let bare = bare.map_err(|error| format!("an environment of Python: {error}"))?;
            Ok(Some((python, bare)))
        });
        // Otherwise the first process is refused with what to do.
        if let Some((python, bare)) = found.await? {
            host.readable = readable(&self.settings, &python)?;
            (host.python, host.bare) = (python, bare);
        }
        Ok(host)
    }

    /// Returns true if processes can reach the file at this isolation. In namespaces they always can.
    fn is_usable(&self, file: &Path) -> bool {
        !self.needs_passage() || first_closed(file).is_none()
    }

    /// Returns true if processes have other accounts than the platform, and its view of the file system.
    /// Namespaces bind paths into the run's own tree; Landlock leaves the directories above them closed.
    fn needs_passage(&self) -> bool {
        self.isolation == Isolation::Landlock && self.accounts.is_some()
    }

    /// Returns the path of Python, outside of any virtual environment.
    pub(crate) fn python_program(&self) -> &Path {
        &self.python.program
    }

    /// Returns the isolation of all processes of this sandbox.
    #[must_use]
    pub const fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns the network access of scripts.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.settings.network.access
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
        self.try_activate(workspace, script)
            .await
            .map_err(SandboxError::Unavailable)
    }

    pub(crate) async fn try_activate(
        &self,
        workspace: &Workspace,
        script: &str,
    ) -> Result<ActiveWorkspace, String> {
        let (workspace, script) = (workspace.clone(), script.to_owned());
        let accounts = self.accounts_in_use().cloned();
        if self.needs_passage() {
            self.check_accessible()?;
        }
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
    /// something retains the accounts apart from the rest of the machine.
    fn accounts_in_use(&self) -> Option<&Arc<AccountRegistry>> {
        self.accounts
            .as_ref()
            .filter(|_| self.isolation != Isolation::Nothing)
    }

    /// Checks that accounts other than root's can enter the data directory and run Python. In
    /// namespaces they always can.
    fn check_accessible(&self) -> Result<(), String> {
        let program = (
            &self.python.program,
            "install Python 3 for all users, or set LABDATA_PYTHON to another one",
        );
        let data = (&self.settings.data_dir, "move the data directory");
        for (path, remedy) in [program, data] {
            if let Some(closed) = first_closed(path) {
                return Err(format!(
                    "only its owner can enter {}, so the account of scripts cannot use {}: {remedy}",
                    closed.display(),
                    path.display()
                ));
            }
        }
        Ok(())
    }

    /// Creates the cache of a scope if it is missing, and returns its account.
    pub(crate) async fn cache(&self, scope: &str) -> Result<Option<Account>, String> {
        let accounts = self.accounts_in_use().cloned();
        let (directories, scope) = (Arc::clone(&self.directories), scope.to_owned());
        blocking(move || {
            directories
                .cache(&scope, accounts.as_deref())
                .map(|(_, account)| account)
                .map_err(|error| format!("the cache of dependencies: {error}"))
        })
        .await
    }

    /// Removes dependencies that were not used for the longest time from caches that are close to
    /// [`Settings::cache_quota`].
    pub(crate) async fn evict_dependencies(&self) -> Result<(), String> {
        let (directories, quota) = (Arc::clone(&self.directories), self.settings.cache_quota);
        blocking(move || {
            let caches = directories.all_dependencies();
            caches
                .and_then(|caches| caches.iter().try_for_each(|cache| cache.evict(quota)))
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
        self.run_with(workspace, spec, None, stop, on_output).await
    }

    /// Runs a process that responds to requests to its end. Its standard input and output are the pipes, and
    /// only its standard error is logged. Dropping the future kills the process.
    ///
    /// `on_output` receives the length of the workspace's log whenever it has grown.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the process could not be started, or its supervisor was
    /// killed.
    pub async fn serve(
        &self,
        workspace: &ActiveWorkspace,
        spec: &ProcessSpec,
        pipes: ProcessPipes,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, SandboxError> {
        self.run_with(workspace, spec, Some(pipes), stop, on_output)
            .await
    }

    async fn run_with(
        &self,
        workspace: &ActiveWorkspace,
        spec: &ProcessSpec,
        pipes: Option<ProcessPipes>,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, SandboxError> {
        let reach = Reach {
            upstream: Upstream::of_this_process(),
            ..Reach::default()
        };
        let request = self.launch_request(workspace, spec);
        self.launch(request, pipes, reach, stop, on_output)
            .await
            .map_err(SandboxError::Unavailable)
    }

    /// Launches a process with its access to the network.
    pub(crate) async fn launch(
        &self,
        mut request: LaunchRequest,
        pipes: Option<ProcessPipes>,
        reach: Reach,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, String> {
        let gateway = Gateway::prepare(GatewayRequest {
            isolation: request.isolation,
            network: request.network,
            settings: &self.settings.network,
            reach,
        });
        let (gateway, launch) = gateway
            .await
            .map_err(|error| format!("the network of a script: {error}"))?;
        request.has_pipes = pipes.is_some();
        request.namespace = launch.namespace;
        request.ports = launch.ports;
        // After the job's own variables: a job cannot replace the proxy.
        request.environment.extend(launch.environment);
        // The variables of an installation name the mirror by a placeholder, because its port and
        // its token are known only now.
        if let Some(mirror) = launch.mirror {
            name_mirror(&mut request.environment, mirror.reveal());
        }
        #[cfg(target_os = "linux")]
        let cgroup = self.cgroup(&request.limits);
        #[cfg(target_os = "linux")]
        {
            request.cgroup = cgroup.as_ref().map(RunCgroup::members);
        }
        let supervisor = &self.settings.supervisor;
        let outcome = process::run(supervisor, &request, pipes, gateway, stop, on_output).await;
        #[cfg(target_os = "linux")]
        let outcome = outcome.map(|outcome| match (outcome.cause, &cgroup) {
            // The kernel's kill looks like any other signal; only the group's counter tells the reason.
            (EndCause::Exited, Some(cgroup)) if cgroup.exceeded_memory() => ProcessOutcome {
                cause: EndCause::Memory,
                ..outcome
            },
            _ => outcome,
        });
        outcome
    }

    /// Creates the control group of a run. Without one, the supervisor alone enforces the limits of
    /// whole runs.
    #[cfg(target_os = "linux")]
    fn cgroup(&self, limits: &Limits) -> Option<RunCgroup> {
        let created = self.cgroups.as_ref()?.for_run(limits);
        created
            .inspect_err(|error| tracing::warn!(%error, "a run has no control group"))
            .ok()
    }

    /// Translates a specification into a request for a supervisor.
    pub(crate) fn launch_request(
        &self,
        active: &ActiveWorkspace,
        spec: &ProcessSpec,
    ) -> LaunchRequest {
        let workspace = &active.workspace;
        let mut readable = self.readable.clone();
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
            isolation: self.isolation,
            command: command.collect(),
            environment: environment.collect(),
            has_pipes: false,
            directory: workspace.scratch(),
            readable,
            writable: vec![workspace.scratch(), workspace.temporary()],
            measured: vec![workspace.scratch(), workspace.temporary()],
            temporary: workspace.temporary(),
            root: workspace.root(),
            log: workspace.log(),
            logged: spec.logged,
            cgroup: None,
            account: active.account.as_ref().map(Into::into),
            network: spec.network,
            namespace: NamespaceNetwork::default(),
            ports: Vec::new(),
            limits: spec.limits,
        }
    }

    /// Returns the uv, found or fetched on first use.
    pub(crate) async fn uv(&self) -> Result<&Uv, String> {
        let found = self.uv.get_or_try_init(|| {
            let (named, tools) = (self.settings.uv.clone(), self.directories.tools());
            let host = self.clone();
            blocking(move || {
                Uv::find_that(named.as_deref(), &tools, &host.python, |uv| {
                    host.is_usable(uv)
                })
            })
        });
        found.await
    }
}

/// Returns the paths that every process with that Python may read.
fn readable(settings: &Settings, python: &Python) -> Result<Vec<PathBuf>, String> {
    let mut readable = readable_paths(&python.required_paths(), &settings.hidden);
    readable.extend(settings.readable.iter().cloned());
    // Readable paths are bound as they are, so everything below them is readable, too.
    match readable
        .iter()
        .find(|path| settings.data_dir.starts_with(path))
    {
        None => Ok(readable),
        Some(above) => Err(format!(
            "the data directory {} is below {}, which scripts can read; move it",
            settings.data_dir.display(),
            above.display()
        )),
    }
}

/// Returns the first directory on the way to the path that only its owner or group can enter.
fn first_closed(path: &Path) -> Option<PathBuf> {
    // The account needs to pass the directories above a link, and those above its target.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut above: Vec<&Path> = target.ancestors().chain(path.ancestors()).collect();
    // The outermost closed directory is the one to name: opening one below it would not help.
    above.reverse();
    let closed = above.into_iter().find(|path| {
        path.metadata()
            .is_ok_and(|kind| kind.permissions().mode() & 0o001 == 0)
    });
    closed.map(Path::to_owned)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
