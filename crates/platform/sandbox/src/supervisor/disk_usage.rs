//! Disk space of a run: its files, also deleted ones that are still open, and what is left on the
//! file system.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

use nix::sys::statvfs::statvfs;

use super::processes::Process;

/// Number of files that one call of [`DiskUsage::measure`] looks at. The supervisor has one thread,
/// which also responds to the platform.
const FILES_PER_STEP: usize = 2_000;

/// Maximum space of a file system that runs leave free.
const MAX_RESERVE: u64 = 1 << 30;

/// Measurement of a run's directories, done in steps.
pub(super) struct DiskUsage {
    directories: Vec<PathBuf>,
    pass: Pass,
}

/// One pass through all directories.
#[derive(Default)]
struct Pass {
    /// Files and directories to look at.
    pending: VecDeque<PathBuf>,
    /// Space of the files found so far, in bytes.
    total: u64,
    /// Files with several names that were counted.
    counted: BTreeSet<(u64, u64)>,
}

impl Pass {
    fn add(&mut self, file: &Metadata) {
        // A hard link would count its file once per name. Most files have one name, so the set stays small.
        if file.nlink() == 1 || self.counted.insert((file.dev(), file.ino())) {
            // `st_blocks` is in units of 512 bytes regardless of the file system's block size; sparse files count what they take.
            self.total = self.total.saturating_add(file.blocks() * 512);
        }
    }
}

impl DiskUsage {
    pub(super) fn new(directories: Vec<PathBuf>) -> Self {
        Self {
            directories,
            pass: Pass::default(),
        }
    }

    /// Continues the measurement. Returns the space of all files, in bytes, at the end of a pass, and
    /// as soon as the pass exceeds the limit.
    pub(super) fn measure(&mut self, found: &[Process], limit: u64) -> Option<u64> {
        if self.pass.pending.is_empty() {
            self.pass = Pass::default();
            self.pass.pending.extend(self.directories.iter().cloned());
            // A script could otherwise hide files by unlinking them while they are open.
            self.add_deleted(found);
        }
        // A scratch directory of millions of files is walked over several checks.
        for _ in 0..FILES_PER_STEP {
            let Some(path) = self.pass.pending.pop_front() else {
                break;
            };
            // Not followed: a link could lead out of the directory, or in a circle.
            let Ok(kind) = fs::symlink_metadata(&path) else {
                continue;
            };
            self.pass.add(&kind);
            if kind.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                self.pass.pending.extend(entries.map(|entry| entry.path()));
            }
        }
        (self.pass.pending.is_empty() || self.pass.total > limit).then_some(self.pass.total)
    }

    /// Adds files without a name that the processes have open.
    fn add_deleted(&mut self, found: &[Process]) {
        let own: BTreeSet<u64> = self
            .directories
            .iter()
            .filter_map(|directory| Some(fs::metadata(directory).ok()?.dev()))
            .collect();
        for process in found {
            let open = fs::read_dir(format!("/proc/{}/fd", process.pid));
            for entry in open.into_iter().flatten().flatten() {
                // Follows the link, which leads to the open file.
                let Ok(file) = fs::metadata(entry.path()) else {
                    continue;
                };
                if file.is_file() && file.nlink() == 0 && own.contains(&file.dev()) {
                    self.pass.add(&file);
                }
            }
        }
    }

    /// Returns true if less than the reserve is free on a file system of the directories: a
    /// twentieth, at most [`MAX_RESERVE`].
    pub(super) fn is_disk_almost_full(&self) -> bool {
        self.directories.iter().any(|directory| {
            statvfs(directory).is_ok_and(|found| {
                let size = found.blocks().saturating_mul(found.fragment_size());
                let free = found.blocks_available() * found.fragment_size();
                free < MAX_RESERVE.min(size / 20)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn files_count_once_for_all_their_names_and_a_large_tree_in_several_steps() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("one"), vec![1; MIB]).unwrap();
        fs::hard_link(deep.join("one"), deep.join("same")).unwrap();
        for number in 0..FILES_PER_STEP {
            fs::write(scratch.path().join(number.to_string()), "").unwrap();
        }
        let mut usage = DiskUsage::new(vec![scratch.path().to_owned()]);
        assert_eq!(usage.measure(&[], u64::MAX), None, "the pass continues");
        let total = usage.measure(&[], u64::MAX).unwrap();
        assert!((1 << 20..2 << 20).contains(&total), "{total}");
    }
}
