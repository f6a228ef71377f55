//! Limits that the kernel holds for each process.

use nix::sys::resource::{Resource, setrlimit};

use super::order::Limits;

/// Limits this process and all that it starts.
pub(super) fn apply(limits: &Limits) -> Result<(), String> {
    // Anonymous memory and heap; address space that is only reserved does not count.
    #[cfg(target_os = "linux")]
    let memory = Resource::RLIMIT_DATA;
    #[cfg(not(target_os = "linux"))]
    let memory = Resource::RLIMIT_AS;
    let wanted = [
        (memory, limits.memory),
        (Resource::RLIMIT_CPU, limits.cpu_seconds),
        (Resource::RLIMIT_FSIZE, limits.file_size),
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, limit) in wanted {
        setrlimit(resource, limit, limit).map_err(|error| format!("{resource:?}: {error}"))?;
    }
    Ok(())
}
