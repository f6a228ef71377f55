//! Files that become visible only when they are complete.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use labdata_domain::files::StoredBytes;

use crate::reading::crc32c;

/// Bytes between two requests to the system to start writing to the disk, which keep the last sync
/// short.
const WRITE_BACK_BYTES: u64 = 8 * 1024 * 1024;

/// A file in the `incoming` directory, removed on drop. A published file has another name by then.
pub(crate) struct Incoming {
    path: PathBuf,
    file: File,
    digest: Digest,
    size: u64,
    /// Bytes that the system was asked to write to the disk.
    written_back: u64,
}

impl Incoming {
    /// Creates the file.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        injected::call("create")?;
        let file = OpenOptions::new()
            .write(true)
            // Names of other processes may collide; writing into another's upload would mix both.
            .create_new(true)
            .open(&path)?;
        // Locked until the file is closed. On file systems without locks, the sweeper goes by age.
        drop(file.lock());
        if !has_name(&file)? {
            // A sweeper removed it; the caller tries another name.
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(Self {
            path,
            file,
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            size: 0,
            written_back: 0,
        })
    }

    /// Appends chunks. Blocks.
    pub(crate) fn write(&mut self, chunks: &[Bytes]) -> io::Result<()> {
        for chunk in chunks {
            self.digest.update(chunk);
            injected::call("write")?;
            self.file.write_all(chunk)?;
            self.size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        }
        // Otherwise gigabytes of unwritten pages would wait for the last sync.
        if self.size - self.written_back >= WRITE_BACK_BYTES {
            start_write_back(&self.file, self.written_back, self.size);
            self.written_back = self.size;
        }
        Ok(())
    }

    /// Makes the file durable and gives it its path. Blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the path is taken.
    pub(crate) fn publish(&self, root: &Path, destination: &Path) -> io::Result<StoredBytes> {
        // Before the link: a name must never lead to content that a crash could still lose.
        injected::call("sync the file")?;
        self.file.sync_all()?;
        let stored = StoredBytes {
            size: self.size,
            crc32c: crc32c(&self.digest)?,
        };
        let directory = destination.parent().unwrap_or(root);
        injected::call("make the directory")?;
        fs::create_dir_all(directory)?;
        injected::call("link")?;
        // A rename would replace an object that is there; a link fails instead.
        fs::hard_link(&self.path, destination)?;
        // Directories above may be new, created by this call or by a concurrent one.
        let above = directory.ancestors();
        let synced = above
            .take_while(|above| above.starts_with(root))
            .try_for_each(sync_directory);
        if synced.is_err() {
            // The caller is refused, so nothing may be left to see: a repeated upload would meet an object.
            drop(fs::remove_file(destination));
        }
        synced.map(|()| stored)
    }
}

impl Incoming {
    /// Checks that the file system supports hard links.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let mut second = self.path.clone().into_os_string();
        second.push(".link");
        // Left by a probe that was killed in between.
        drop(fs::remove_file(&second));
        fs::hard_link(&self.path, &second)?;
        fs::remove_file(second)
    }
}

/// Removes the file of an upload that no process writes; returns true if it did.
pub(crate) fn remove_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    // The writer's lock ends with its process, however that ends.
    file.try_lock().is_ok() && fs::remove_file(path).is_ok()
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // On failure the sweeper removes it.
        drop(fs::remove_file(&self.path));
    }
}

/// Asks the system to start writing a range to the disk, without waiting: on Linux `DontNeed` does
/// that to unwritten pages. The last sync reports errors of earlier writes.
#[cfg(target_os = "linux")]
fn start_write_back(file: &File, from: u64, to: u64) {
    use rustix::fs::{Advice, fadvise};
    let length = std::num::NonZeroU64::new(to - from);
    let _ = fadvise(file, from, length, Advice::DontNeed);
}

/// Does nothing: on other systems the last sync writes everything.
#[cfg(not(target_os = "linux"))]
fn start_write_back(_file: &File, _from: u64, _to: u64) {}

/// Returns true if an open file still has a name.
#[cfg(unix)]
fn has_name(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() > 0)
}

/// Returns true: other systems do not remove an open file.
#[cfg(not(unix))]
fn has_name(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// Makes the names in a directory durable.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    injected::call("sync a directory")?;
    File::open(directory)?.sync_all()
}

/// Does nothing: other systems cannot sync directories.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Calls of the file system, each of which tests let fail.
#[cfg(not(test))]
mod injected {
    /// Comes before the call of that name.
    #[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
    pub(super) const fn call(_name: &'static str) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod injected {
    use std::{
        cell::{Cell, RefCell},
        io,
    };

    thread_local! {
        pub(super) static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
        pub(super) static FAILS_AT: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn call(name: &'static str) -> io::Result<()> {
        let count = CALLS.with_borrow_mut(|calls| {
            calls.push(name);
            calls.len()
        });
        if count == FAILS_AT.get() {
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"some bytes";

    /// Writes an object whose n-th call of the file system fails; returns the outcome and the calls.
    fn upload(root: &Path, fails_at: usize) -> (io::Result<StoredBytes>, Vec<&'static str>) {
        injected::CALLS.take();
        injected::FAILS_AT.set(fails_at);
        let store = || {
            let mut incoming = Incoming::create(root.join("incoming/object.1.1"))?;
            let (one, other) = BYTES.split_at(4);
            incoming.write(&[Bytes::from_static(one), Bytes::from_static(other)])?;
            incoming.publish(root, &root.join("lab/ab/object"))
        };
        (store(), injected::CALLS.take())
    }

    #[test]
    fn a_failure_of_any_call_leaves_nothing_and_the_next_upload_succeeds() {
        let (_, calls) = upload(store().path(), 0);
        for (fails_at, name) in (1..).zip(calls) {
            let store = store();
            let root = store.path();
            let (failed, _) = upload(root, fails_at);
            assert!(failed.is_err(), "{name}");
            assert!(!root.join("lab/ab/object").exists(), "{name}");
            assert_eq!(
                fs::read_dir(root.join("incoming")).unwrap().count(),
                0,
                "{name}"
            );
            assert_eq!(upload(root, 0).0.unwrap().size, 10, "{name}");
            assert_eq!(fs::read(root.join("lab/ab/object")).unwrap(), BYTES);
        }
    }

    #[test]
    fn bytes_are_durable_before_their_name_and_the_name_before_the_response() {
        let (stored, calls) = upload(store().path(), 0);
        stored.unwrap();
        let expected = [
            "create",
            "write",
            "write",
            "sync the file",
            "make the directory",
            "link",
            // The directory, and the two above it, which may be new.
            "sync a directory",
            "sync a directory",
            "sync a directory",
        ];
        assert_eq!(calls, expected);
    }

    /// An empty store.
    fn store() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("incoming")).unwrap();
        root
    }
}
