//! Directories below the data directory.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use labdata_domain::ids::OrganizationId;
use labdata_ports::runner::RunId;

/// Where this runner keeps things.
#[derive(Debug)]
pub(crate) struct Places {
    jobs: PathBuf,
    /// The runs of this runner.
    own: PathBuf,
    /// Held as long as this lives: others take what no living runner holds for remains.
    _lock: File,
}

/// The directories of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunPlaces {
    /// Of all of it.
    pub(crate) whole: PathBuf,
}

impl RunPlaces {
    pub(crate) fn script(&self) -> PathBuf {
        self.whole.join("script")
    }
    pub(crate) fn scratch(&self) -> PathBuf {
        self.whole.join("scratch")
    }
    pub(crate) fn temporary(&self) -> PathBuf {
        self.whole.join("tmp")
    }
    /// What `/tmp` and the home are for the preparation, which has another account than the script.
    pub(crate) fn preparation(&self) -> PathBuf {
        self.whole.join("preparation")
    }
    pub(crate) fn log(&self) -> PathBuf {
        self.whole.join("log")
    }
    pub(crate) fn root(&self) -> PathBuf {
        self.whole.join("root")
    }
}

impl Places {
    /// Makes the directories and removes what runners that died have left.
    pub(crate) fn open(data_dir: &Path) -> io::Result<Self> {
        let jobs = data_dir.join("jobs");
        let workers = jobs.join("workers");
        for directory in [&jobs, &workers, &jobs.join("tools")] {
            make(directory, 0o700)?;
        }
        // One runner at a time looks for remains and makes its own place.
        let opening = lock_file(&jobs.join("lock"))?;
        opening.lock()?;
        let mut next = 0_u64;
        for entry in fs::read_dir(&workers)? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|name| name.to_str());
            next = next.max(number.and_then(|name| name.parse().ok()).unwrap_or(0) + 1);
            if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                match lock_file(&path)?.try_lock() {
                    Ok(()) => {
                        remove(&path.with_extension(""))?;
                        fs::remove_file(&path)?;
                    }
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        }
        let own = workers.join(next.to_string());
        let lock = lock_file(&own.with_extension("lock"))?;
        lock.lock()?;
        make(&own, 0o700)?;
        Ok(Self {
            jobs,
            own,
            _lock: lock,
        })
    }

    /// Where fetched programs are.
    pub(crate) fn tools(&self) -> PathBuf {
        self.jobs.join("tools")
    }

    /// What the organization's preparations may write, made if it is missing.
    pub(crate) fn cache(
        &self,
        organization: OrganizationId,
        owner: Option<u32>,
    ) -> io::Result<PathBuf> {
        let cache = self.jobs.join("cache");
        make(&cache, 0o700)?;
        let own = cache.join(organization.to_string());
        if make(&own, 0o755)?
            && let Some(owner) = owner
        {
            chown(&own, Some(owner), Some(owner))?;
        }
        Ok(own)
    }

    /// The file that says that an environment is whole. No script can write it.
    pub(crate) fn ready(&self, organization: OrganizationId, name: &str) -> io::Result<PathBuf> {
        let ready = self.jobs.join("ready");
        make(&ready, 0o700)?;
        let own = ready.join(organization.to_string());
        make(&own, 0o700)?;
        Ok(own.join(name))
    }

    /// Makes an environment of that Python with the standard library and nothing else: what
    /// happens to be installed for it is not for scripts, and slows their start.
    pub(crate) fn bare_environment(&self, python: &Path) -> io::Result<PathBuf> {
        let bare = self.own.join("python");
        let bin = bare.join("bin");
        for directory in [&bare, &bin] {
            make(directory, 0o755)?;
        }
        for name in ["python", "python3"] {
            symlink(python, bin.join(name))?;
        }
        let home = python.parent().unwrap_or(Path::new("/usr/bin")).display();
        let configuration = bare.join("pyvenv.cfg");
        fs::write(
            &configuration,
            format!("home = {home}\ninclude-system-site-packages = false\n"),
        )?;
        fs::set_permissions(&configuration, Permissions::from_mode(0o644))?;
        Ok(bare)
    }

    /// Where a run is.
    pub(crate) fn run(&self, run: RunId) -> RunPlaces {
        RunPlaces {
            whole: self.own.join(run.to_string()),
        }
    }

    /// A place for a try of this runner's own.
    pub(crate) fn trial(&self, name: &str) -> RunPlaces {
        RunPlaces {
            whole: self.own.join(name),
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // What cannot be removed now, the next runner does.
        let _ = remove(&self.own);
    }
}

impl RunPlaces {
    /// Makes the directories of a run, whose script runs as that account.
    pub(crate) fn make(&self, script: &str, account: Option<u32>) -> io::Result<()> {
        make(&self.whole, 0o700)?;
        // Readable for the account, which only ever sees it in a file system of its own.
        make(&self.script(), 0o755)?;
        let path = self.script().join("script.py");
        fs::write(&path, script)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        for directory in [self.log(), self.root()] {
            make(&directory, 0o700)?;
        }
        for directory in [self.scratch(), self.temporary()] {
            make_for(&directory, account)?;
        }
        Ok(())
    }
}

/// Makes a directory of that account's, closed to others.
pub(crate) fn make_for(directory: &Path, account: Option<u32>) -> io::Result<()> {
    make(directory, 0o700)?;
    match account {
        Some(account) => chown(directory, Some(account), Some(account)),
        None => Ok(()),
    }
}

/// Makes a directory of exactly that mode; false when it was there.
fn make(directory: &Path, mode: u32) -> io::Result<bool> {
    match DirBuilder::new().mode(mode).create(directory) {
        Ok(()) => {
            // Whatever the umask is.
            fs::set_permissions(directory, Permissions::from_mode(mode))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Removes a directory with all that is in it, also below directories that a script has closed.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(directory)?;
            fs::remove_dir_all(directory)
        }
        answer => answer,
    }
}

fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remains_of_a_runner_that_died_are_removed_and_those_of_others_kept() {
        let data = tempfile::tempdir().unwrap();
        let living = Places::open(data.path()).unwrap();
        let run = living.trial("run");
        run.make("print()", None).unwrap();
        let workers = data.path().join("jobs/workers");
        fs::create_dir_all(workers.join("77/run/scratch/deep")).unwrap();
        fs::write(workers.join("77.lock"), "").unwrap();
        let other = Places::open(data.path()).unwrap();
        assert!(run.scratch().is_dir(), "its runner lives");
        assert!(!workers.join("77").exists());
        let place = other.trial("run").whole;
        assert_ne!(place, run.whole);
        drop(living);
        assert!(!run.whole.exists());
    }

    #[test]
    fn directories_that_a_script_has_closed_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let closed = data.path().join("scratch/closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        remove(&data.path().join("scratch")).unwrap();
        assert!(!data.path().join("scratch").exists());
    }
}
