//! Processes of a run: lookup and signals.

#[cfg(target_os = "linux")]
use nix::unistd::{getpgid, getpid};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use crate::spec::Isolation;

/// Ties this process to its parent's life, makes it the parent of orphaned descendants, and hides its
/// memory from processes of the same account.
pub(super) fn bind_to_parent() {
    #[cfg(target_os = "linux")]
    {
        // Best effort: the end of standard input also ends the run.
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

/// Sends a signal to the program, which leads its session, and to all its descendants.
pub(super) fn signal_all(isolation: Isolation, program: Pid, signal: Signal) {
    if isolation == Isolation::Namespaces {
        // All processes of the namespace except this one.
        let _ = kill(Pid::from_raw(-1), signal);
        return;
    }
    // The group first: a fork bomb is hit as a whole, stragglers by the walk below.
    let _ = killpg(program, signal);
    #[cfg(target_os = "linux")]
    for process in of_run(isolation) {
        // A second SIGTERM would end a program that is just leaving as it was asked to.
        if getpgid(Some(process.pid)) != Ok(program) {
            let _ = kill(process.pid, signal);
        }
    }
}

/// Process of the run.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: i32,
    pub(super) threads: u64,
    /// Resident memory, in bytes.
    pub(super) resident: u64,
}

/// Returns the processes of the run, without this one.
#[cfg(target_os = "linux")]
pub(super) fn of_run(isolation: Isolation) -> Vec<Process> {
    let all: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    // Orphans become children of this process, the subreaper, so the walk from here finds them all.
    let own = getpid().as_raw();
    if isolation == Isolation::Namespaces {
        return all
            .into_iter()
            .filter(|process| process.pid.as_raw() != own)
            .collect();
    }
    let mut found = Vec::new();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid.as_raw());
            found.push(*process);
        }
    }
    found
}

/// Number of processes and threads of this process's account that it can see.
pub(super) fn threads_of_account() -> u32 {
    let own = nix::unistd::getuid().to_string();
    let threads = |status: &str| {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        // The owner of the file itself is root where a process cannot be attached to.
        let is_own = field("Uid:")? == own;
        field("Threads:").filter(|_| is_own)?.parse().ok()
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let statuses =
        all.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    statuses
        .filter_map(|status| threads(&status))
        .fold(0, u32::saturating_add)
}

#[cfg(target_os = "linux")]
fn read(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain parentheses; state and parent follow it.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    // Positions of proc_pid_stat(5): num_threads is field 20, rss field 24.
    let threads = fields.nth(15)?.parse().ok()?;
    let pages: u64 = fields.nth(3)?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid),
        parent,
        threads,
        resident: pages.saturating_mul(page_size()),
    })
}

#[cfg(target_os = "linux")]
fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    size.ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(4096)
}
