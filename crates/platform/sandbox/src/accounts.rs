//! Allocation of accounts (user ids) to sandboxed processes.
//!
//! Every account has a file in a directory that all platforms of a machine share. A shared lock on
//! the file means that the account is in use. The sandbox holds it, and so does each supervisor, so
//! that an account becomes free only after the last of its processes, even if the platform was
//! killed. An account that owns a directory is reserved: its file contains the directory's path.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read, Write},
    ops::Range,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

/// Registry of a machine.
const MACHINE_REGISTRY: &str = "/var/lib/labdata/accounts";

/// First account of all blocks, far above the accounts of users and containers.
const FIRST_ACCOUNT: u32 = 1_500_000_000;

/// Number of blocks. The host name selects one: containers with separate file systems, which cannot
/// see each other's locks, use different blocks.
const BLOCKS: u32 = 8192;

/// Number of accounts in a block.
const BLOCK_SIZE: u32 = 65_536;

/// Number of accounts at the start of a block that are allocated to runs. The rest are reserved for
/// directories.
const RUN_ACCOUNTS: u32 = 4096;

/// Accounts of this machine.
#[derive(Debug)]
pub(crate) struct AccountRegistry {
    directory: PathBuf,
    block: u32,
}

/// Account that no other run of this machine uses while this value, or a supervisor that was
/// started with it, exists.
#[derive(Debug)]
pub(crate) struct Account {
    /// User id and group id.
    pub(crate) id: u32,
    /// File whose shared lock retains the account in use.
    pub(crate) file: PathBuf,
    _lock: File,
}

impl AccountRegistry {
    /// Opens the registry of this machine, or that of the data directory if the machine's directory
    /// cannot be created.
    pub(crate) fn open(jobs: &Path) -> io::Result<Self> {
        let machine = Path::new(MACHINE_REGISTRY);
        // Without a common directory two platforms of a machine could allocate the same account.
        Self::at(machine).or_else(|error| {
            tracing::warn!(
                directory = MACHINE_REGISTRY,
                %error,
                "accounts of scripts are allocated within this data directory only"
            );
            Self::at(&jobs.join("accounts"))
        })
    }

    /// Opens the registry in that directory.
    fn at(directory: &Path) -> io::Result<Self> {
        if let Some(parent) = directory.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(parent)?;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let registry = Self {
            directory: directory.to_owned(),
            block: block_of_host(),
        };
        // Finds out now, not at the first run, that the directory cannot be used.
        registry.lock()?;
        Ok(registry)
    }

    /// Allocates an account for a run.
    pub(crate) fn allocate(&self) -> io::Result<Account> {
        let _registry = self.lock()?;
        self.take_first(0..RUN_ACCOUNTS, None)
    }

    /// Returns the account that owns a directory, if it is reserved for it or free.
    pub(crate) fn owner(&self, directory: &Path) -> io::Result<Option<Account>> {
        let directory = directory.canonicalize()?;
        // The directory's owner is the reservation's record that survives a lost registry.
        let owner = fs::metadata(&directory)?.uid();
        let offset = owner
            .checked_sub(self.block)
            .filter(|offset| (RUN_ACCOUNTS..BLOCK_SIZE).contains(offset));
        let Some(offset) = offset else {
            return Ok(None);
        };
        let _registry = self.lock()?;
        let reserved = self.reservation(self.block + offset)?;
        if reserved.as_deref() == Some(&*directory) {
            self.hold(owner, Some(&directory)).map(Some)
        } else {
            // The registry was lost or the account reused: take it again, unless someone runs under it.
            self.take(owner, Some(&directory))
        }
    }

    /// Reserves an account for a directory that has none.
    pub(crate) fn reserve(&self, directory: &Path) -> io::Result<Account> {
        let directory = directory.canonicalize()?;
        let _registry = self.lock()?;
        self.take_first(RUN_ACCOUNTS..BLOCK_SIZE, Some(&directory))
    }

    /// Excludes other allocations while the returned file is open.
    fn lock(&self) -> io::Result<File> {
        let file = open(&self.directory.join("registry.lock"))?;
        // The kernel releases the lock with the file, also after `kill -9`.
        file.lock()?;
        Ok(file)
    }

    fn file(&self, id: u32) -> PathBuf {
        self.directory.join(id.to_string())
    }

