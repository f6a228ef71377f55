//! Limits that the kernel enforces for each process.

use nix::sys::resource::{Resource, setrlimit};

use crate::spec::Limits;

/// Limits this process and its future descendants.
pub(crate) fn apply(limits: &Limits) -> Result<(), String> {
    // Anonymous memory and heap; address space that is only reserved does not count.
    #[cfg(target_os = "linux")]
    let memory = Resource::RLIMIT_DATA;
    #[cfg(not(target_os = "linux"))]
    let memory = Resource::RLIMIT_AS;
    let values = [
        (memory, limits.memory),
        (Resource::RLIMIT_CPU, limits.cpu_time.as_secs().max(1)),
        (Resource::RLIMIT_FSIZE, limits.file_size),
        (Resource::RLIMIT_NPROC, limits.processes.into()),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, limit) in values {
        setrlimit(resource, limit, limit).map_err(|error| format!("{resource:?}: {error}"))?;
    }
    Ok(())
}
