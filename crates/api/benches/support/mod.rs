//! The real program on a separate database, with fsync on, and its clients, for all benches.

#![expect(dead_code, reason = "no bench uses all of it")]

use std::{
    future::Future,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_postgres::{Client, NoTls};

pub(crate) const KEY: &str = "ldk_benchkey_0123456789abcdefghijklmnopqrstuv";

/// A process that ends with this value, also when the benchmark breaks.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) struct Server {
    /// Without a slash at its end.
    pub(crate) base: String,
    program: Program,
    workers: Vec<Program>,
    variables: Vec<(String, String)>,
    postgres: EmbeddedPostgres,
    directory: TempDir,
}

impl Server {
    /// Starts `serve` with further variables of its environment.
    pub(crate) async fn start(variables: &[(&str, &str)]) -> Self {
        Self::start_as(&["serve"], variables).await
    }

    /// Starts the program with arguments.
    pub(crate) async fn start_as(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        // On the disk that the figures are about, not in a memory file system.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let settings = Settings {
            data_dir: directory.path().to_owned(),
            bin_dir: None,
            durability: Durability::Durable,
        };
        let postgres = EmbeddedPostgres::start(settings).await.unwrap();
        let own = [
            ("DATABASE_URL", postgres.database_url()),
            ("LABDATA_DATA_DIR", directory.path().to_str().unwrap()),
            ("LABDATA_BIND", "127.0.0.1:0"),
            ("LABDATA_BOOTSTRAP_KEY", KEY),
            ("LABDATA_LOG", "warn"),
        ];
        let variables: Vec<(String, String)> = own
            .iter()
            .chain(variables)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let (program, line) = run(arguments, &variables);
        let (_, address) = line.split_once("http://").unwrap();
        let address = address.split_whitespace().next().unwrap();
        Self {
            base: format!("http://{}", address.trim_end_matches('/')),
            program,
            workers: Vec::new(),
            variables,
            postgres,
            directory,
        }
    }

    /// Starts a worker beside it.
    pub(crate) fn add_worker(&mut self) {
        let mut variables = self.variables.clone();
        variables.push(("LABDATA_PUBLIC_URL".to_owned(), self.base.clone()));
        self.workers.push(run(&["worker"], &variables).0);
    }

    /// The URL of a path of the API, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.base)
    }

    pub(crate) fn database_url(&self) -> &str {
        self.postgres.database_url()
    }

    /// A connection to the database.
    pub(crate) async fn database(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(self.database_url(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    }

    /// Directory of the program's and the database's files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Reads a figure of the program's memory from `/proc`, such as `VmRSS`, in MB.
    pub(crate) fn memory(&self, field: &str) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.program.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    }

    /// Resets `VmHWM`.
    pub(crate) fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.program.0.id()), "5").unwrap();
    }

    /// A client that costs next to nothing, where rates are measured.
    pub(crate) fn plain_connection(&self) -> impl Future<Output = PlainConnection> + use<> {
        let host = self.base.trim_start_matches("http://").to_owned();
        async move {
            PlainConnection {
                stream: TcpStream::connect(&host).await.unwrap(),
                host,
                received: Vec::new(),
            }
        }
    }

    pub(crate) async fn stop(self) {
        drop((self.program, self.workers));
        self.postgres.stop().await.unwrap();
    }
}

/// Runs the program; yields the line that it says once it is up.
fn run(arguments: &[&str], variables: &[(String, String)]) -> (Program, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_labdata"))
        .args(arguments)
        .envs(variables.iter().cloned())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it did not start");
    (Program(child), line)
}

/// One kept-alive connection, written to and read from by hand.
pub(crate) struct PlainConnection {
    stream: TcpStream,
    host: String,
    received: Vec<u8>,
}

impl PlainConnection {
    /// Posts JSON to a path of the API, and waits for the answer, which must be 200.
    pub(crate) async fn post(&mut self, path: &str, body: &str) {
        let head = format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        self.request("POST", path, &head, body).await;
    }

    /// Gets a path of the API, and waits for the answer, which must be 200.
    pub(crate) async fn get(&mut self, path: &str) {
        self.request("GET", path, "", "").await;
    }

    async fn request(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\n{headers}\r\n{body}",
            self.host,
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.received.clear();
        while !self.is_complete() {
            assert_ne!(self.stream.read_buf(&mut self.received).await.unwrap(), 0);
        }
        assert!(self.received.starts_with(b"HTTP/1.1 200"));
    }

    fn is_complete(&self) -> bool {
        let received = &self.received;
        let Some(end) = received.windows(4).position(|part| part == b"\r\n\r\n") else {
            return false;
        };
        let head = std::str::from_utf8(&received[..end]).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        length.is_some_and(|length| received.len() - end - 4 >= length.parse().unwrap())
    }
}

/// Returns a percentile.
pub(crate) fn percentile(mut values: Vec<f64>, hundredths: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * hundredths / 100]
}

/// The one in the middle.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    percentile(values, 50)
}