    fn take_first(&self, offsets: Range<u32>, directory: Option<&Path>) -> io::Result<Account> {
        for offset in offsets {
            if let Some(account) = self.take(self.block + offset, directory)? {
                return Ok(account);
            }
        }
        Err(io::Error::other(format!(
            "all accounts in {} are in use",
            self.directory.display()
        )))
    }

    /// Takes an account, if it is neither in use nor reserved.
    fn take(&self, id: u32, directory: Option<&Path>) -> io::Result<Option<Account>> {
        match open(&self.file(id))?.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The exclusive lock is released here; the registry's lock excludes other allocations.
        let reserved = self.reservation(id)?;
        if reserved.is_some_and(|directory| directory.exists()) {
            return Ok(None);
        }
        self.hold(id, directory).map(Some)
    }

    /// Returns the directory for which an account is reserved, which may have been deleted.
    fn reservation(&self, id: u32) -> io::Result<Option<PathBuf>> {
        let mut path = Vec::new();
        open(&self.file(id))?.read_to_end(&mut path)?;
        Ok((!path.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(path))))
    }

    /// Marks an account as in use, and writes or clears its reservation.
    fn hold(&self, id: u32, directory: Option<&Path>) -> io::Result<Account> {
        let file = self.file(id);
        let mut lock = open(&file)?;
        // Shared: the supervisor adds its own, so the account outlives the platform with its processes.
        lock.lock_shared()?;
        lock.set_len(0)?;
        if let Some(directory) = directory {
            lock.write_all(directory.as_os_str().as_bytes())?;
        }
        Ok(Account {
            id,
            file,
            _lock: lock,
        })
    }
}

/// Returns the first account of this host's block.
fn block_of_host() -> u32 {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    let block = hasher.finish() % u64::from(BLOCKS);
    FIRST_ACCOUNT + u32::try_from(block).unwrap_or_default() * BLOCK_SIZE
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        // The content is a reservation.
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    fn registry() -> (tempfile::TempDir, AccountRegistry) {
        let directory = tempfile::tempdir().unwrap();
        let registry = AccountRegistry::at(&directory.path().join("accounts")).unwrap();
        (directory, registry)
    }

    #[test]
    fn two_processes_never_share_an_account() {
        let (directory, one) = registry();
        let other = AccountRegistry::at(&directory.path().join("accounts")).unwrap();
        let first = one.allocate().unwrap();
        let second = other.allocate().unwrap();
        let third = one.allocate().unwrap();
        let mut ids = [first.id, second.id, third.id];
        ids.sort_unstable();
        assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
        assert!(ids[0] >= FIRST_ACCOUNT && ids[2] < FIRST_ACCOUNT + BLOCKS * BLOCK_SIZE);
    }

    #[test]
    fn an_account_is_free_after_its_last_holder() {
        let (_directory, registry) = registry();
        let account = registry.allocate().unwrap();
        let id = account.id;
        // A supervisor opens the file itself.
        let supervisor = File::open(&account.file).unwrap();
        supervisor.lock_shared().unwrap();
        drop(account);
        assert_ne!(registry.allocate().unwrap().id, id);
        drop(supervisor);
        assert_eq!(registry.allocate().unwrap().id, id);
    }

    #[test]
    fn a_reserved_account_stays_with_its_directory() {
        if !nix::unistd::geteuid().is_root() {
            return; // Only root can change owners.
        }
        let (place, registry) = registry();
        let (one, other) = (place.path().join("one"), place.path().join("other"));
        for directory in [&one, &other] {
            fs::create_dir(directory).unwrap();
            assert!(registry.owner(directory).unwrap().is_none());
            let account = registry.reserve(directory).unwrap();
            chown(directory, Some(account.id), None).unwrap();
        }
        let owners = [&one, &other].map(|it| registry.owner(it).unwrap().unwrap().id);
        assert_ne!(owners[0], owners[1]);
        let again = registry.owner(&one).unwrap().unwrap();
        assert_eq!(again.id, owners[0]);

        // A directory with the account of another one gets no account.
        chown(&other, Some(owners[0]), None).unwrap();
        assert!(registry.owner(&other).unwrap().is_none());

        // The reservation ends with its directory.
        drop(again);
        fs::remove_dir(&one).unwrap();
        assert_eq!(registry.owner(&other).unwrap().unwrap().id, owners[0]);
    }
}
