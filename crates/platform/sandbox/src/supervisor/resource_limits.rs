//! Limits that the kernel enforces for each process.

use nix::sys::resource::{Resource, setrlimit};

use super::processes;
use crate::{
    launch::LaunchRequest,
    spec::{Isolation, Limits},
};

/// Processes and threads that others may start under a shared account while a program runs.
const ROOM_FOR_OTHERS: u32 = 1024;

/// Limits of a program as the kernel counts.
///
/// The kernel counts processes and threads of an account in a user namespace (`getrlimit(2)`). Where the program shares
/// both, the count includes others, such as the platform's database, so there is room for them. The monitor counts those
/// of the program alone.
pub(super) fn of_program(request: &LaunchRequest) -> Limits {
    let limits = request.limits;
    if request.account.is_some() || request.isolation == Isolation::Namespaces {
        return limits;
    }
    let others = processes::threads_of_account().saturating_add(ROOM_FOR_OTHERS);
    Limits {
        processes: limits.processes.saturating_add(others),
        ..limits
    }
}

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
