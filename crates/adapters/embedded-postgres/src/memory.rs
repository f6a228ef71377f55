//! Size of the server's page cache.

use std::fs;

/// Bytes in a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// At the least, in megabytes: PostgreSQL's own default.
const LEAST: u64 = 128;

/// Maximum, in megabytes. Other pages are read from the operating system's cache, which costs a copy
/// and a checksum per page.
const MOST: u64 = 1024;

/// Share of the machine's memory: one in `PART`. The server allocates it as its data grows.
const PART: u64 = 8;

/// Files with a container's memory limit, in versions 2 and 1 of control groups.
const LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// The setting `shared_buffers` for this machine.
pub(crate) fn shared_buffers() -> String {
    let limits = LIMITS.iter().filter_map(|path| {
        let limit = fs::read_to_string(path).ok()?;
        limit.trim().parse().ok()
    });
    let memory = limits.fold(installed(), u64::min);
    format!("shared_buffers={}MB", megabytes(memory))
}

fn megabytes(memory: u64) -> u64 {
    (memory / MEGABYTE / PART).clamp(LEAST, MOST)
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
        assert_eq!(megabytes(0), 128);
        assert_eq!(megabytes(gigabyte / 2), 128);
        assert_eq!(megabytes(2 * gigabyte), 256);
        assert_eq!(megabytes(64 * gigabyte), 1024);
    }

    #[test]
    fn this_machine_has_memory() {
        assert_eq!(cfg!(target_os = "linux"), installed() > 0);
    }
}
