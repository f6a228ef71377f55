//! Lets chosen roles of a PostgreSQL behind a Unix socket in from the network.
//!
//! The relay reads the first message of a client, which names role and database, and refuses what it does not admit:
//! the superuser, other databases, replication. It asks for TLS where it must. Then it forwards bytes, as the role that
//! the client logs in as; it knows no password. Notifications of the server do not pass: `LISTEN` needs no right in
//! PostgreSQL, and their texts are of other people.
//!
//! **Invariants.** Knows no other crate of the platform. A client that has not logged in after [`LOGIN_TIME`] is
//! disconnected, and no more than [`Settings::connections`] are connected at a time.

mod client;
mod filter;
mod startup;
mod tls;

use std::{io, net::SocketAddr, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

pub use tls::{TlsError, acceptor};

/// Time within which a client must have logged in.
pub const LOGIN_TIME: Duration = Duration::from_secs(10);

/// Configuration of a relay.
#[derive(Clone)]
pub struct Settings {
    /// The server's Unix socket.
    pub socket: PathBuf,
    /// The only database that clients reach.
    pub database: String,
    /// Returns whether a role of that name is admitted.
    pub admits: fn(&str) -> bool,
    /// TLS, if there is a certificate.
    pub tls: Option<TlsAcceptor>,
    /// True to refuse clients without TLS.
    pub requires_tls: bool,
    /// Maximum number of clients at a time.
    pub connections: usize,
    /// Takes the share of a role in the connections, until what is returned is dropped; `None` if the role or its owner
    /// has as many as it may have.
    pub take_share: TakeShare,
}

/// A share in the connections.
pub type Share = Box<dyn Send>;

/// A share that is being taken.
pub type TakenShare = Pin<Box<dyn Future<Output = Option<Share>> + Send>>;

/// Takes the share of the role of that name.
pub type TakeShare = Arc<dyn Fn(String) -> TakenShare + Send + Sync>;

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("socket", &self.socket)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A running relay. Dropping it disconnects all clients.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens at that address. Port 0 picks a free one.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub async fn start(bind: SocketAddr, settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, Arc::new(settings)));
        Ok(Self { address, task })
    }

    /// Returns the address, with the actual port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pause after a failed accept, such as for want of file descriptors, which would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

async fn accept(listener: TcpListener, settings: Arc<Settings>) {
    let slots = Arc::new(Semaphore::new(settings.connections));
    // Aborted with this task, and the clients with it.
    let mut clients = tokio::task::JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "no connection of a SQL client could be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            // Takes what has ended out of the set.
            Some(_) = clients.join_next() => continue,
        };
        let settings = Arc::clone(&settings);
        let slot = Arc::clone(&slots).try_acquire_owned().ok();
        clients.spawn(async move {
            if let Err(error) = client::serve(stream, &settings, slot.is_some()).await {
                tracing::debug!(%error, "a SQL client was disconnected");
            }
            drop(slot);
        });
    }
}
