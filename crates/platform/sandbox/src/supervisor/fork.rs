//! The only unsafe call: `fork`.

use nix::unistd::{ForkResult, Pid};

/// Side of the fork on which the caller continues.
pub(super) enum Forked {
    /// The original process, with its child.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks. Fails in a process with more than one thread, where the number is known.
pub(super) fn fork() -> Result<Forked, String> {
    #[cfg(target_os = "linux")]
    {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads > 1 {
            return Err(format!("the supervisor has {threads} threads"));
        }
    }
    // SAFETY: this process has a single thread, so no other thread can hold a lock that the child
    // would wait for, and the child may call everything that its parent may.
    #[expect(
        unsafe_code,
        reason = "the first process of a process namespace can only be made by a fork"
    )]
    let forked = unsafe { nix::unistd::fork() };
    match forked {
        Ok(ForkResult::Parent { child }) => Ok(Forked::Parent(child)),
        Ok(ForkResult::Child) => Ok(Forked::Child),
        Err(error) => Err(error.to_string()),
    }
}
