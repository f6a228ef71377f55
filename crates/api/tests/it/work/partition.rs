//! A worker whose way to PostgreSQL is cut.

use std::path::{Path, PathBuf};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::watch,
};

use super::platform_runs::{LONG, Lab, Worker, keys, pause, processes, until_no_process_is_left};
use crate::process::directory;

/// A socket that forwards to that of PostgreSQL while it is open.
struct Link {
    /// URL of the database by way of the socket.
    url: String,
    is_open: watch::Sender<bool>,
    _directory: TempDir,
}

impl Link {
    fn to(url: &str) -> Self {
        let (before, rest) = url.split_once('@').unwrap();
        let (encoded, database) = rest.split_once('/').unwrap();
        let real = PathBuf::from(encoded.replace("%2F", "/"));
        let directory = directory();
        let socket = socket_in(&real);
        let own = directory.path().join(socket.file_name().unwrap());
        let listener = UnixListener::bind(own).unwrap();
        let (is_open, opened) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(forward(from_client, to_server, opened.clone()));
                tokio::spawn(forward(from_server, to_client, opened.clone()));
            }
        });
        let path = directory.path().display().to_string().replace('/', "%2F");
        Self {
            url: format!("{before}@{path}/{database}"),
            is_open,
            _directory: directory,
        }
    }

    /// From now on nothing arrives, in either direction, and no connection ends.
    fn cut(&self) {
        self.is_open.send_replace(false);
    }

    /// Delivers what was sent in between, and forwards again.
    fn heal(&self) {
        self.is_open.send_replace(true);
    }
}

fn socket_in(directory: &Path) -> PathBuf {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(".s.PGSQL.") && !name.ends_with(".lock")
    };
    paths.find(is_socket).unwrap()
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_open: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length) = from.read(&mut buffer).await {
        // Fails when the test is over.
        let opened = is_open.wait_for(|is_open| *is_open).await.is_ok();
        if length == 0 || !opened || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_its_database_stops_its_script_before_another_starts_it() {
    let database = ThrowawayServer::start().await.unwrap();
    let direct = database.url("labdata");
    let link = Link::to(&direct);
    let directory = directory();
    let settings = [("DATABASE_URL", &*direct)];
    let lab = Lab::start_with(directory.path(), &["--no-worker"], &settings);
    let on_the_link = [("DATABASE_URL", &*link.url)];
    let _first = Worker::start_with(directory.path(), lab.url(), &on_the_link);
    let id = lab.run(&lab.job("long", LONG).await).await;
    lab.until_begun(&id).await;
    let lost = keys(&id);
    link.cut();
    // Nothing tells it that another one may have the run by now.
    until_no_process_is_left(&id).await;
    let _second = Worker::start_with(directory.path(), lab.url(), &settings);
    let retry = lab.retry(&id).await;
    while processes(&retry).is_empty() {
        pause().await;
    }
    link.heal();
    let once = lab.run(&lab.job("once", "print('once')\n").await).await;
    assert_eq!(lab.ended(&once).await["status"], json!("completed"));
    assert!(processes(&id).is_empty(), "it does not start again");
    assert!(keys(&retry).is_disjoint(&lost), "each has a key");
    assert_eq!(lab.execution(&retry).await["status"], json!("running"));
}
