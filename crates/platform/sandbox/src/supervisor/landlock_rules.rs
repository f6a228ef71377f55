//! Landlock rules: the kernel denies access to other files and processes, without any privilege.

use std::{
    fs::File,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use nix::{
    libc::O_PATH,
    unistd::{Pid, getpid},
};

use crate::{
    launch::LaunchRequest,
    spec::{Isolation, Network},
};

/// Newest requested rules; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V9;

/// Devices that every program needs.
pub(super) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Facts about the machine that libraries need, such as the memory that is free. They name no process, no
/// file and no connection. In namespaces the whole `/proc` is of the run.
const MACHINE: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/vmstat",
    "/sys/devices/system/cpu",
];

/// Files about itself that the program may read below `/proc`. Not the directory as a whole: `net` and `mounts` in it
/// are those of the machine.
const OWN: [&str; 9] = [
    "cmdline", "fd", "io", "limits", "maps", "smaps", "stat", "statm", "status",
];

/// Returns the permitted files of a process.
fn own_files(process: Pid) -> impl Iterator<Item = PathBuf> {
    let directory = PathBuf::from(format!("/proc/{process}"));
    OWN.into_iter().map(move |name| directory.join(name))
}

/// Opens the permitted files of the program, as names only. Its rules hold while they are open: the kernel
/// makes another file of the same name once it has forgotten one that is not in use.
pub(super) fn hold_own_files(request: &LaunchRequest, program: Pid) -> Vec<File> {
    if request.isolation != Isolation::Landlock {
        return Vec::new();
    }
    let mut named = File::options();
    named.read(true).custom_flags(O_PATH);
    own_files(program)
        .filter_map(|path| named.open(path).ok())
        .collect()
}

/// Restricts this process and its descendants: files to those of the request, signals and sockets with
/// a path or a name to each other, no inspection of other processes, and TCP to the ports of the request
/// if the network is not that of the machine.
pub(super) fn restrict(request: &LaunchRequest) -> Result<(), String> {
    let has_own_root = request.isolation == Isolation::Namespaces;
    let mut readable: Vec<&Path> = request.readable.iter().map(|path| &**path).collect();
    let own: Vec<PathBuf> = own_files(getpid()).collect();
    let mut writable: Vec<&Path> = request.writable.iter().map(|path| &**path).collect();
    if has_own_root {
        readable.extend(["/proc", "/dev"].map(Path::new));
        writable.extend(["/tmp", "/dev/shm"].map(Path::new));
    } else {
        readable.extend(MACHINE.map(Path::new));
        readable.extend(own.iter().map(|path| &**path));
    }
    let all = AccessFs::from_all(NEWEST);
    let devices = AccessFs::from_file(NEWEST);
    // Older kernels enforce what they know; what is missing there is in the table of the docs.
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    // In namespaces the network is separate.
    let limits_tcp =
        request.network == Network::Denied || (request.network != Network::Host && !has_own_root);
    if limits_tcp {
        rules = rules
            .handle_access(AccessNet::from_all(NEWEST))
            .map_err(|error| format!("Landlock: {error}"))?;
    }
    let status = rules
        .handle_access(all)
        // Denies signals to, and abstract sockets of, processes outside of the run.
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            let ports = request.ports.iter().filter(|_| limits_tcp);
            let connect = |port: &u16| Ok(NetPort::new(*port, AccessNet::ConnectTcp));
            rules.add_rules(ports.map(connect).collect::<Vec<Result<_, RulesetError>>>())
        })
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(writable, all)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, devices)))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| format!("Landlock: {error}"))?;
    // In namespaces the program sees its own file system only.
    if status.ruleset == RulesetStatus::NotEnforced && !has_own_root {
        return Err("this kernel has no Landlock".to_owned());
    }
    Ok(())
}

/// Restricts this process to the files that it has open: no other file, no TCP, no signal to others. Where the
/// kernel has no Landlock, the system calls are refused all the same.
pub(super) fn restrict_to_open_files() -> Result<(), String> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessFs::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map(drop)
        .map_err(|error| format!("Landlock: {error}"))
}

/// Returns true if this kernel's Landlock limits TCP.
pub(crate) fn can_limit_tcp() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::from_all(ABI::V4))
        .and_then(Ruleset::create)
        .is_ok()
}
