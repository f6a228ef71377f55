//! Starting child processes that die with their parent, and recognizing the server's processes.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit};

use crate::account::Account;

/// Environment variables that the server's programs inherit; they contain no secrets of the platform.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Returns a command that runs as the account, in a separate process group (so that Ctrl-C reaches
/// only the platform, which then shuts it down), and that receives `on_parent_death` when the calling
/// *thread* ends: call this from a thread that outlives the child.
pub(crate) fn server_command(program: &Path, account: Account, on_parent_death: Signal) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").process_group(0);
    for name in INHERITED_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Account::Other { uid, gid } = account {
        // With a user id given, the standard library also drops the supplementary groups.
        command.uid(uid).gid(gid);
    }
    die_with_parent(&mut command, on_parent_death);
    command
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    let arm = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have died before the signal was armed.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(std::io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls; it neither allocates nor
    // locks. It runs after the change of user, which would clear the signal.
    #[expect(
        unsafe_code,
        reason = "PR_SET_PDEATHSIG must be set between fork and exec"
    )]
    unsafe {
        command.pre_exec(arm);
    }
}

/// Limits the memory of the command's process and of each descendant, in bytes, without the memory that
/// they share. An allocation beyond it fails, which PostgreSQL reports to the client.
#[cfg(target_os = "linux")]
pub(crate) fn limit_private_memory(command: &mut Command, bytes: u64) {
    let limit_self = move || {
        let earlier = rustix::process::getrlimit(Resource::Data);
        // Only root could raise the limit of this process.
        let bytes = earlier.maximum.map_or(bytes, |maximum| maximum.min(bytes));
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        rustix::process::setrlimit(Resource::Data, limit)?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls; it neither allocates nor locks.
    #[expect(
        unsafe_code,
        reason = "the limit must be set between fork and exec, to apply to the server only"
    )]
    unsafe {
        command.pre_exec(limit_self);
    }
}

/// Other systems do not limit what PostgreSQL allocates.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_private_memory(_command: &mut Command, _bytes: u64) {}

/// Without `PR_SET_PDEATHSIG` the next start stops the orphan (see `leftovers`).
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command, _signal: Signal) {}

/// Returns whether a process with this id exists, including those of other users and zombies.
pub(crate) fn exists(pid: Pid) -> bool {
    match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    }
}

/// Returns whether the process is a living PostgreSQL process of this cluster.
///
/// The server's processes have the cluster as their working directory.
#[cfg(target_os = "linux")]
pub(crate) fn is_server_of(pid: Pid, cluster: &Path) -> bool {
    let proc = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    std::fs::read_to_string(proc.join("comm")).is_ok_and(|name| name.trim_end() == "postgres")
        && std::fs::read_link(proc.join("cwd")).is_ok_and(|directory| directory == cluster)
}

/// Returns whether `ps` lists the process as a PostgreSQL process of this cluster.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_server_of(pid: Pid, cluster: &Path) -> bool {
    servers_of(cluster).contains(&pid)
}

/// Returns all processes of the cluster, including those that outlived their postmaster.
#[cfg(target_os = "linux")]
pub(crate) fn servers_of(cluster: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| parse_pid(&entry.ok()?.file_name()))
        .filter(|pid| is_server_of(*pid, cluster))
        .collect()
}

/// Returns all postmasters of the cluster, by their command line.
#[cfg(not(target_os = "linux"))]
pub(crate) fn servers_of(cluster: &Path) -> Vec<Pid> {
    let Ok(output) = Command::new("ps").args(["-axo", "pid=,command="]).output() else {
        return Vec::new();
    };
    let cluster = cluster.to_string_lossy();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let (pid, command) = line.trim_start().split_once(' ')?;
            let is_server = command.contains("/postgres ") && command.contains(&*cluster);
            if is_server {
                parse_pid(OsStr::new(pid))
            } else {
                None
            }
        })
        .collect()
}

/// Parses a positive process id.
pub(crate) fn parse_pid(text: &OsStr) -> Option<Pid> {
    text.to_str()?
        .parse()
        .ok()
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
}

/// Sends a signal. Errors are ignored: the process may have ended.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    if let Err(error) = rustix::process::kill_process(pid, signal) {
        tracing::debug!(pid = pid.as_raw_nonzero().get(), %error, "signal not delivered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_numbers_are_process_ids() {
        assert_eq!(parse_pid(OsStr::new("17")), Pid::from_raw(17));
        for text in ["0", "-1", "self", "", "99999999999"] {
            assert_eq!(parse_pid(OsStr::new(text)), None, "{text}");
        }
    }

    #[test]
    fn this_process_exists_and_is_no_server() {
        let own = rustix::process::getpid();
        assert!(exists(own));
        assert!(!is_server_of(own, Path::new("/")));
        assert!(servers_of(Path::new("/nowhere")).is_empty());
    }
}
