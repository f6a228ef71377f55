//! The one unsafe room: `fork`.

use nix::unistd::{ForkResult, Pid};

/// Which of the two processes this is.
pub(super) enum Forked {
    /// The one that forked, with its child.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Forks. Refuses in a process with more than one thread, where it can be told.
pub(super) fn fork() -> Result<Forked, String> {
    #[cfg(target_os = "linux")]
    {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads > 1 {
            return Err(format!("the supervisor has {threads} threads"));
        }
    }
    // SAFETY: this process has a single thread, so no lock is held by a thread that the child does
    // not have, and the child may do all that its parent may.
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
