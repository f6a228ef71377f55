//! Installed dependencies of one scope, whose size is bounded by eviction.
//!
//! An environment is complete when a marker file says so, which no sandboxed process can write. A
//! shared lock on the marker means that a script uses the environment; the marker's time is that of
//! the last use. A lock of the scope is shared by installations and exclusive to eviction. A lock of the
//! environment is exclusive to the one installation that writes it, whichever process it belongs to.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use nix::sys::{stat::futimens, time::TimeSpec};

use crate::file_system::{lock_file, remove};

/// Name of the directory of environments in a cache. Everything else there is uv's.
const ENVIRONMENTS: &str = "envs";

/// Installed dependencies of one scope. All functions block.
#[derive(Clone, Debug)]
pub(crate) struct DependencyCache {
    /// Directory that installations of the scope may write.
    cache: PathBuf,
    /// Directory of the markers.
    ready: PathBuf,
    lock: PathBuf,
}

/// Returns true if a complete environment of the scope below that data directory has a package, by the name of its
/// module. Reads only. Blocks.
#[must_use]
pub fn has_package(data_dir: &Path, scope: &str, module: &str) -> bool {
    let jobs = data_dir.join("jobs");
    let environments = jobs.join("cache").join(scope).join(ENVIRONMENTS);
    let markers = fs::read_dir(jobs.join("ready").join(scope));
    markers.into_iter().flatten().flatten().any(|marker| {
        let libraries = fs::read_dir(environments.join(marker.file_name()).join("lib"));
        let mut libraries = libraries.into_iter().flatten().flatten();
        libraries.any(|library| library.path().join("site-packages").join(module).is_dir())
    })
}

/// Use of an environment, which is not evicted while this value or a clone exists.
#[derive(Clone, Debug)]
pub(crate) struct EnvironmentUse {
    _marker: Arc<File>,
}

/// Installation under way: nothing of its scope is evicted, and no other process installs the same environment.
#[derive(Debug)]
pub(crate) struct InstallationLock {
    _scope: File,
    _environment: File,
}

/// Result of the attempt to begin an installation.
#[derive(Debug)]
pub(crate) enum InstallationStart {
    /// The environment was completed in the meantime.
    Installed(EnvironmentUse),
    /// The environment is the caller's to install.
    Begun(InstallationLock),
    /// Another installation of the environment is under way, perhaps by another process.
    Busy,
}

impl DependencyCache {
    /// The cache in that directory, with existing directories for markers and locks.
    pub(crate) const fn new(cache: PathBuf, ready: PathBuf, lock: PathBuf) -> Self {
        Self { cache, ready, lock }
    }

    /// Returns the directory that installations may write.
    pub(crate) fn directory(&self) -> &Path {
        &self.cache
    }

    /// Returns the directory of an environment, which need not exist.
    pub(crate) fn environment(&self, name: &str) -> PathBuf {
        self.cache.join(ENVIRONMENTS).join(name)
    }

    /// Begins to use an environment. `None` if it is not complete.
    pub(crate) fn use_environment(&self, name: &str) -> io::Result<Option<EnvironmentUse>> {
        // Eviction does not take the environment between the check and the lock.
        let _scope = self.share_scope()?;
        self.use_complete(name)
    }

    /// Begins the installation of an environment, unless another one of it is under way. Waits for the end
    /// of an eviction.
    pub(crate) fn begin_installation(&self, name: &str) -> io::Result<InstallationStart> {
        // Before the lock of the environment, whose file an eviction removes.
        let scope = self.share_scope()?;
        let environment = lock_file(&self.environment_lock(name))?;
        match environment.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(InstallationStart::Busy),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The caller may have waited for another installation, which succeeded.
        Ok(match self.use_complete(name)? {
            Some(in_use) => InstallationStart::Installed(in_use),
            None => InstallationStart::Begun(InstallationLock {
                _scope: scope,
                _environment: environment,
            }),
        })
    }

    /// Begins to use an environment, while the scope is locked. `None` if it is not complete.
    fn use_complete(&self, name: &str) -> io::Result<Option<EnvironmentUse>> {
        let marker = self.ready.join(name);
        // The directory is writable by the account of installations, so the marker alone proves
        // nothing.
        if !marker.is_file() || !self.environment(name).is_dir() {
            return Ok(None);
        }
        hold(&marker).map(Some)
    }

    /// Waits for the end of an eviction, and keeps others from beginning.
    fn share_scope(&self) -> io::Result<File> {
        let lock = lock_file(&self.lock)?;
        lock.lock_shared()?;
        Ok(lock)
    }

