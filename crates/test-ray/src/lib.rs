//! Ray clusters of one node, for tests. Only tests may use it.
//!
//! Ray is installed from `PyPI` by the first test that needs it (`.ci/ray-venv`). A cluster ends with
//! its [`Cluster`], or else with the process of the tests.
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
    reason = "without its cluster a test can only fail, and panicking says so"
)]

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use reqwest::{Client, StatusCode};
use serde_json::json;

/// A cluster. It ends with this value, or else with this process.
#[derive(Debug)]
pub struct Cluster {
    address: String,
    guard: Mutex<Child>,
    directory: tempfile::TempDir,
}

/// How often a start is tried. Ray gives up when a busy machine starts it too slowly.
const STARTS: usize = 4;

/// Between two looks at a cluster that starts.
const LOOK: Duration = Duration::from_millis(100);

/// The job that shows that a new cluster takes jobs.
const PROBE: &str = "probe";

/// Starts a head and ends it when standard input does. TERM lets Ray end its own processes.
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

/// The directory with the programs of Ray, installed by the first test that needs it.
fn programs() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        // <target>/<profile>/deps/<this>
        let own = env::current_exe().expect("the path of the tests' program");
        let target = own.ancestors().nth(3).expect("the target directory");
        let place = target.join("ray-venv");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/ray-venv");
        let made = Command::new(script).arg(&place).status();
        assert!(
            made.is_ok_and(|status| status.success()),
            "these tests need Ray, and `.ci/ray-venv` could not install it from PyPI"
        );
        place.join("bin")
    })
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("the port of a listener");
    address.port()
}

impl Cluster {
    /// Starts a cluster with so many processors, and waits until it takes jobs. With a token it
    /// answers to that alone.
    pub async fn running(processors: u32, token: Option<&str>) -> Self {
        Self::try_often(processors, token, free_port).await
    }

    /// Starts a new cluster where another was, which has ended.
    pub async fn running_again(processors: u32, other: &Self) -> Self {
        let port = other.address.rsplit(':').next().map(str::parse);
        let port = port.and_then(Result::ok).expect("an address with a port");
        Self::try_often(processors, None, || port).await
    }

    async fn try_often(processors: u32, token: Option<&str>, port: impl Fn() -> u16) -> Self {
        let mut last = String::new();
        for _ in 0..STARTS {
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
        let mut path = vec![programs().to_owned()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("bash");
        command
            .args(["-c", GUARD, "guard"])
            .args([port, free_port(), free_port()].map(|port| port.to_string()))
            .arg(processors.to_string())
            .arg(directory.path())
            .env("PATH", env::join_paths(path).expect("paths without colons"))
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

    /// Where its job API is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    fn guard(&self) -> MutexGuard<'_, Child> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has taken a job. That it answers does not say so: until its node's agent has
    /// reported itself, which takes a busy machine long, Ray refuses jobs. The error is Ray's log
    /// when it has ended instead.
    async fn ready(&self, token: Option<&str>) -> Result<(), String> {
        let http = Client::builder().no_proxy().build();
        let http = http.expect("an HTTP client");
        let jobs = format!("{}/api/jobs/", self.address);
        let probe = json!({"entrypoint": "true", "submission_id": PROBE});
        loop {
            let mut request = http.post(&jobs).json(&probe);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                assert!(
                    status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN,
                    "the cluster refuses its own token"
                );
                // An earlier answer may have been lost.
                let text = answer.text().await.unwrap_or_default();
                if status.is_success() || text.contains("already exists") {
                    return Ok(());
                }
            }
            if !matches!(self.guard().try_wait(), Ok(None)) {
                let log = fs::read_to_string(self.directory.path().join("head.log"));
                return Err(log.unwrap_or_default());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends it and waits until it has ended.
    pub fn end(&self) {
        let mut guard = self.guard();
        drop(guard.stdin.take());
        // It has ended if there is nobody to wait for.
        let _ = guard.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}
