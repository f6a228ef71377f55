//! Finds, fetches, starts and stops a private PostgreSQL server.

use std::path::PathBuf;

/// How careful the server is with what it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// An acknowledged commit survives a power cut.
    #[default]
    Durable,
    /// `fsync`, `synchronous_commit` and `full_page_writes` are off: for tests only.
    Throwaway,
}

/// Where and how the private server runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The platform's data directory: the cluster goes to `postgres`, caches to `cache` below it.
    pub data_dir: PathBuf,
    /// A directory with `initdb` and `postgres` that is used instead of searching.
    pub bin_dir: Option<PathBuf>,
    /// How careful the server is with acknowledged commits.
    pub durability: Durability,
}

/// Why the private server could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
#[error("the private PostgreSQL server is not implemented yet")]
#[non_exhaustive]
pub struct Error;

/// A private PostgreSQL server that accepts connections.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    database_url: String,
}

#[expect(clippy::unused_async, clippy::missing_errors_doc, reason = "signatures first")]
impl EmbeddedPostgres {
    /// Starts the server, or attaches to the one that already runs on this data directory.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        drop(settings);
        Err(Error)
    }
    /// The URL of the database `labdata`.
    #[must_use]
    pub fn database_url(&self) -> &str {
        &self.database_url
    }
    /// The URL of another database of the same server.
    #[must_use]
    pub fn maintenance_url(&self, database: &str) -> String {
        database.to_owned()
    }
    /// Whether the server was started by another process.
    #[must_use]
    pub fn attached(&self) -> bool {
        false
    }
    /// Stops the server, if this process started it.
    pub async fn stop(self) -> Result<(), Error> {
        Ok(())
    }
}

pub mod throwaway {
    //! One throwaway server for a whole test run.

    use crate::Error;

    /// A private server that leaves nothing behind.
    #[derive(Debug)]
    pub struct ThrowawayServer;

    #[expect(clippy::unused_async, clippy::missing_errors_doc, reason = "signatures first")]
    impl ThrowawayServer {
        /// Starts a server with durability off on an empty directory.
        pub async fn start() -> Result<Self, Error> {
            Err(Error)
        }
        /// The URL of a database of this server.
        #[must_use]
        pub fn url(&self, database: &str) -> String {
            database.to_owned()
        }
    }
}
