//! The processes of a run: finding them, ending them.

#[cfg(target_os = "linux")]
use nix::unistd::getpid;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use super::Isolation;

/// This process ends with its parent, gets the orphans among its descendants, and cannot be looked
/// into by processes of its account.
pub(super) fn belong_to_parent() {
    #[cfg(target_os = "linux")]
    {
        // Each of these only adds to what the end of standard input does.
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

/// Sends a signal to everything of the run: the program, which leads its session, and all
/// that comes from it.
pub(super) fn signal_all(isolation: Isolation, program: Pid, signal: Signal) {
    if isolation == Isolation::Namespaces {
        // To all in the namespace but this process, its first.
        let _ = kill(Pid::from_raw(-1), signal);
        return;
    }
    let _ = killpg(program, signal);
    #[cfg(target_os = "linux")]
    for process in of_run(isolation) {
        let _ = kill(process.pid, signal);
    }
}

/// A process of the run.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: i32,
    /// The memory that it has in use, in bytes.
    resident: u64,
}

/// The processes of the run, without this one.
#[cfg(target_os = "linux")]
pub(super) fn of_run(isolation: Isolation) -> Vec<Process> {
    let all: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
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

#[cfg(target_os = "linux")]
fn read(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, also parentheses; state and parent follow it.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    let pages: u64 = fields.nth(19)?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid),
        parent,
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

/// Whether all processes of the run together use more memory than that.
#[cfg(target_os = "linux")]
pub(super) fn use_more_than(isolation: Isolation, limit: u64) -> bool {
    let resident: u64 = of_run(isolation)
        .iter()
        .map(|process| process.resident)
        .sum();
    // What processes share counts once for each of them here; looking closer takes longer. One look
    // is not at one instant: where processes end meanwhile, their part of what was shared counts for
    // them and again for those that are left.
    resident > limit && (0..LOOKS).all(|_| in_use(isolation) > limit)
}

/// How many close looks must agree that a run uses too much memory.
#[cfg(target_os = "linux")]
const LOOKS: usize = 3;

#[cfg(target_os = "linux")]
fn in_use(isolation: Isolation) -> u64 {
    of_run(isolation).iter().map(proportional).sum()
}

/// Its part of the memory in bytes, with what it shares divided among those that share it.
#[cfg(target_os = "linux")]
fn proportional(process: &Process) -> u64 {
    match std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)) {
        Ok(rollup) => pss(&rollup).unwrap_or(process.resident),
        // Nobody may look into it: it must not get more memory by that.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => process.resident,
        // It ended since it was listed.
        Err(_) => 0,
    }
}

#[cfg(target_os = "linux")]
fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn use_more_than(_: Isolation, _: u64) -> bool {
    false
}
