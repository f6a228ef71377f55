//! Directories of the server, and access to them for the server's account.
//!
//! ```text
//! <data dir>/postgres            the cluster, or a link to it
//! <data dir>/postgres.reserve    space that is stored for a full disk, beside the cluster
//! <data dir>/postgres.lock       locked by the process that owns the server
//! <data dir>/postgres.log        log of the server (bounded)
//! <data dir>/postgres-password   password of the superuser, in a file of mode 0600
//! <data dir>/postgres-run/       the socket, in a directory of mode 0700
//! <data dir>/cache/              the fetched server, if there is one
//! ```
//!
//! When labdata runs as root, the server runs as another user. If that user cannot reach the data
//! directory because it is below a private directory such as `/root`, the cluster, the socket and
//! the cache are placed below [`SYSTEM_DIR`] instead, and `<data dir>/postgres` is a link.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::Error;
use crate::account::Account;
use crate::sha256::sha256_hex;

/// Directory for clusters whose data directory the server's account cannot reach.
const SYSTEM_DIR: &str = "/var/lib/labdata";

/// File that marks a directory below [`SYSTEM_DIR`] whose cluster is not complete.
const UNFINISHED: &str = "unfinished";

/// Name of the socket; the number is PostgreSQL's default port.
pub(crate) const SOCKET_NAME: &str = ".s.PGSQL.5432";

/// Maximum length of a socket's path, in bytes; systems allow 103 (macOS) and 107 (Linux).
const MAX_SOCKET_PATH: usize = 99;

/// Directories of one server.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Data directory of the platform, absolute.
    pub(crate) data_dir: PathBuf,
    /// Directory of the cluster.
    pub(crate) cluster: PathBuf,
    /// Directory of the socket.
    pub(crate) socket_dir: PathBuf,
    /// Directory of the fetched server.
    pub(crate) cache_dir: PathBuf,
    /// Account that the server runs as.
    pub(crate) account: Account,
}

/// Creates the data directory if it is missing, and returns its absolute path.
pub(crate) fn open_data_dir(data_dir: &Path) -> Result<PathBuf, Error> {
    if !data_dir.exists() {
        fs::create_dir_all(data_dir).map_err(Error::io("make the directory", data_dir))?;
    }
    data_dir
        .canonicalize()
        .map_err(Error::io("resolve", data_dir))
}

/// The lock of a data directory, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do: a process that is being started holds a copy of it until its
        // program replaces it, and the lock would outlive its owner by that moment.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks the data directory for the owner of the server. Returns none if another process (or another
/// instance in this one) holds the lock.
pub(crate) fn try_lock(data_dir: &Path) -> Result<Option<Lock>, Error> {
    let path = data_dir.join("postgres.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io("open", &path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(Error::Io {
            what: "lock",
            path,
            source: error.into(),
        }),
    }
}

/// Returns the cluster of a data directory, or the target of its link.
pub(crate) fn cluster_of(data_dir: &Path) -> PathBuf {
    let home = data_dir.join("postgres");
    match fs::read_link(&home) {
        // Joined, because the operator's link may be relative.
        Ok(target) => {
            let target = data_dir.join(target);
            target.canonicalize().unwrap_or(target)
        }
        Err(_) => home,
    }
}

impl Layout {
    /// Chooses the directories, and creates them and the link. The caller must hold the lock.
    pub(crate) fn prepare(data_dir: &Path) -> Result<Self, Error> {
        let home = data_dir.join("postgres");
        let mut cluster = cluster_of(data_dir);
        let account = Account::for_cluster(&cluster)?;
        let linked = cluster != home;
        // Such as a volume that is not mounted: a new cluster there would hide that all data are missing.
        if linked && !cluster.join("PG_VERSION").is_file() && !is_unfinished(&cluster) {
            return Err(Error::ClusterUnreachable {
                link: home,
                target: cluster,
            });
        }
        let at_home = let_through(account, data_dir)?;
        if !at_home && !linked {
            if home.exists() {
                return Err(Error::Unreachable {
                    cluster: home,
                    uid: account.uid(),
                });
            }
            cluster = relocate(&home)?;
        }
        let base = if at_home {
            data_dir.to_owned()
        } else {
            parent(&cluster).to_owned()
        };
        // Beside the cluster, because the account of the server reaches that directory, and perhaps not the data
        // directory.
        let socket_dir = short_socket_dir(base.join("postgres-run"), &cluster);
        make_socket_dir(&socket_dir, account)?;
        let cache_dir = if at_home {
            data_dir.to_owned()
        } else {
            PathBuf::from(SYSTEM_DIR)
        }
        .join("cache");
        Ok(Self {
            data_dir: data_dir.to_owned(),
            cluster,
            socket_dir,
            cache_dir,
            account,
        })
    }

