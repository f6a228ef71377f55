//! Installation of the dependencies that a script declares.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use labdata_python_packages::DeclaredPackages;
use labdata_redacted::Variables;
use url::Url;

use crate::{
    accounts::Account,
    blocking::blocking,
    dependency_cache::{DependencyCache, InstallationStart},
    directories::{ActiveWorkspace, create_for_account},
    error::SandboxError,
    host::{HostCapabilities, text},
    install_access::InstallAccess,
    installation_start::{begin_installation, in_cache, not_begun},
    launch::{LaunchAccount, LaunchRequest},
    network::Reach,
    process::StopSignal,
    script_metadata::{INSTALL_VARIABLES, environment_name},
    spec::{EndCause, Exit, Limits, Network, ProcessOutcome, ProcessSpec, ScriptEnvironment},
    uv::Uv,
};

/// Scope of the environments of the platform's own scripts, such as the trainer of ML models. Differs
/// from every organization's id.
pub const PLATFORM_SCOPE: &str = "platform";

/// Request for the environment of a script.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentRequest<'a> {
    /// Owner of the environment, one path component. Environments are shared within a scope only.
    pub scope: &'a str,
    /// Packages that the script of the workspace declares, if it has inline metadata (PEP 723).
    pub packages: Option<&'a DeclaredPackages>,
    /// Python code that completes a new environment: it runs in it after the installation, without network,
    /// and can write below the directory of the environment, `sys.prefix`.
    pub completion: Option<&'a str>,
    /// Limits of the installation, and of its completion.
    pub limits: Limits,
}

/// Result of a request for an environment.
#[derive(Clone, Debug)]
pub enum EnvironmentOutcome {
    /// The script declares no dependencies.
    NotNeeded,
    /// The dependencies are installed.
    Installed(ScriptEnvironment),
    /// The metadata exclude this Python, or uv is missing; or the packages are too large.
    /// The reason is for the script's author.
    Rejected(String),
    /// The installation failed.
    Failed(ProcessOutcome),
}

impl HostCapabilities {
    /// Installs the dependencies of a script, unless an earlier call did.
    ///
    /// `on_output` receives the length of the workspace's log whenever it has grown.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the installation could not be started, or its supervisor was
    /// killed.
    pub async fn script_environment(
        &self,
        workspace: &ActiveWorkspace,
        request: EnvironmentRequest<'_>,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<EnvironmentOutcome, SandboxError> {
        self.environment(workspace, request, stop, on_output)
            .await
            .map_err(SandboxError::Unavailable)
    }

    async fn environment(
        &self,
        workspace: &ActiveWorkspace,
        request: EnvironmentRequest<'_>,
        stop: &mut StopSignal,
        mut on_output: impl FnMut(u64),
    ) -> Result<EnvironmentOutcome, String> {
        let Some(packages) = request.packages else {
            return Ok(EnvironmentOutcome::NotNeeded);
        };
        let name = match environment_name(packages, request.completion, &self.python) {
            Ok(None) => return Ok(EnvironmentOutcome::NotNeeded),
            Ok(Some(name)) => name,
            Err(reason) => return Ok(EnvironmentOutcome::Rejected(reason)),
        };
        let account = self.cache(request.scope).await?;
        let cache = self
            .directories
            .dependencies(request.scope)
            .map_err(|error| error.to_string())?;
        let environment = |in_use| ScriptEnvironment {
            cache: cache.directory().to_owned(),
            directory: cache.environment(&name),
            _in_use: in_use,
        };
        // The usual case: nothing is installed and uv is not even looked for.
        if let Some(in_use) = in_cache(&cache, &name, DependencyCache::use_environment).await? {
            return Ok(EnvironmentOutcome::Installed(environment(in_use)));
        }
        let uv = match self.uv().await {
            Ok(uv) => uv,
            Err(reason) => return Ok(EnvironmentOutcome::Rejected(reason)),
        };
        let client = if request.scope == PLATFORM_SCOPE || packages.is_locked() {
            None
        } else {
            match self.script_with_client(workspace, packages).await? {
                Ok(client) => Some(client),
                Err(reason) => return Ok(EnvironmentOutcome::Rejected(reason)),
            }
        };
        let requirements = if packages.is_locked() {
            Some(write_requirements(workspace, packages).await?)
        } else {
            None
        };
        let quota = self.settings.cache_quota;
        // Eviction needs the scope to itself, so it comes before this installation's shared lock.
        in_cache(&cache, &name, move |cache, _| cache.evict(quota)).await?;
        let wait_limit = request.limits.wall_clock;
        let lock = match begin_installation(&cache, &name, wait_limit, stop).await? {
            InstallationStart::Begun(lock) => lock,
            InstallationStart::Installed(in_use) => {
                return Ok(EnvironmentOutcome::Installed(environment(in_use)));
            }
            InstallationStart::Busy => return Ok(EnvironmentOutcome::Failed(not_begun(stop))),
        };
        let installation = Installation {
            workspace,
            limits: request.limits,
            account: account.as_ref(),
            cache: cache.directory(),
            directory: &cache.environment(&name),
            uv,
            client: client.as_ref(),
            requirements: requirements.as_deref(),
            compile: request.scope == PLATFORM_SCOPE,
        };
        let mut outcome = self.install(installation, stop, &mut on_output).await?;
        if let Some(code) = request.completion.filter(|_| is_success(&outcome)) {
            let logged = outcome.logged;
            let completed = self.complete(installation, code, logged, stop, &mut on_output);
            outcome = completed.await?;
        }
        // The log of the script continues after that of the installation.
        on_output(outcome.logged);
        if is_success(&outcome) {
            let complete = move |cache: &DependencyCache, name: &str| cache.complete(name, lock);
            let in_use = in_cache(&cache, &name, complete).await?;
            Ok(EnvironmentOutcome::Installed(environment(in_use)))
        } else if outcome.cause == EndCause::Scratch {
            Ok(EnvironmentOutcome::Rejected(format!(
                "the installed dependencies of the organization would take more than {quota} bytes \
                 (LABDATA_JOB_CACHE_QUOTA)"
            )))
        } else {
            Ok(EnvironmentOutcome::Failed(outcome))
        }
    }

