//! Writing a file that nobody sees before it is whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use labdata_domain::files::StoredBytes;

use crate::reading::crc32c;

/// How many bytes are written between two requests to the system to start writing to the disk, so
/// that the last sync is short.
const WRITE_BACK_BYTES: u64 = 8 * 1024 * 1024;

/// A file in the `incoming` directory. It is removed when this is dropped, whatever became of it:
/// once published it has another name.
pub(crate) struct Incoming {
    path: PathBuf,
    file: File,
    digest: Digest,
    size: u64,
    /// How many bytes the disk was asked to take already.
    written_back: u64,
}

impl Incoming {
    /// Creates the file.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        // Until the file is closed, at the latest by the end of the process. Where the file system
        // knows no locks, the file's age has to do.
        drop(file.lock());
        if !has_name(&file)? {
            // A sweeper was faster. Another name will do.
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

    /// Appends. Blocks.
    pub(crate) fn write(&mut self, chunks: &[Bytes]) -> io::Result<()> {
        for chunk in chunks {
            self.digest.update(chunk);
            self.file.write_all(chunk)?;
            self.size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        }
        if self.size - self.written_back >= WRITE_BACK_BYTES {
            start_write_back(&self.file, self.written_back, self.size);
            self.written_back = self.size;
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name, unless that is taken
    /// ([`io::ErrorKind::AlreadyExists`]). Blocks.
    pub(crate) fn publish(&self, root: &Path, destination: &Path) -> io::Result<StoredBytes> {
        self.file.sync_all()?;
        let directory = destination.parent().unwrap_or(root);
        fs::create_dir_all(directory)?;
        fs::hard_link(&self.path, destination)?;
        // A directory above may be as new as the file, by this call or by one beside it.
        for directory in directory
            .ancestors()
            .take_while(|above| above.starts_with(root))
        {
            sync_directory(directory)?;
        }
        Ok(StoredBytes {
            size: self.size,
            crc32c: crc32c(&self.digest)?,
        })
    }
}

impl Incoming {
    /// Makes sure that the file can be given a second name, and takes it away again.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let mut second = self.path.clone().into_os_string();
        second.push(".link");
        drop(fs::remove_file(&second));
        fs::hard_link(&self.path, &second)?;
        fs::remove_file(second)
    }
}

/// Removes the file of an upload that nobody is writing any more, and says whether it did.
pub(crate) fn remove_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    file.try_lock().is_ok() && fs::remove_file(path).is_ok()
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // What cannot be removed now is found by the sweeper.
        drop(fs::remove_file(&self.path));
    }
}

/// Asks the system to begin writing that range to the disk, and does not wait: on Linux, to say that
/// pages are not needed does that to those that are not written yet. Whether it worked shows at the
/// last sync, which reports errors of earlier writes.
#[cfg(target_os = "linux")]
fn start_write_back(file: &File, from: u64, to: u64) {
    use rustix::fs::{Advice, fadvise};
    let length = std::num::NonZeroU64::new(to - from);
    let _ = fadvise(file, from, length, Advice::DontNeed);
}

/// Elsewhere the last sync does all of it.
#[cfg(not(target_os = "linux"))]
fn start_write_back(_file: &File, _from: u64, _to: u64) {}

/// Whether a file that is open still has a name.
#[cfg(unix)]
fn has_name(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() > 0)
}

/// Other systems do not remove a file that is open.
#[cfg(not(unix))]
fn has_name(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// Makes the names in a directory durable.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Other systems have no such call for directories.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
