//! Directories below the data directory.

use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink},
    },
    path::{Path, PathBuf},
};

use labdata_python_packages::CLIENT_WHEEL;
use sha2::{Digest, Sha256};

use crate::{
    accounts::{Account, AccountRegistry},
    blocking::blocking,
    dependency_cache::DependencyCache,
    error::SandboxError,
    file_system::{lock_file, remove},
    log_segments,
};

/// Directories of a sandbox.
#[derive(Debug)]
pub(crate) struct RunDirectories {
    jobs: PathBuf,
    /// Directory of this sandbox's workspaces.
    own: PathBuf,
    /// Held while this value exists. Directories without a held lock are removed by others.
    _lock: File,
}

/// Directories of one run: its script, its scratch directory, its log.
#[derive(Clone, Debug)]
pub struct Workspace {
    path: PathBuf,
}

impl Workspace {
    /// Returns the path of the script.
    #[must_use]
    pub fn script_path(&self) -> PathBuf {
        self.script().join("script.py")
    }

    /// Reads at most `max_bytes` of the log, whose length is `length`, from the first retained byte
    /// at or after `offset`. At least the first and the last
    /// [`LOG_SEGMENT_BYTES`](crate::LOG_SEGMENT_BYTES) are retained.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the file system fails.
    pub async fn read_log(
        &self,
        length: u64,
        offset: u64,
        max_bytes: usize,
    ) -> Result<log_segments::LogSlice, SandboxError> {
        let directory = self.log();
        blocking(move || {
            log_segments::read(&directory, length, offset, max_bytes)
                .map_err(|error| error.to_string())
        })
        .await
        .map_err(SandboxError::Unavailable)
    }

    /// Removes the workspace. Succeeds if it does not exist.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the file system fails.
    pub async fn remove(&self) -> Result<(), SandboxError> {
        let path = self.path.clone();
        blocking(move || remove(&path).map_err(|error| error.to_string()))
            .await
            .map_err(SandboxError::Unavailable)
    }

    /// Removes the scratch and temporary directories. The log stays until [`Workspace::remove`].
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] if the file system fails.
    pub async fn release_scratch(&self) -> Result<(), SandboxError> {
        let directories = [self.scratch(), self.temporary(), self.installation()];
        blocking(move || {
            directories
                .iter()
                .try_for_each(|directory| remove(directory))
                .map_err(|error| error.to_string())
        })
        .await
        .map_err(SandboxError::Unavailable)
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.path.join("script")
    }
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }
    /// Returns the home and `/tmp` of the installation, whose account differs from the script's.
    pub(crate) fn installation(&self) -> PathBuf {
        self.path.join("installation")
    }
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }
    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("root")
    }
}

impl RunDirectories {
    /// Creates the directories, and removes those of sandboxes that no longer exist.
    pub(crate) fn open(data_dir: &Path) -> io::Result<Self> {
        // A worker may be the first to use the directory. Accounts of scripts pass its new parents, too.
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<&Path> = data_dir.ancestors().take_while(is_missing).collect();
        for directory in missing.into_iter().rev() {
            create_passage(directory)?;
        }
        let_through(data_dir)?;
        let jobs = data_dir.join("jobs");
        let workers = jobs.join("workers");
        for directory in [&jobs, &workers, &jobs.join("tools")] {
            create_passage(directory)?;
        }
        // One sandbox at a time removes leftovers and creates its own directory.
        let opening = lock_file(&jobs.join("lock"))?;
        opening.lock()?;
        // Numbers are never reused while a directory of that number may still be removed.
        let next = remove_dead(&workers)?;
        let own = workers.join(next.to_string());
        let lock = lock_file(&own.with_extension("lock"))?;
        // Held until this process ends: by it others tell live workers from dead ones.
        lock.lock()?;
        create_passage(&own)?;
        Ok(Self {
            jobs,
            own,
            _lock: lock,
        })
    }

    /// Returns the directory of fetched programs.
    pub(crate) fn tools(&self) -> PathBuf {
        self.jobs.join("tools")
    }

    /// Returns the path of the Python client's wheel. Another client has another path, under which uv has
    /// nothing in its cache.
    pub(crate) fn client_wheel(&self) -> PathBuf {
        self.tools()
            .join(format!("labdata-client-{}", CLIENT_WHEEL.sha256))
            .join(CLIENT_WHEEL.file_name)
    }

    /// Writes the Python client's wheel, unless it exists. Several processes may do so at once.
    pub(crate) fn write_client_wheel(&self) -> io::Result<()> {
        let wheel = self.client_wheel();
        // The name has the hash, so a file that is there is the right one.
        if wheel.is_file() {
            return Ok(());
        }
        if let Some(directory) = wheel.parent() {
            create_passage(directory)?;
        }
        let mut file = tempfile::NamedTempFile::new_in(self.tools())?;
        file.write_all(CLIENT_WHEEL.bytes)?;
        // A temporary file is private, but the accounts of installations read the wheel.
        fs::set_permissions(file.path(), Permissions::from_mode(0o644))?;
        // Renamed into place, so that a concurrent run never sees half of it.
        file.persist(&wheel)?;
        Ok(())
    }