    fn environment_lock(&self, name: impl AsRef<Path>) -> PathBuf {
        self.ready.join(name).with_extension("lock")
    }

    /// Marks an environment as complete and begins to use it.
    pub(crate) fn complete(
        &self,
        name: &str,
        _installation: InstallationLock,
    ) -> io::Result<EnvironmentUse> {
        // The lock of the installation is released after this, so no eviction takes what was just
        // installed.
        hold(&self.ready.join(name))
    }

    /// Retains the cache below `quota` bytes: one of more than three quarters is reduced to a half. What uv
    /// can fetch again goes first, then the environments that were not used for the longest time.
    /// Spares environments in use, and does nothing during an installation.
    pub(crate) fn evict(&self, quota: u64) -> io::Result<()> {
        let lock = lock_file(&self.lock)?;
        // While something is installed the eviction is left to the next one, rather than waited for.
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let before = size_of(&self.cache);
        // Between the two marks (three quarters, a half) evictions are rare and each one frees enough.
        if before <= quota / 4 * 3 {
            return Ok(());
        }
        let environments = self.cache.join(ENVIRONMENTS);
        for entry in fs::read_dir(&self.cache)? {
            let path = entry?.path();
            // An installation may have left anything, also a link in place of a directory.
            if path != environments || !is_directory(&path) {
                remove_any(&path)?;
            }
        }
        let mut size = size_of(&self.cache);
        for name in self.least_recently_used()? {
            if size <= quota / 2 {
                break;
            }
            if self.remove_environment(&name)? {
                size = size_of(&self.cache);
            }
        }
        tracing::info!(
            cache = %self.cache.display(),
            before,
            after = size,
            "removed dependencies of scripts"
        );
        Ok(())
    }

