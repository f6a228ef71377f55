//! Confinement of this process itself, for work on untrusted bytes.

use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};

use crate::{
    spec::Limits,
    supervisor::{drop_privileges, refuse_all_but_pipes, resource_limits},
};

/// Time between the signal that ends a process after its limit, and the one that it cannot handle.
const CPU_GRACE: Duration = Duration::from_secs(1);

/// Confines this process to the files that it has open: it can open no other, has no network, starts no
/// program, and is ended by the kernel when it needs more memory or processor time. It must have one thread.
///
/// Linux enforces all of it with seccomp, and the part that Landlock can as well where the kernel has it.
/// Elsewhere there are only the limits, as far as the system enforces them.
///
/// # Errors
/// The reason, for the log.
pub fn confine_to_pipes(memory: u64, cpu_time: Duration) -> Result<(), String> {
    resource_limits::apply(&Limits {
        wall_clock: cpu_time,
        cpu_time: cpu_time + CPU_GRACE,
        memory,
        file_size: 0,
        scratch: 0,
        processes: 1,
        grace: Duration::ZERO,
    })?;
    // Below the hard limit, at which the signal is the same as when the machine has no memory left.
    let soft = cpu_time.as_secs().max(1);
    let hard = soft.saturating_add(CPU_GRACE.as_secs());
    setrlimit(Resource::RLIMIT_CPU, soft, hard).map_err(|error| format!("CPU: {error}"))?;
    drop_privileges()?;
    refuse_all_but_pipes()
}
