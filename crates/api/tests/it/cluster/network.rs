//! The network between a program and its database, which can be interrupted.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};
use tokio_postgres::{Config, config::Host};

/// Bytes that are under way in each direction of a connection.
const BUFFER: usize = 64 * 1024;

/// State of a link.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_interrupted: bool,
    /// Number of times that it lost all its connections.
    losses: usize,
}

/// A link to a database. It passes bytes on for as long as the runtime lives.
pub(super) struct Link {
    url: String,
    state: watch::Sender<State>,
}

impl Link {
    /// Creates a link to the database at that URL, over TCP to its socket.
    pub(super) async fn to(database: &str) -> Self {
        let config: Config = database.parse().unwrap();
        let [Host::Unix(directory)] = config.get_hosts() else {
            panic!("{database} is no socket");
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (access, name) = database.split_once('@').unwrap();
        let name = name.rsplit('/').next().unwrap();
        let state = watch::Sender::new(State::default());
        let socket = directory.join(".s.PGSQL.5432");
        tokio::spawn(accept(listener, socket, state.clone()));
        Self {
            url: format!("{access}@{address}/{name}"),
            state,
        }
    }

    /// URL of the database over this link.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Passes nothing on for that time, as when packets are lost. Afterwards either all arrives late, as TCP sends it
    /// again, or all connections are lost, as when one side has given up.
    pub(super) async fn interrupt(&self, time: Duration, are_connections_lost: bool) {
        self.state.send_modify(|state| state.is_interrupted = true);
        tokio::time::sleep(time).await;
        self.state.send_modify(|state| {
            state.is_interrupted = false;
            state.losses += usize::from(are_connections_lost);
        });
    }
}

async fn accept(listener: TcpListener, database: PathBuf, state: watch::Sender<State>) {
    while let Ok((program, _)) = listener.accept().await {
        let (database, state) = (database.clone(), state.subscribe());
        tokio::spawn(async move { forward(program, &database, state).await });
    }
}

async fn forward(program: TcpStream, database: &Path, state: watch::Receiver<State>) {
    let losses = state.borrow().losses;
    let Ok(database) = UnixStream::connect(database).await else {
        return;
    };
    let (from_program, to_program) = program.into_split();
    let (from_database, to_database) = database.into_split();
    let mut lost = state.clone();
    tokio::select! {
        _ = lost.wait_for(|state| state.losses > losses) => {}
        () = pass(from_program, to_database, state.clone()) => {}
        () = pass(from_database, to_program, state) => {}
    }
}

/// Passes bytes on until the sender has closed the connection.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length) = from.read(&mut buffer).await
        && length > 0
    {
        let is_closed = state.wait_for(|state| !state.is_interrupted).await.is_err();
        if is_closed || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
