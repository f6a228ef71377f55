//! Space beside the cluster that is stored for a full disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::layout;

/// Name of the file, beside the cluster.
const NAME: &str = "postgres.reserve";

/// Size of the reserve in bytes: four segments of PostgreSQL's write-ahead log. A server that finds
/// no room for the next segment stops working.
const SIZE: u64 = 64 << 20;

/// A file beside the cluster that takes the space of the reserve. All processes of a data directory
/// share it. All functions block.
#[derive(Debug, Clone)]
pub struct DiskReserve {
    path: PathBuf,
}

/// Reserve and disk as they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskReserveState {
    /// Size of the reserve in bytes.
    pub size: u64,
    /// True if its space is taken.
    pub held: bool,
    /// Free bytes of the disk.
    pub available: u64,
}

impl DiskReserve {
    /// The reserve of the data directory's cluster, wherever a link leads.
    #[must_use]
    pub fn beside_cluster(data_dir: &Path) -> Self {
        let cluster = layout::cluster_of(data_dir);
        Self {
            path: cluster.with_file_name(NAME),
        }
    }

    /// Looks at reserve and disk.
    ///
    /// # Errors
    /// If the directory cannot be examined.
    pub fn state(&self) -> io::Result<DiskReserveState> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let disk = rustix::fs::statvfs(directory)?;
        Ok(DiskReserveState {
            size: SIZE,
            held: fs::metadata(&self.path).is_ok_and(|file| is_whole(&file)),
            // Not `f_bfree`, which includes blocks that only root may use.
            available: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }

    /// Removes the file. Returns false if it did not exist.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn give_up(&self) -> io::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the file, unless it is whole. Leaves none where there is too little space.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`], or if the file cannot be written.
    pub fn hold(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|file| is_whole(&file)) {
            return Ok(());
        }
        let held = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&self.path)
            .and_then(|file| allocate(&file));
        if held.is_err() {
            // Part of the reserve would be of no use.
            let _ = fs::remove_file(&self.path);
        }
        held
    }
}

/// Returns true if the file takes all its space, not only its length.
fn is_whole(file: &fs::Metadata) -> bool {
    // A sparse file has the length without the space.
    file.len() >= SIZE && file.blocks().saturating_mul(512) >= SIZE
}

#[cfg(target_os = "linux")]
fn allocate(file: &File) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, SIZE) {
        Err(rustix::io::Errno::OPNOTSUPP) => write_out(file),
        allocated => Ok(allocated?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File) -> io::Result<()> {
    write_out(file)
}

fn write_out(mut file: &File) -> io::Result<()> {
    use io::Write as _;
    const PIECE: u64 = 1 << 20;
    let chunk = vec![0; usize::try_from(PIECE).unwrap_or_default()];
    for _ in 0..SIZE / PIECE {
        file.write_all(&chunk)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_takes_its_space_until_it_is_given_up() {
        let data = tempfile::tempdir().expect("directory");
        let reserve = DiskReserve::beside_cluster(data.path());
        assert!(!reserve.state().expect("state").held);
        assert!(!reserve.give_up().expect("nothing to do"));
        for _ in 0..2 {
            reserve.hold().expect("held");
            assert!(reserve.state().expect("state").held);
        }
        let file = fs::metadata(data.path().join(NAME)).expect("file");
        assert!(file.blocks() * 512 >= SIZE && file.mode() & 0o777 == 0o600);
        assert!(reserve.give_up().expect("given up"));
        assert!(!reserve.state().expect("state").held);
    }

    #[test]
    fn a_file_without_its_space_is_no_reserve() {
        let data = tempfile::tempdir().expect("directory");
        let file = File::create(data.path().join(NAME)).expect("file");
        file.set_len(SIZE).expect("sparse");
        let reserve = DiskReserve::beside_cluster(data.path());
        assert!(!reserve.state().expect("state").held);
        reserve.hold().expect("held");
        assert!(reserve.state().expect("state").held);
    }

    #[test]
    fn the_reserve_is_beside_the_cluster_behind_a_link() {
        let data = tempfile::tempdir().expect("directory");
        let elsewhere = tempfile::tempdir().expect("directory");
        let cluster = elsewhere.path().join("cluster");
        fs::create_dir(&cluster).expect("directory");
        std::os::unix::fs::symlink(&cluster, data.path().join("postgres")).expect("link");
        DiskReserve::beside_cluster(data.path())
            .hold()
            .expect("held");
        assert!(elsewhere.path().join(NAME).is_file());
    }
}