    /// Returns the directory of all jobs.
    pub(crate) fn jobs(&self) -> &Path {
        &self.jobs
    }

    /// Returns the directory that the scope's installations may write, created if missing, and its
    /// account. A cache whose account was given away is recreated.
    pub(crate) fn cache(
        &self,
        scope: &str,
        accounts: Option<&AccountRegistry>,
    ) -> io::Result<(PathBuf, Option<Account>)> {
        let all = self.jobs.join("cache");
        create_passage(&all)?;
        let cache = all.join(scope);
        // One process at a time, so that none sees a directory without its account.
        let creating = lock_file(&self.jobs.join("cache.lock"))?;
        creating.lock()?;
        create_directory(&cache, 0o755)?;
        let Some(accounts) = accounts else {
            return Ok((cache, None));
        };
        if let Some(account) = accounts.owner(&cache)? {
            return Ok((cache, Some(account)));
        }
        // A cache that another account wrote could hold prepared packages: it is not adopted.
        remove(&cache)?;
        create_directory(&cache, 0o755)?;
        let account = accounts.reserve(&cache)?;
        chown(&cache, Some(account.id), Some(account.id))?;
        Ok((cache, Some(account)))
    }

    /// Returns the dependencies in the cache of that scope.
    pub(crate) fn dependencies(&self, scope: &str) -> io::Result<DependencyCache> {
        let ready = self.jobs.join("ready");
        create_directory(&ready, 0o700)?;
        let own = ready.join(scope);
        create_directory(&own, 0o700)?;
        let lock = ready.join(format!("{scope}.lock"));
        let cache = self.jobs.join("cache").join(scope);
        Ok(DependencyCache::new(cache, own, lock))
    }

    /// Returns the dependencies of all scopes.
    pub(crate) fn all_dependencies(&self) -> io::Result<Vec<DependencyCache>> {
        let all = self.jobs.join("cache");
        if !all.is_dir() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(all)? {
            if let Some(scope) = entry?.file_name().to_str() {
                found.push(self.dependencies(scope)?);
            }
        }
        Ok(found)
    }

    /// Creates an environment of that Python with only the standard library, unless it exists. Packages
    /// installed for the system are hidden from scripts, and would slow their start.
    pub(crate) fn bare_environment(&self, python: &Path) -> io::Result<PathBuf> {
        let program = Sha256::digest(python.as_os_str().as_bytes());
        let all = self.own.join("python");
        let bare = all.join(base16ct::lower::encode_string(&program));
        if bare.exists() {
            return Ok(bare);
        }
        let bin = bare.join("bin");
        for directory in [&all, &bare, &bin] {
            create_directory(directory, 0o755)?;
        }
        for name in ["python", "python3"] {
            symlink(python, bin.join(name))?;
        }
        let home = python.parent().unwrap_or(Path::new("/usr/bin")).display();
        let configuration = bare.join("pyvenv.cfg");
        // A `pyvenv.cfg` makes Python believe in a virtual environment, which hides the machine's packages.
        fs::write(
            &configuration,
            format!("home = {home}\ninclude-system-site-packages = false\n"),
        )?;
        fs::set_permissions(&configuration, Permissions::from_mode(0o644))?;
        Ok(bare)
    }

    /// Returns the workspace of that name, which need not exist.
    pub(crate) fn workspace(&self, name: &str) -> Workspace {
        Workspace {
            path: self.own.join(name),
        }
    }
}

impl Drop for RunDirectories {
    fn drop(&mut self) {
        // Leftovers are removed when the next sandbox is opened.
        let _ = remove(&self.own);
    }
}

/// Removes the workspaces of sandboxes of this data directory whose program was killed. Opening a sandbox
/// does so as well, but that may be long after the start of a program.
///
/// # Errors
/// [`SandboxError::Unavailable`] if the file system fails.
pub async fn remove_leftovers(data_dir: &Path) -> Result<(), SandboxError> {
    let jobs = data_dir.join("jobs");
    blocking(move || {
        let remove = || {
            let workers = jobs.join("workers");
            if workers.is_dir() {
                let opening = lock_file(&jobs.join("lock"))?;
                // The lock under which sandboxes are opened: a workspace that another process makes now does not look
                // abandoned.
                opening.lock()?;
                remove_dead(&workers)?;
            }
            Ok(())
        };
        remove().map_err(|error: io::Error| format!("{}: {error}", jobs.display()))
    })
    .await
    .map_err(SandboxError::Unavailable)
}

