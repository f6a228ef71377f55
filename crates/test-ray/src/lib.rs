//! Ray clusters of one node, for tests. Only tests may use it.
//!
//! The first test that needs Ray lets uv install it below the target directory. A cluster ends with
//! its [`Cluster`], or with the process of the tests.
//!
//! ```no_run
//! # async fn example() {
//! let cluster = labdata_test_ray::Cluster::running(4, None).await;
//! let job_api: &str = cluster.address();
//! # }
//! ```
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a test without its cluster can only fail"
)]

mod tls;

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use labdata_ray_client::{Access, JobRequest, RayClient, RayError, RuntimeEnvironment};
use labdata_sandbox::{Python, Uv};

pub use tls::TlsProxy;

/// Ray, and the uv that its nodes need.
const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// Running cluster. It ends with this value, or with this process.
#[derive(Debug)]
pub struct Cluster {
    address: String,
    guard: Mutex<Child>,
    directory: tempfile::TempDir,
}

/// Number of attempts to start a cluster. Ray gives up if a busy machine starts it too slowly.
const MAX_STARTS: usize = 4;

/// Interval between two probes of a starting cluster.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// Name of the directory of the runs' workspaces.
const WORKSPACES: &str = "workspaces";

/// Id of the job that probes whether a new cluster accepts jobs.
const PROBE: &str = "probe";

/// Starts a head node, and ends it when standard input ends. TERM lets Ray end its processes.
const GUARD: &str = "
    setsid ray start --head --block --disable-usage-stats --port=0 --include-dashboard=true \
        --dashboard-host=127.0.0.1 --dashboard-port=$1 --dashboard-agent-listen-port=$2 \
        --ray-client-server-port=$3 --min-worker-port=0 --max-worker-port=0 --num-cpus=$4 \
        --object-store-memory=100000000 --temp-dir=$5 >$5/head.log 2>&1 </dev/null &
    head=$!
    exec 3<&0
    (cat <&3 >/dev/null; kill -TERM $head 2>/dev/null) &
    wait $head
    kill -KILL -$head 2>/dev/null
    exit 0
";

/// Installed Ray.
struct Installation {
    programs: PathBuf,
    /// Environment of the scripts' uv: package index as pip is configured, and cache.
    uv: Vec<(String, String)>,
}

/// Returns Ray, which the first call installs.
fn installation() -> &'static Installation {
    static INSTALLATION: OnceLock<Installation> = OnceLock::new();
    INSTALLATION.get_or_init(|| {
        // <target>/<profile>/deps/<test>
        let test = env::current_exe().expect("the path of the test program");
        let target = test.ancestors().nth(3).expect("the target directory");
        install(target).expect("these tests need Ray, which uv installs")
    })
}

fn install(target: &Path) -> Result<Installation, String> {
    let python = Python::find(None)?;
    let uv = Uv::find(None, &target.join("tools"), &python)?;
    let environment = target.join("ray-venv");
    uv.create_environment(&environment, REQUIREMENTS)?;
    let mut settings = uv.index().to_vec();
    // That of `just trainer-environment`, so that the packages of trainings are downloaded once.
    let cache = target.join("trainer/cache");
    settings.push(("UV_CACHE_DIR".to_owned(), cache.display().to_string()));
    Ok(Installation {
        programs: environment.join("bin"),
        uv: settings,
    })
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("the port of a listener");
    address.port()
}

impl Cluster {
    /// Starts a cluster with that many processors, and waits until it accepts jobs. A cluster with a
    /// token rejects other callers.
    pub async fn running(processors: u32, token: Option<&str>) -> Self {
        Self::start_with_retries(processors, token, free_port).await
    }

    /// Starts a new cluster at the address of one that has ended.
    pub async fn running_again(processors: u32, other: &Self) -> Self {
        let port = other.address.rsplit(':').next().map(str::parse);
        let port = port.and_then(Result::ok).expect("an address with a port");
        Self::start_with_retries(processors, None, || port).await
    }

    async fn start_with_retries(
        processors: u32,
        token: Option<&str>,
        port: impl Fn() -> u16,
    ) -> Self {
        let mut last = String::new();
        for _ in 0..MAX_STARTS {
            let cluster = Self::start(processors, token, port());
            match cluster.ready(token).await {
                Ok(()) => return cluster,
                Err(log) => last = log,
            }
        }
        panic!("Ray did not start:\n{last}");
    }

    fn start(processors: u32, token: Option<&str>, port: u16) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("ray")
            .tempdir()
            .expect("a temporary directory");
        let workspaces = directory.path().join(WORKSPACES);
        fs::create_dir(&workspaces).expect("an empty directory");
        let ray = installation();
        let mut path = vec![ray.programs.clone()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("bash");
        command
            .args(["-c", GUARD, "guard"])
            .args([port, free_port(), free_port()].map(|port| port.to_string()))
            .arg(processors.to_string())
            .arg(directory.path())
            .env("PATH", env::join_paths(path).expect("paths without colons"))
            .env("TMPDIR", &workspaces)
            .envs(ray.uv.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped());
        if let Some(token) = token {
            command
                .env("RAY_AUTH_MODE", "token")
                .env("RAY_AUTH_TOKEN", token);
        }
        Self {
            address: format!("http://127.0.0.1:{port}"),
            guard: Mutex::new(command.spawn().expect("bash")),
            directory,
        }
    }

    /// Returns the address of the job API.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the directory of everything that Ray stores.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the directory in which runs have their workspaces. The command lines of their processes
    /// contain it.
    #[must_use]
    pub fn workspaces(&self) -> PathBuf {
        self.directory.path().join(WORKSPACES)
    }

    fn guard(&self) -> MutexGuard<'_, Child> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the cluster has accepted a job. A response alone is not enough: Ray rejects jobs
    /// until its node's agent has registered. The error is Ray's log, if Ray has ended.
    async fn ready(&self, token: Option<&str>) -> Result<(), String> {
        let client = RayClient::new(&Access {
            address: self.address.clone(),
            token: token.map(str::to_owned),
            ca_file: None,
        });
        let client = client.expect("an HTTP client");
        let probe = JobRequest {
            submission_id: PROBE.to_owned(),
            entrypoint: "true".to_owned(),
            processors: 0,
            gpus: 0,
            memory: None,
            runtime: RuntimeEnvironment::default(),
            metadata: serde_json::Map::new(),
        };
        loop {
            match client.submit(&probe).await {
                Ok(_) => return Ok(()),
                Err(error @ RayError::Unauthorized { .. }) => panic!("{error}"),
                Err(_) => {}
            }
            if !matches!(self.guard().try_wait(), Ok(None)) {
                let log = fs::read_to_string(self.directory.path().join("head.log"));
                return Err(log.unwrap_or_default());
            }
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }

    /// Ends the cluster, and waits for its end.
    pub fn end(&self) {
        let mut guard = self.guard();
        drop(guard.stdin.take());
        // The process has ended already if waiting fails.
        let _ = guard.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}
