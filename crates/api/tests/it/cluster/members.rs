//! The processes of a cluster.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Stdio},
    sync::{LazyLock, Mutex},
    time::{Duration, Instant},
};

use labdata_load::Random;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::{directory, labdata};

/// Time in which a server answers after its start.
const START: Duration = Duration::from_mins(1);

/// Ports of servers: below those that the system gives out, so that no other process has one of them
/// while its server is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A server or a worker. It is killed when dropped.
pub(super) struct Member {
    child: Child,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: TempDir,
    port: Option<u16>,
}

impl Member {
    /// Starts a server on that port.
    pub(super) fn server(port: u16, environment: Vec<(String, String)>) -> Self {
        let bind = format!("127.0.0.1:{port}");
        let arguments = ["serve", "--no-worker", "--bind", &bind];
        Self::start(&arguments, environment, Some(port))
    }

    /// Starts a worker.
    pub(super) fn worker(environment: Vec<(String, String)>) -> Self {
        Self::start(&["worker"], environment, None)
    }

    fn start(arguments: &[&str], environment: Vec<(String, String)>, port: Option<u16>) -> Self {
        let directory = directory();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(directory.path(), &arguments, &environment);
        Self {
            child,
            arguments,
            environment,
            directory,
            port,
        }
    }

    /// Its base URL, if it is a server.
    pub(super) fn url(&self) -> Option<String> {
        self.port.map(|port| format!("http://127.0.0.1:{port}"))
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Stops it, as a machine that is suspended.
    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`Self::stop`].
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Starts it again in the same place.
    pub(super) fn restart(&mut self) {
        self.child = spawn(self.directory.path(), &self.arguments, &self.environment);
    }

    /// Asserts that it has not ended by itself.
    pub(super) fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{:?} ended: {ended:?}", self.arguments);
    }

    /// Waits until the server is ready.
    pub(super) async fn until_ready(&mut self) {
        let url = format!("{}/readyz", self.url().unwrap());
        let began = Instant::now();
        loop {
            self.assert_alive();
            let response = reqwest::get(&url).await;
            if response.is_ok_and(|response| response.status().is_success()) {
                return;
            }
            assert!(began.elapsed() < START, "{url} does not become ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(directory: &Path, arguments: &[String], environment: &[(String, String)]) -> Child {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    labdata(directory, &arguments)
        .env("LABDATA_LOG", "warn")
        .envs(environment.iter().cloned())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Chooses free ports.
pub(super) fn free_ports(count: usize) -> Vec<u16> {
    // One sequence for all tests of this process, which would otherwise take the same ports side by side.
    static RANDOM: LazyLock<Mutex<Random>> =
        LazyLock::new(|| Mutex::new(Random::new(u64::from(std::process::id()))));
    let mut random = RANDOM.lock().unwrap();
    let width = u64::from(PORTS.end - PORTS.start);
    let mut ports = Vec::new();
    while ports.len() < count {
        let port = PORTS.start + u16::try_from(random.below(width)).unwrap();
        if !ports.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.push(port);
        }
    }
    ports
}
