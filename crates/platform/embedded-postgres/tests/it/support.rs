//! Shared by the tests: queries, processes, waiting for a condition, a host process to kill.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use tokio_postgres::NoTls;

/// Time limit of every condition, generous for a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Interval between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Environment variable with the host process's data directory, or `-` for a throwaway server.
const HOST_DATA_DIR: &str = "LABDATA_TEST_HOST_DATA_DIR";

/// Creates a data directory that other users may pass through, as an operator would.
pub(crate) fn data_dir() -> tempfile::TempDir {
    directory_with_mode(0o755)
}

/// Creates a temporary directory with this mode.
pub(crate) fn directory_with_mode(mode: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).expect("mode");
    directory
}

pub(crate) fn settings(data_dir: &Path) -> Settings {
    Settings {
        data_dir: data_dir.to_owned(),
        bin_dir: None,
        durability: Durability::Throwaway,
    }
}

pub(crate) async fn start(data_dir: &Path) -> EmbeddedPostgres {
    EmbeddedPostgres::start(settings(data_dir))
        .await
        .expect("the server starts")
}

/// Runs one statement on a new connection, and returns the first column of the first row.
pub(crate) async fn query(url: &str, sql: &str) -> Result<String, String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(|error| format!("{error:?}"))?;
    let connection = tokio::spawn(connection);
    let response = client
        .simple_query(sql)
        .await
        .map_err(|error| format!("{error:?}"));
    drop(client);
    let _ = connection.await;
    let value = response?.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(value.unwrap_or_default())
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < LIMIT, "in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the postmaster that `postmaster.pid` names.
pub(crate) fn postmaster(data_dir: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(data_dir.join("postgres/postmaster.pid")).ok()?;
    text.lines().next()?.parse().ok()
}

/// Returns the PostgreSQL processes of the cluster, by their working directory.
#[cfg(target_os = "linux")]
pub(crate) fn servers_of(data_dir: &Path) -> Vec<u32> {
    let cluster = data_dir.join("postgres");
    let cluster = cluster.canonicalize().unwrap_or(cluster);
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == cluster)
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the postmasters of the cluster, by their command line.
#[cfg(not(target_os = "linux"))]
pub(crate) fn servers_of(data_dir: &Path) -> Vec<u32> {
    let cluster = data_dir.join("postgres");
    let cluster = cluster.canonicalize().unwrap_or(cluster);
    let mut ps = Command::new("ps");
    let output = ps.args(["-axo", "pid=,command="]).output().expect("ps");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(&format!("-D {} ", cluster.display())))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}

/// Sends SIGKILL.
pub(crate) fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("small")).expect("positive");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("may be killed");
}

/// Separate process that runs a server: this test binary with one test, [`host`].
pub(crate) struct Host {
    child: Child,
    /// Held open for the last output of the test harness.
    _output: Lines<BufReader<ChildStdout>>,
    /// URL of the server.
    pub(crate) url: String,
    /// True if it attached to the server of another process.
    pub(crate) attached: bool,
}

impl Host {
    /// Starts the process, as another user if one is given, and waits for its server.
    pub(crate) fn spawn(data_dir: Option<&Path>, user: Option<u32>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("own path"));
        command
            .args([
                "--exact",
                "support::host",
                "--ignored",
                "--nocapture",
                "--quiet",
            ])
            .env(HOST_DATA_DIR, data_dir.unwrap_or(Path::new("-")))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().expect("the host process starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let line = lines
            .by_ref()
            .map(|line| line.expect("text"))
            .find_map(|line| line.split_once("READY ").map(|(_, rest)| rest.to_owned()))
            .expect("the host's server becomes ready");
        let (attached, url) = line.split_once(' ').expect("two words");
        Self {
            attached: attached == "true",
            url: url.to_owned(),
            _output: lines,
            child,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill_9(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    /// Lets the process stop its server and end.
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("reaped").success());
    }
}

/// Body of the host process, not a test. It serves until its standard input closes.
#[tokio::test]
#[ignore = "run by other tests, as a process of its own"]
async fn host() {
    let Some(data_dir) = std::env::var_os(HOST_DATA_DIR) else {
        return;
    };
    let read_to_end = || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut std::io::stdin(), &mut rest).expect("standard input");
    };
    if data_dir == "-" {
        let server = ThrowawayServer::start().await.expect("the server starts");
        println!("READY false {}", server.url("labdata"));
        read_to_end();
        return;
    }
    let server = start(&PathBuf::from(data_dir)).await;
    println!("READY {} {}", server.attached(), server.database_url());
    read_to_end();
    server.stop().await.expect("the server stops");
}