    async fn install(
        &self,
        installation: Installation<'_>,
        stop: &mut StopSignal,
        mut on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, String> {
        let python = text(&self.python.program);
        let Some(requirements) = installation.requirements else {
            let active = installation.workspace;
            let script = installation.client.map_or_else(
                || active.workspace.script_path(),
                |client| client.script.clone(),
            );
            let script = text(&script);
            // uv takes a package whose metadata are there for installed, also where the process that
            // wrote them was killed before it had written the rest.
            let logged = if fs::symlink_metadata(installation.directory).is_ok() {
                let cleared = self.clear(installation, stop, &mut on_output).await?;
                if !is_success(&cleared) {
                    return Ok(cleared);
                }
                cleared.logged
            } else {
                0
            };
            let arguments = ["sync", "--script", &script, "--active", "--python", &python];
            return self
                .run_uv(installation, &arguments, logged, stop, on_output)
                .await;
        };
        let created = self.clear(installation, stop, &mut on_output).await?;
        if !is_success(&created) {
            return Ok(created);
        }
        let python = text(&installation.directory.join("bin/python"));
        let requirements = text(requirements);
        let install = [
            "pip",
            "sync",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--python",
            &python,
            &requirements,
        ];
        self.run_uv(installation, &install, created.logged, stop, on_output)
            .await
    }

    /// Makes an environment without packages, in place of what is there.
    async fn clear(
        &self,
        installation: Installation<'_>,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, String> {
        let python = text(&self.python.program);
        let directory = text(installation.directory);
        let create = [
            "venv",
            "--clear",
            "--no-project",
            "--python",
            &python,
            &directory,
        ];
        self.run_uv(installation, &create, 0, stop, on_output).await
    }

    /// Runs uv for an installation. The log has that length.
    async fn run_uv(
        &self,
        installation: Installation<'_>,
        arguments: &[&str],
        logged: u64,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, String> {
        let Installation {
            workspace: active,
            cache,
            directory,
            uv,
            client,
            compile,
            ..
        } = installation;
        let access = self.settings.network.access;
        let mut request = self.installation_request(installation, access, logged);
        // A `uv.toml` of the account or of the script's directory must not choose another index.
        let settings = ["--no-config", "--no-progress"];
        let arguments = arguments.iter().chain(&settings).copied();
        request.command = std::iter::once(text(&uv.program))
            .chain(arguments.map(str::to_owned))
            .collect();
        request.environment.extend(
            [
                ("UV_CACHE_DIR", text(&cache.join("uv"))),
                ("VIRTUAL_ENV", text(directory)),
                ("UV_PYTHON_DOWNLOADS", "never".to_owned()),
                ("NO_COLOR", "1".to_owned()),
                (
                    "UV_COMPILE_BYTECODE",
                    if compile { "1" } else { "0" }.to_owned(),
                ),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let inherited = INSTALL_VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let access = InstallAccess::new(inherited.chain(uv.index().iter().cloned()).collect());
        // With credentials the proxy of the worker is used, which adds them; the installation never sees them.
        if !access.upstream.has_credentials() {
            request.environment.extend(access.proxies);
        }
        for (name, value) in access.variables {
            // These name files of this machine, of which the installation sees the permitted ones
            // only.
            if name.starts_with("SSL_CERT") {
                request.readable.push(PathBuf::from(&value));
            } else if name == "UV_FIND_LINKS" {
                request.readable.extend(value.split(',').map(PathBuf::from));
            }
            request.environment.push((name, value));
        }
        request.readable.push(uv.program.clone());
        request.readable.extend(client.map(|it| it.wheel.clone()));
        let home = active.workspace.installation();
        create_for_account(&home, installation.account).map_err(|error| error.to_string())?;
        let reach = Reach {
            endpoints: access.endpoints,
            upstream: access.upstream,
            mirrored: access.mirrored,
        };
        self.launch(request, None, reach, stop, on_output).await
    }

    /// Writes the script that is installed in place of the workspace's: one with the same metadata, which
    /// takes the Python client from this program instead of an index.
    ///
    /// The inner error is for the script's author.
    async fn script_with_client(
        &self,
        active: &ActiveWorkspace,
        packages: &DeclaredPackages,
    ) -> Result<Result<InstalledClient, String>, String> {
        let wheel = self.directories.client_wheel();
        let url = Url::from_file_path(&wheel)
            .map_err(|()| format!("{} is not absolute", wheel.display()))?;
        let script = match packages.script_with_client(url.as_str()) {
            Ok(script) => script,
            Err(reason) => return Ok(Err(reason)),
        };
        let directories = Arc::clone(&self.directories);
        let workspace = active.workspace.clone();
        let group = active.account.as_ref().map(|account| account.id);
        blocking(move || {
            let write = || {
                directories.write_client_wheel()?;
                workspace.write_for_installation("installation.py", &script, group)
            };
            let script = write()
                .map_err(|error: io::Error| format!("the script of the installation: {error}"))?;
            Ok(Ok(InstalledClient { script, wheel }))
        })
        .await
    }

    /// Runs code in an environment that was just installed. The log has that length.
    async fn complete(
        &self,
        installation: Installation<'_>,
        code: &str,
        logged: u64,
        stop: &mut StopSignal,
        on_output: impl FnMut(u64),
    ) -> Result<ProcessOutcome, String> {
        // The code imports freshly installed packages: everything that they do on import happens without a network.
        let mut request = self.installation_request(installation, Network::Denied, logged);
        let python = text(&installation.directory.join("bin/python"));
        request.command = [&*python, "-I", "-c", code].map(str::to_owned).into();
        self.launch(request, None, Reach::default(), stop, on_output)
            .await
    }

    /// Returns the request for a process of an installation, without its command.
    fn installation_request(
        &self,
        installation: Installation<'_>,
        network: Network,
        logged: u64,
    ) -> LaunchRequest {
        let Installation {
            workspace: active,
            account,
            cache,
            ..
        } = installation;
        let spec = ProcessSpec {
            arguments: Vec::new(),
            packages: None,
            environment: Variables::new(),
            network,
            limits: installation.limits,
            logged,
        };
        let mut request = self.launch_request(active, &spec);
        request.account = account.map(|account| LaunchAccount {
            // The script is readable by the run's group only.
            group: active.account.as_ref().map(|account| account.id),
            ..account.into()
        });
        let home = active.workspace.installation();
        request
            .environment
            .extend(["HOME", "TMPDIR"].map(|name| (name.to_owned(), text(&home))));
        request.directory.clone_from(&home);
        request.temporary.clone_from(&home);
        request.writable = vec![cache.to_owned(), home.clone()];
        request.measured = vec![cache.to_owned(), home];
        // The installation is measured by the quota of its organization, not by the run's scratch limit.
        request.limits.scratch = self.settings.cache_quota;
        request
    }
}

fn is_success(outcome: &ProcessOutcome) -> bool {
    outcome.cause == EndCause::Exited && outcome.exit == Exit::Code(0)
}

/// Writes the file of requirements where the installation reads it.
async fn write_requirements(
    active: &ActiveWorkspace,
    packages: &DeclaredPackages,
) -> Result<PathBuf, String> {
    let workspace = active.workspace.clone();
    let group = active.account.as_ref().map(|account| account.id);
    let requirements = packages.block.clone();
    blocking(move || {
        workspace
            .write_for_installation("requirements.txt", &requirements, group)
            .map_err(|error| format!("the requirements of the installation: {error}"))
    })
    .await
}

/// Python client of the platform, ready for an installation.
#[derive(Debug)]
struct InstalledClient {
    /// Script with metadata that refer to the wheel.
    script: PathBuf,
    wheel: PathBuf,
}

/// Parameters of an installation.
#[derive(Clone, Copy)]
struct Installation<'a> {
    workspace: &'a ActiveWorkspace,
    limits: Limits,
    account: Option<&'a Account>,
    /// Directory that the installation may write.
    cache: &'a Path,
    /// Directory of the environment.
    directory: &'a Path,
    uv: &'a Uv,
    /// Python client of the platform, for scripts of organizations.
    client: Option<&'a InstalledClient>,
    /// File of locked requirements, which are installed in place of the script's.
    requirements: Option<&'a Path>,
    /// True if modules are compiled now. Scripts cannot write their environment, so each one would compile
    /// those that it imports. Worth it for environments that many processes use.
    compile: bool,
}