    /// Lists the environments, incomplete ones first.
    fn least_recently_used(&self) -> io::Result<Vec<PathBuf>> {
        let environments = self.cache.join(ENVIRONMENTS);
        if !environments.is_dir() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(environments)? {
            let name = PathBuf::from(entry?.file_name());
            let marker = fs::metadata(self.ready.join(&name));
            let used_at = marker.and_then(|marker| marker.modified());
            found.push((used_at.unwrap_or(SystemTime::UNIX_EPOCH), name));
        }
        // An environment without a marker was never completed: the epoch puts it first.
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, name)| name).collect())
    }

    /// Removes an environment. Returns false if it is in use.
    fn remove_environment(&self, name: &Path) -> io::Result<bool> {
        let marker = self.ready.join(name);
        if let Ok(file) = File::open(&marker) {
            match file.try_lock() {
                Ok(()) => fs::remove_file(&marker)?,
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        // After the marker, because an environment that is partly removed must not count as
        // complete.
        remove_any(&self.cache.join(ENVIRONMENTS).join(name))?;
        // No one else holds it: installations share the lock of the scope, which the eviction has to itself.
        match fs::remove_file(self.environment_lock(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        }
    }
}

/// Notes the use of an environment and locks its marker.
fn hold(marker: &Path) -> io::Result<EnvironmentUse> {
    let file = lock_file(marker)?;
    file.lock_shared()?;
    // The time of the marker is the time of the last use: access times are often switched off.
    futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)?;
    Ok(EnvironmentUse {
        _marker: Arc::new(file),
    })
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Removes a file, a link, or a directory tree.
fn remove_any(path: &Path) -> io::Result<()> {
    if is_directory(path) {
        remove(path)
    } else {
        fs::remove_file(path)
    }
}

/// Returns the space of a directory tree in bytes. Files with several names count once.
fn size_of(directory: &Path) -> u64 {
    let mut pending = vec![directory.to_owned()];
    let mut counted = BTreeSet::new();
    let mut total = 0_u64;
    while let Some(path) = pending.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        // uv links the files of its cache into the environments, so most have several names.
        if found.nlink() == 1 || found.is_dir() || counted.insert((found.dev(), found.ino())) {
            total = total.saturating_add(found.blocks() * 512);
        }
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.map(|entry| entry.path()));
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, time::Duration};

    use super::*;

    const MIB: u64 = 1 << 20;

    struct Scope {
        place: tempfile::TempDir,
        cache: DependencyCache,
    }

    impl Scope {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let [cache, ready] = ["cache", "ready"].map(|name| {
                let directory = place.path().join(name);
                fs::create_dir(&directory).unwrap();
                directory
            });
            let cache = DependencyCache::new(cache, ready, place.path().join("lock"));
            Self { place, cache }
        }

        /// Installs an environment of that size, last used that many hours ago.
        fn install(&self, name: &str, mebibytes: u64, hours: u64) {
            let installation = self.begin(name);
            self.write(&format!("envs/{name}/module"), mebibytes);
            drop(self.cache.complete(name, installation).unwrap());
            let used_at = SystemTime::UNIX_EPOCH + Duration::from_hours(1000 - hours);
            let marker = File::options()
                .write(true)
                .open(self.cache.ready.join(name))
                .unwrap();
            marker.set_modified(used_at).unwrap();
        }

        fn begin(&self, name: &str) -> InstallationLock {
            match self.cache.begin_installation(name).unwrap() {
                InstallationStart::Begun(lock) => lock,
                other => panic!("{other:?}"),
            }
        }

        fn write(&self, path: &str, mebibytes: u64) {
            let path = self.cache.cache.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let length = usize::try_from(mebibytes * MIB).unwrap();
            fs::write(path, vec![1; length]).unwrap();
        }

        fn is_ready(&self, name: &str) -> bool {
            self.cache.use_environment(name).unwrap().is_some()
        }
    }

    #[test]
    fn a_hoard_of_dependencies_is_evicted_least_recently_used_first() {
        let scope = Scope::new();
        scope.install("old", 3, 3);
        scope.install("older", 3, 4);
        scope.install("new", 3, 1);
        scope.write("uv/wheel", 3);
        scope.cache.evict(17 * MIB).unwrap();
        assert!(scope.cache.cache.join("uv/wheel").exists(), "it fits");

        // Twelve of fifteen: down to half. uv's files go first, then one environment.
        scope.cache.evict(15 * MIB).unwrap();
        assert!(!scope.cache.cache.join("uv").exists());
        assert!(!scope.is_ready("older") && !scope.cache.environment("older").exists());
        assert!(scope.is_ready("old") && scope.is_ready("new"));
    }

    #[test]
    fn an_environment_in_use_and_a_cache_during_an_installation_are_spared() {
        let scope = Scope::new();
        scope.install("used", 3, 9);
        scope.install("idle", 3, 1);
        let used = scope.cache.use_environment("used").unwrap().unwrap();
        let installation = scope.begin("new");
        scope.cache.evict(MIB).unwrap();
        assert!(scope.is_ready("idle"));
        drop(installation);
        scope.cache.evict(MIB).unwrap();
        assert!(scope.is_ready("used") && !scope.is_ready("idle"));
        drop(used);
        scope.cache.evict(MIB).unwrap();
        assert!(!scope.is_ready("used"));
    }

    #[test]
    fn an_environment_is_installed_by_one_at_a_time() {
        let scope = Scope::new();
        let first = scope.begin("one");
        let again = || scope.cache.begin_installation("one").unwrap();
        assert!(matches!(again(), InstallationStart::Busy));
        drop(scope.begin("other"));
        // The first one fails, and the second one may try.
        drop(first);
        let second = scope.begin("one");
        scope.write("envs/one/module", 1);
        drop(scope.cache.complete("one", second).unwrap());
        let InstallationStart::Installed(in_use) = again() else {
            panic!("it is installed");
        };
        drop(in_use);
        scope.cache.evict(1).unwrap();
        // Only the lock of the other one, which has no environment.
        assert_eq!(fs::read_dir(&scope.cache.ready).unwrap().count(), 1);
        drop(scope.begin("one"));
    }

    #[test]
    fn a_link_that_an_installation_left_is_removed_and_not_followed() {
        let scope = Scope::new();
        let outside = scope.place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "").unwrap();
        symlink(&outside, scope.cache.cache.join("envs")).unwrap();
        symlink(&outside, scope.cache.cache.join("uv")).unwrap();
        scope.write("junk", 2);
        scope.cache.evict(MIB).unwrap();
        assert_eq!(fs::read_dir(&scope.cache.cache).unwrap().count(), 0);
        assert!(outside.join("precious").exists());
    }

    #[test]
    fn files_with_several_names_count_once() {
        let scope = Scope::new();
        scope.write("uv/wheel", 3);
        scope.install("one", 0, 0);
        let (wheel, linked) = (
            scope.cache.cache.join("uv/wheel"),
            scope.cache.environment("one").join("linked"),
        );
        fs::hard_link(wheel, linked).unwrap();
        let size = size_of(&scope.cache.cache);
        assert!((3 * MIB..4 * MIB).contains(&size), "{size}");
    }
}
