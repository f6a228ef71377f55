//! Holds the memory of a long-running program flat.
//!
//! glibc's allocator serves a program of many threads from up to eight arenas per processor. Each grows to
//! the largest burst that one of its threads ever had, and retains most of that. Its threshold for blocks
//! of their own, which return to the system at once, rises with each large block that is freed. So the
//! memory of a server under a mixed load grows for as long as the load lasts, although it holds no more than
//! in the beginning: docs/adr/0035-memory-returns-to-the-system.md has figures.

/// Size in bytes from which a block gets separate pages, and of free memory at an arena's end from which it
/// is given back: glibc's defaults, which no longer move once they are set (mallopt(3)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const THRESHOLD: libc::c_int = 128 * 1024;

/// Interval between two calls of [`trim`].
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);

/// Lets freed memory return to the system. The first call of a program; elsewhere than with glibc it does
/// nothing, and where glibc refuses, memory only grows further.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Threads on different processors rarely wait for each other.
        let arenas = std::thread::available_parallelism().map_or(1, usize::from);
        set(
            libc::M_ARENA_MAX,
            libc::c_int::try_from(arenas).unwrap_or(libc::c_int::MAX),
        );
        // Set at all, the thresholds no longer rise with each large block that is freed (mallopt(3)).
        set(libc::M_MMAP_THRESHOLD, THRESHOLD);
        set(libc::M_TRIM_THRESHOLD, THRESHOLD);
    }
}

/// Returns free pages between blocks in use to the system every 30 s, in a thread for it. Thresholds only
/// concern the end of an arena. Elsewhere than with glibc it does nothing, and without a thread memory only
/// grows further.
pub fn give_memory_back_regularly() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let thread = std::thread::Builder::new().name("heap".to_owned());
        let _ = thread.spawn(|| {
            loop {
                std::thread::sleep(INTERVAL);
                trim();
            }
        });
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: `malloc_trim` takes a number, and locks of the allocator.
    #[expect(unsafe_code, reason = "the C library has no other way in")]
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set(parameter: libc::c_int, value: libc::c_int) {
    // SAFETY: `mallopt` takes numbers, and a lock of the allocator.
    #[expect(unsafe_code, reason = "the C library has no other way in")]
    unsafe {
        libc::mallopt(parameter, value)
    };
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// Held while a test measures the process.
    static MEASURING: Mutex<()> = Mutex::new(());

    fn allocated_kilobytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse().unwrap()
    }

    #[test]
    fn freed_memory_returns_though_a_later_block_is_still_held() {
        let _turn = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        give_memory_back();
        let before = allocated_kilobytes();
        let mut held = Vec::new();
        for size in [8 << 20, 200 << 10] {
            // By default the first round would raise the threshold to 8 MiB.
            let blocks: Vec<Vec<u8>> = (0..10).map(|_| vec![1; size]).collect();
            held.push(Box::new([1_u8; 64]));
            drop(blocks);
        }
        let stored = allocated_kilobytes().saturating_sub(before);
        assert!(
            stored < 1024,
            "{stored} kB are still there beside {} blocks",
            held.len()
        );
    }

    #[test]
    fn pages_between_blocks_in_use_return_when_trimmed() {
        let _turn = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        give_memory_back();
        let before = allocated_kilobytes();
        let mut held = Vec::new();
        let blocks: Vec<Vec<u8>> = (0..200)
            .map(|_| {
                let block = vec![1; 100 << 10];
                held.push(Box::new([1_u8; 64]));
                block
            })
            .collect();
        drop(blocks);
        trim();
        let stored = allocated_kilobytes().saturating_sub(before);
        assert!(
            stored < 2048,
            "{stored} kB are still there beside {} blocks",
            held.len()
        );
    }
}
