//! What a runner finds out once: its Python, its directories, what the kernel allows.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};

use labdata_domain::ids::OrganizationId;
use labdata_ports::runner::{RunId, RunLimits, RunnerError};
use tokio::sync::{OnceCell, watch};

use crate::{
    Settings,
    places::{Places, RunPlaces},
    python::Python,
    step::{self, Wish},
    supervisor::{Exit, Isolation, Limits, Order},
    uv,
};

/// What scripts may read of the system: programs, libraries, and what resolves names, users and
/// certificates.
const SYSTEM: [&str; 31] = [
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

/// Accounts of runs, where the platform is root: none of them is in use on any machine.
const ACCOUNTS: u32 = 1_500_000_000;

/// What a runner works on.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) python: Python,
    /// An environment of it with nothing but the standard library.
    bare: PathBuf,
    pub(crate) places: Places,
    pub(crate) isolation: Isolation,
    pub(crate) settings: Settings,
    uv: OnceCell<PathBuf>,
}

impl Ground {
    /// Finds out everything.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, RunnerError> {
        let named = settings.python.clone();
        // Trying again would not bring one: whoever waits for the run hears of it at once.
        let python = blocking(move || Python::find(named.as_deref()))
            .await
            .map_err(|reason| {
                RunnerError::Refused(format!("there is no Python on this server: {reason}"))
            })?;
        Self::open_with(settings, python)
            .await
            .map_err(RunnerError::Unavailable)
    }

    /// The error is for operators.
    async fn open_with(settings: &Settings, python: Python) -> Result<Self, String> {
        if let Some(above) = python
            .needs()
            .into_iter()
            .chain(SYSTEM.map(PathBuf::from))
            .find(|path| settings.data_dir.starts_with(path))
        {
            return Err(format!(
                "the data directory {} is below {}, which scripts can read; put it elsewhere",
                settings.data_dir.display(),
                above.display()
            ));
        }
        let data_dir = settings.data_dir.clone();
        let program = python.program.clone();
        let (places, bare) = blocking(move || {
            let open = || {
                let places = Places::open(&data_dir)?;
                let bare = places.bare_environment(&program)?;
                Ok((places, bare))
            };
            open().map_err(|error: std::io::Error| format!("{}: {error}", data_dir.display()))
        })
        .await?;
        let mut ground = Self {
            python,
            bare,
            places,
            isolation: Isolation::Nothing,
            settings: settings.clone(),
            uv: OnceCell::new(),
        };
        ground.isolation = ground.most_isolation().await?;
        Ok(ground)
    }

    /// Tries what the kernel and the account allow, the most first: a Python that does nothing.
    async fn most_isolation(&self) -> Result<Isolation, String> {
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
                             for what that does not keep apart"
                        ),
                        Isolation::Nothing => tracing::warn!(
                            reason = refused.join("; "),
                            "scripts are NOT isolated: they can do all that the account of the \
                             platform can; see docs/OPERATING.md"
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
        let places = self.places.trial(&format!("{level:?}"));
        let account = account_of(level, &"trial");
        let made = places.clone();
        blocking(move || made.make("", account).map_err(|error| error.to_string())).await?;
        let command = vec!["-I".to_owned(), "-c".to_owned(), "pass".to_owned()];
        let limits = limits(&RunLimits::default(), Duration::from_mins(1));
        let mut order = self.order(level, &places, command, limits);
        order.account = account;
        let (_keep, mut wish) = watch::channel(Wish::Run);
        let end = step::run(&self.settings.supervisor, &order, &mut wish, |_| ()).await;
        blocking(move || crate::places::remove(&places.whole).map_err(|error| error.to_string()))
            .await?;
        match end? {
            end if end.exit == Exit::Code(0) => Ok(()),
            end => Err(format!("{:?} {}", end.exit, end.tail)),
        }
    }

    /// An order to run Python with these arguments in these places.
    pub(crate) fn order(
        &self,
        isolation: Isolation,
        places: &RunPlaces,
        arguments: Vec<String>,
        limits: Limits,
    ) -> Order {
        let mut command = vec![text(&self.bare.join("bin/python"))];
        command.extend(arguments);
        let mut readable: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
        readable.extend(self.python.needs());
        readable.extend([self.bare.clone(), places.script()]);
        Order {
            isolation,
            command,
            environment: self.environment(places),
            directory: places.scratch(),
            readable,
            writable: vec![places.scratch(), places.temporary()],
            temporary: places.temporary(),
            root: places.root(),
            log: places.log(),
            logged: 0,
            account: None,
            limits,
        }
    }

    /// What every program gets, whoever asks for it.
    fn environment(&self, places: &RunPlaces) -> Vec<(String, String)> {
        let python = text(&self.bare.join("bin"));
        [
            ("PATH", format!("{python}:/usr/local/bin:/usr/bin:/bin")),
            ("HOME", text(&places.scratch())),
            ("TMPDIR", text(&places.temporary())),
            ("LANG", "C.UTF-8".to_owned()),
            // Lines arrive when they are written, not when a buffer is full.
            ("PYTHONUNBUFFERED", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The uv, found or fetched when it is needed for the first time.
    pub(crate) async fn uv(&self) -> Result<&Path, String> {
        let found = self.uv.get_or_try_init(|| {
            let (named, tools) = (self.settings.uv.clone(), self.places.tools());
            let python = self.python.clone();
            blocking(move || uv::find(named.as_deref(), &tools, &python))
        });
        found.await.map(|path| &**path)
    }

    /// The account that a run has for itself, where there is one.
    pub(crate) fn account_of_run(&self, run: RunId) -> Option<u32> {
        account_of(self.isolation, &run)
    }

    /// The account of an organization's preparations.
    pub(crate) fn account_of_cache(&self, organization: OrganizationId) -> Option<u32> {
        account_of(self.isolation, &organization)
    }
}

/// An account of its own, when the platform is root and the files that are to be seen can be shown
/// to it.
fn account_of(isolation: Isolation, whose: &impl Hash) -> Option<u32> {
    let is_root = nix::unistd::geteuid().is_root();
    (is_root && isolation == Isolation::Namespaces).then(|| {
        let mut hasher = DefaultHasher::new();
        whose.hash(&mut hasher);
        let number = u32::try_from(hasher.finish() % 0x1000_0000).unwrap_or_default();
        ACCOUNTS + number
    })
}

/// The limits for a supervisor.
pub(crate) fn limits(limits: &RunLimits, wall_clock: Duration) -> Limits {
    Limits {
        wall_clock_ms: u64::try_from(wall_clock.as_millis()).unwrap_or(u64::MAX),
        cpu_seconds: limits.cpu_time.as_secs().max(1),
        memory: limits.memory,
        file_size: limits.file_size,
        processes: u64::from(limits.processes),
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Runs something that blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| error.to_string())?
}
