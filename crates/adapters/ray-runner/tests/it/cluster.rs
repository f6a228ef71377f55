//! Ray clusters of one node.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use labdata_port_contracts::runs;
use labdata_ports::runner::{JobRunner, RunnerError};
use labdata_ray_runner::{RayRunner, Settings};
use tokio::sync::OnceCell;

/// A cluster. It ends with this value, or else with this process.
pub(crate) struct Cluster {
    pub(crate) address: String,
    guard: Mutex<Child>,
    directory: tempfile::TempDir,
}

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
        let own = env::current_exe().unwrap();
        let place = own.ancestors().nth(3).unwrap().join("ray-venv");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../.ci/ray-venv");
        let made = Command::new(script).arg(&place).status().unwrap();
        assert!(
            made.success(),
            "these tests need Ray, and `.ci/ray-venv` could not install it from PyPI"
        );
        place.join("bin")
    })
}

fn free_port() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port().to_string()
}

impl Cluster {
    /// Starts one with so many processors; its environment has these variables, too.
    fn start(processors: u32, environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("ray").tempdir().unwrap();
        let port = free_port();
        let path = format!(
            "{}:{}",
            programs().display(),
            env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("bash");
        command
            .args(["-c", GUARD, "guard", &port, &free_port(), &free_port()])
            .arg(processors.to_string())
            .arg(directory.path())
            .env("PATH", path)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped());
        Self {
            address: format!("http://127.0.0.1:{port}"),
            guard: Mutex::new(command.spawn().unwrap()),
            directory,
        }
    }

    /// A runner with ids of its own on it.
    pub(crate) fn runner(&self, token: Option<&str>) -> RayRunner {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        RayRunner::new(Settings {
            address: self.address.clone(),
            token: token.map(str::to_owned),
            namespace: format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        })
        .unwrap()
    }

    /// Starts one whose job API answers. Ray gives up when a busy machine starts it too slowly, so
    /// it is tried again.
    pub(crate) async fn running(
        processors: u32,
        environment: &[(&str, &str)],
        token: Option<&str>,
    ) -> Self {
        let mut last = String::new();
        for _ in 0..4 {
            let cluster = Self::start(processors, environment);
            match cluster.ready(token).await {
                Ok(()) => return cluster,
                Err(log) => last = log,
            }
        }
        panic!("Ray did not start:\n{last}");
    }

    /// Waits until its job API answers; the error is Ray's log when it has ended instead.
    async fn ready(&self, token: Option<&str>) -> Result<(), String> {
        let (runner, nobody) = (self.runner(token), runs::spec("").run);
        while let Err(RunnerError::Unavailable(reason)) = runner.status(nobody).await {
            assert!(!reason.contains("token"), "{reason}");
            if self.guard.lock().unwrap().try_wait().unwrap().is_some() {
                let log = fs::read_to_string(self.directory.path().join("head.log"));
                return Err(log.unwrap_or_default());
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Ends it and waits until it has ended.
    pub(crate) fn end(&self) {
        let mut guard = self.guard.lock().unwrap();
        drop(guard.stdin.take());
        guard.wait().unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

/// The cluster that most tests share; it ends with this process.
pub(crate) async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    SHARED.get_or_init(|| Cluster::running(4, &[], None)).await
}

/// How many processes of this machine have that in their command line.
pub(crate) fn processes_with(mark: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark).then_some(())
        })
        .count()
}