/// Removes the directories whose lock is not held; returns the next free number of a directory.
fn remove_dead(workers: &Path) -> io::Result<u64> {
    let mut next = 0_u64;
    for entry in fs::read_dir(workers)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|name| name.to_str());
        next = next.max(number.and_then(|name| name.parse().ok()).unwrap_or(0) + 1);
        if path
            .extension()
            .is_some_and(|extension| extension == "lock")
        {
            match lock_file(&path)?.try_lock() {
                // The lock is free, so its worker is dead.
                Ok(()) => {
                    remove(&path.with_extension(""))?;
                    // After the directory, because only a lock file leads the next sandbox to what
                    // is left of it.
                    fs::remove_file(&path)?;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
    Ok(next)
}

/// Workspace whose directories exist, with the account of its processes.
#[derive(Debug)]
pub struct ActiveWorkspace {
    pub(crate) workspace: Workspace,
    /// Dedicated account, held as long as the workspace is active.
    pub(crate) account: Option<Account>,
}

impl ActiveWorkspace {
    /// Returns the path of the script.
    #[must_use]
    pub fn script_path(&self) -> PathBuf {
        self.workspace.script_path()
    }
}

impl Workspace {
    /// Writes a file that says what is installed in place of the script's metadata, and returns its path. The
    /// group can read it.
    pub(crate) fn write_for_installation(
        &self,
        name: &str,
        content: &str,
        group: Option<u32>,
    ) -> io::Result<PathBuf> {
        let path = self.script().join(name);
        write_for_group(&path, content, group)?;
        Ok(path)
    }

    /// Creates the directories for a script that runs as that account.
    pub(crate) fn create(&self, script: &str, account: Option<&Account>) -> io::Result<()> {
        create_passage(&self.path)?;
        let (directory, path) = (self.script(), self.script_path());
        // The run's account reads its script by its group. The worker stays the owner, so that no
        // script changes itself.
        create_directory(&directory, 0o750)?;
        let group = account.map(|account| account.id);
        write_for_group(&path, script, group)?;
        chown(&directory, None, group)?;
        // Closed to the run's account: the supervisor writes the log.
        for directory in [self.log(), self.root()] {
            create_directory(&directory, 0o700)?;
        }
        for directory in [self.scratch(), self.temporary()] {
            create_for_account(&directory, account)?;
        }
        Ok(())
    }
}

/// Creates a directory that only that account may enter.
pub(crate) fn create_for_account(directory: &Path, account: Option<&Account>) -> io::Result<()> {
    create_directory(directory, 0o700)?;
    match account {
        Some(account) => chown(directory, Some(account.id), Some(account.id)),
        None => Ok(()),
    }
}

/// Writes a file that the group can read.
fn write_for_group(path: &Path, text: &str, group: Option<u32>) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o640))?;
    chown(path, None, group)
}

/// Creates a directory through which accounts of scripts reach theirs, if the platform is root. They
/// cannot list it.
fn create_passage(directory: &Path) -> io::Result<()> {
    let is_root = nix::unistd::geteuid().is_root();
    // Accounts of runs pass through without listing what is there.
    let mode = if is_root { 0o711 } else { 0o700 };
    if !create_directory(directory, mode)? {
        // An earlier version may have created it with another mode.
        fs::set_permissions(directory, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Lets the accounts of scripts pass a directory that this process owns, if it is root: with its umask
/// the platform creates it closed. They cannot list it.
fn let_through(directory: &Path) -> io::Result<()> {
    const PASS: u32 = 0o011;
    let metadata = fs::metadata(directory)?;
    let mode = metadata.mode() & 0o7777;
    if nix::unistd::geteuid().is_root() && metadata.uid() == 0 && mode & PASS != PASS {
        fs::set_permissions(directory, Permissions::from_mode(mode | PASS))?;
    }
    Ok(())
}

/// Creates a directory with exactly that mode. Returns false if it existed.
fn create_directory(directory: &Path, mode: u32) -> io::Result<bool> {
    match DirBuilder::new().mode(mode).create(directory) {
        Ok(()) => {
            // Independent of the umask.
            fs::set_permissions(directory, Permissions::from_mode(mode))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_dead_sandbox_are_removed_and_those_of_others_are_not() {
        let data = tempfile::tempdir().unwrap();
        let living = RunDirectories::open(data.path()).unwrap();
        let run = living.workspace("run");
        run.create("print()", None).unwrap();
        let workers = data.path().join("jobs/workers");
        fs::create_dir_all(workers.join("77/run/scratch/deep")).unwrap();
        fs::write(workers.join("77.lock"), "").unwrap();
        let other = RunDirectories::open(data.path()).unwrap();
        assert!(run.scratch().is_dir(), "its sandbox exists");
        assert!(!workers.join("77").exists());
        let path = other.workspace("run").path;
        assert_ne!(path, run.path);
        drop(living);
        assert!(!run.path.exists());
    }
}
