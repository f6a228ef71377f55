//! Memory of the server: its page cache, and the limit of each process.

use std::fs;

/// Bytes in a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// Share of the machine's memory for the page cache. The server allocates it as its data grows.
const PAGES: Share = Share {
    part: 8,
    // PostgreSQL's own default.
    least: 128,
    // Other pages are read from the operating system's cache, which costs a copy and a checksum per
    // page.
    most: 1024,
};

/// Share of the machine's memory that one process may use for itself. The four queries of an
/// organization and the server's eight parallel workers together leave room for the pages and for the
/// platform, whose own statements need much less than the minimum.
const PROCESS: Share = Share {
    part: 16,
    least: 256,
    most: 1024,
};

/// One part in `part`, within bounds in megabytes.
struct Share {
    part: u64,
    least: u64,
    most: u64,
}

impl Share {
    /// Returns the share of the memory, in megabytes.
    fn megabytes(&self, memory: u64) -> u64 {
        (memory / MEGABYTE / self.part).clamp(self.least, self.most)
    }
}

/// Files with a container's memory limit, in versions 2 and 1 of control groups.
const LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Returns the setting `shared_buffers` for this machine.
pub(crate) fn shared_buffers() -> String {
    format!("shared_buffers={}MB", PAGES.megabytes(machine_memory()))
}

/// Returns the limit of each process's private memory, in bytes: shared pages are not part of it.
pub(crate) fn process_limit() -> u64 {
    PROCESS.megabytes(machine_memory()) * MEGABYTE
}

/// Returns the memory of this machine or container, in bytes; 0 where it is not known.
#[must_use]
pub fn machine_memory() -> u64 {
    // A container sees the machine's memory in sysinfo(2), but is killed at its own limit. `max` does not parse: no limit.
    let limits = LIMITS.iter().filter_map(|path| {
        let limit = fs::read_to_string(path).ok()?;
        limit.trim().parse().ok()
    });
    limits.fold(installed(), u64::min)
}

/// The machine's memory, in bytes; nothing where that is not known.
fn installed() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let system = rustix::system::sysinfo();
        system.totalram.saturating_mul(system.mem_unit.into())
    }
    #[cfg(not(target_os = "linux"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_memory_is_for_pages_within_bounds() {
        let gigabyte = 1024 * MEGABYTE;
        assert_eq!(PAGES.megabytes(0), 128);
        assert_eq!(PAGES.megabytes(gigabyte / 2), 128);
        assert_eq!(PAGES.megabytes(2 * gigabyte), 256);
        assert_eq!(PAGES.megabytes(64 * gigabyte), 1024);
    }

    #[test]
    fn a_sixteenth_of_the_memory_is_for_one_process_within_bounds() {
        let gigabyte = 1024 * MEGABYTE;
        assert_eq!(PROCESS.megabytes(0), 256);
        assert_eq!(PROCESS.megabytes(8 * gigabyte), 512);
        assert_eq!(PROCESS.megabytes(64 * gigabyte), 1024);
    }

    #[test]
    fn this_machine_has_memory() {
        assert_eq!(cfg!(target_os = "linux"), installed() > 0);
    }
}
