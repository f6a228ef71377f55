//! Memory of a run: that of its processes, and of its files in memory.

use std::{io::ErrorKind, path::Path};

use nix::sys::statvfs::statvfs;

use super::processes::{self, Process};
use crate::spec::Isolation;

/// File system in memory that the processes can write in namespaces. Elsewhere they can write none.
const SHARED_MEMORY: &str = "/dev/shm";

/// Number of exact measurements that must all exceed the limit.
const CONFIRMATIONS: usize = 3;

/// Returns true if the processes and the files in memory together exceed the limit.
pub(super) fn exceeds(isolation: Isolation, found: &[Process], limit: u64) -> bool {
    let resident: u64 = found.iter().map(|process| process.resident).sum();
    let files = files_in_memory(isolation);
    // Resident sizes count shared memory once per process, but are cheap to read. The exact sizes are
    // not read at one instant: when a process ends in between, its share counts twice.
    resident.saturating_add(files) > limit
        && (0..CONFIRMATIONS).all(|_| exact_sum(isolation) > limit)
}

fn files_in_memory(isolation: Isolation) -> u64 {
    if isolation != Isolation::Namespaces {
        return 0;
    }
    statvfs(Path::new(SHARED_MEMORY)).map_or(0, |found| {
        found.blocks().saturating_sub(found.blocks_free()) * found.fragment_size()
    })
}

fn exact_sum(isolation: Isolation) -> u64 {
    let (mut total, mut shared) = (0, 0);
    for process in processes::of_run(isolation) {
        let memory = proportional(&process);
        total += memory.total;
        shared += memory.shared;
    }
    // Files that are mapped are part of the processes' memory.
    total + files_in_memory(isolation).saturating_sub(shared)
}

/// Memory of a process in bytes, with shared pages divided among their users.
struct Proportional {
    total: u64,
    /// Part of the total in files in memory.
    shared: u64,
}

fn proportional(process: &Process) -> Proportional {
    let of = |total| Proportional { total, shared: 0 };
    match std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)) {
        Ok(rollup) => of_rollup(&rollup).unwrap_or_else(|| of(process.resident)),
        // Unreadable: a process must not gain memory by hiding itself.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => of(process.resident),
        // The process has ended since it was listed.
        Err(_) => of(0),
    }
}

fn of_rollup(rollup: &str) -> Option<Proportional> {
    let value = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(Proportional {
        total: value("Pss:")?,
        shared: value("Pss_Shmem:").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rollup_of_the_kernel_is_read() {
        let rollup = "00400000-7fff r-xp 0 00:00 0 [rollup]\nRss:  900 kB\nPss:  500 kB\n\
                      Pss_Anon: 300 kB\nPss_Shmem: 200 kB\n";
        let memory = of_rollup(rollup).unwrap();
        assert_eq!((memory.total, memory.shared), (500 * 1024, 200 * 1024));
    }
}