    /// Returns the path of the server's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.data_dir.join("postgres.log")
    }

    /// Creates the cache directory, from which the server's account can run programs.
    pub(crate) fn open_cache(&self) -> Result<&Path, Error> {
        fs::create_dir_all(&self.cache_dir)
            .map_err(Error::io("make the directory", &self.cache_dir))?;
        let_through(self.account, &self.cache_dir)?;
        Ok(&self.cache_dir)
    }

    /// Marks the cluster as complete.
    pub(crate) fn finish(&self) {
        // Only clusters outside the data directory have the marker.
        let _ = fs::remove_file(parent(&self.cluster).join(UNFINISHED));
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn is_unfinished(cluster: &Path) -> bool {
    parent(cluster).join(UNFINISHED).is_file()
}

/// Returns whether the account can reach the directory. If only the directory's own mode denies it,
/// and this process owns the directory, the permission to pass (not to list) is added.
fn let_through(account: Account, directory: &Path) -> Result<bool, Error> {
    if account.is_barred_only_by(directory) {
        let metadata = fs::metadata(directory).map_err(Error::io("inspect", directory))?;
        if metadata.uid() == rustix::process::geteuid().as_raw() {
            // To pass a directory is enough: its names stay unreadable to the account.
            let mode = (metadata.mode() & 0o7777) | 0o011;
            tracing::info!(directory = %directory.display(), "letting PostgreSQL's user pass");
            fs::set_permissions(directory, Permissions::from_mode(mode))
                .map_err(Error::io("set the permissions of", directory))?;
        }
    }
    Ok(account.reaches(directory))
}

/// Creates a directory that the server's account can reach, and the link to it.
fn relocate(link: &Path) -> Result<PathBuf, Error> {
    let system = Path::new(SYSTEM_DIR);
    fs::create_dir_all(system).map_err(Error::io("make the directory", system))?;
    let system = &system
        .canonicalize()
        .map_err(Error::io("resolve", system))?;
    fs::set_permissions(system, Permissions::from_mode(0o755))
        .map_err(Error::io("set the permissions of", system))?;
    let place = tempfile::Builder::new()
        .prefix("cluster-")
        .permissions(Permissions::from_mode(0o711))
        .tempdir_in(system)
        .map_err(Error::io("make a directory in", system))?;
    // Independent of the umask.
    fs::set_permissions(place.path(), Permissions::from_mode(0o711))
        .map_err(Error::io("set the permissions of", place.path()))?;
    // Before the link: one that leads to neither a cluster nor this mark is refused, so a start
    // that is interrupted here could not be repeated.
    let mark = place.path().join(UNFINISHED);
    fs::write(&mark, link.as_os_str().as_bytes()).map_err(Error::io("write", &mark))?;
    let cluster = place.path().join("postgres");
    symlink(&cluster, link).map_err(Error::io("make the link", link))?;
    // From here on the link refers to the directory.
    let _ = place.keep();
    tracing::warn!(
        cluster = %cluster.display(),
        link = %link.display(),
        "PostgreSQL does not run as root, and its user cannot reach the data directory: \
         the database is stored elsewhere",
    );
    Ok(cluster)
}

/// Returns the preferred directory, or one in `/tmp` if the socket's path would be too long. The name
/// depends only on the cluster.
fn short_socket_dir(preferred: PathBuf, cluster: &Path) -> PathBuf {
    if preferred.as_os_str().len() + 1 + SOCKET_NAME.len() <= MAX_SOCKET_PATH {
        return preferred;
    }
    let digest = sha256_hex(cluster.as_os_str().as_bytes());
    Path::new("/tmp").join(format!("labdata-{digest:.16}"))
}

/// Creates the directory, which only the server's account (and root) may enter. A throwaway server
/// trusts every client that can enter.
fn make_socket_dir(path: &Path, account: Account) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return account.own(path),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(source) => {
            return Err(Error::Io {
                what: "make the directory",
                path: path.to_owned(),
                source,
            });
        }
    }
    let refuse = |reason: String| Error::SocketDirectory {
        path: path.to_owned(),
        reason,
    };
    // In /tmp anyone may have made a link or a directory of this name.
    let metadata = fs::symlink_metadata(path).map_err(Error::io("inspect", path))?;
    if !metadata.is_dir() {
        return Err(refuse("it is not a directory".to_owned()));
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() == own && own != account.uid() {
        account.own(path)?;
    } else if metadata.uid() != account.uid() {
        return Err(refuse(format!(
            "it belongs to the user with the id {}",
            metadata.uid()
        )));
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
        .map_err(Error::io("set the permissions of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_moves_the_socket_and_always_to_the_same_place() {
        let short = PathBuf::from("/srv/lab/postgres-run");
        assert_eq!(
            short_socket_dir(short.clone(), Path::new("/srv/lab/postgres")),
            short
        );
        let long = PathBuf::from("/srv")
            .join("x".repeat(90))
            .join("postgres-run");
        let cluster = long.with_file_name("postgres");
        let moved = short_socket_dir(long.clone(), &cluster);
        assert!(
            moved.starts_with("/tmp") && moved.as_os_str().len() < 40,
            "{moved:?}"
        );
        assert_eq!(moved, short_socket_dir(long, &cluster));
    }

    #[test]
    fn the_lock_is_held_once() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let first = try_lock(directory.path()).expect("lockable").expect("free");
        assert!(try_lock(directory.path()).expect("lockable").is_none());
        drop(first);
        assert!(try_lock(directory.path()).expect("lockable").is_some());
    }

    #[test]
    fn a_link_to_nowhere_is_not_taken_for_an_empty_database() {
        let directory = tempfile::tempdir().expect("temporary directory");
        symlink("/nowhere/postgres", directory.path().join("postgres")).expect("link");
        let error = Layout::prepare(directory.path()).expect_err("the cluster is gone");
        assert!(matches!(error, Error::ClusterUnreachable { .. }), "{error}");
    }

    #[test]
    fn a_file_in_place_of_the_socket_directory_is_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("postgres-run");
        fs::write(&path, "").expect("file");
        let error = make_socket_dir(&path, Account::Own).expect_err("not a directory");
        assert!(matches!(error, Error::SocketDirectory { .. }), "{error}");
    }
}
