//! Namespaces: a separate view of processes and files.
//!
//! Root creates them directly; an ordinary user also creates a user namespace that maps the user to
//! itself. The new root is a small file system in memory. Permitted paths are bound into it, at the
//! paths that they have outside. The network is that of the machine, or a separate one.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::symlink,
    path::Path,
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
    sys::statvfs::{FsFlags, statvfs},
    unistd::{chdir, getegid, geteuid, pivot_root},
};

use super::landlock_rules::DEVICES;
use crate::{launch::LaunchRequest, spec::Network};

const NONE: Option<&str> = None;

/// Names that are known without a lookup.
const HOSTS: &str = "/etc/hosts";

/// Creates the namespaces. The next child of this process is the first process in them.
pub(super) fn enter(network: Network) -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let mut wanted = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    wanted.set(CloneFlags::CLONE_NEWNET, network != Network::Host);
    // Root needs no user namespace, which would only map its rights away.
    if user.is_root() {
        return unshare(wanted).map_err(|error| format!("unshare: {error}"));
    }
    unshare(wanted | CloneFlags::CLONE_NEWUSER).map_err(|error| format!("unshare: {error}"))?;
    let write = |name: &str, text: String| {
        fs::write(format!("/proc/self/{name}"), text).map_err(|error| format!("{name}: {error}"))
    };
    // The kernel accepts a group map of an ordinary user only after this (user_namespaces(7)).
    write("setgroups", "deny".to_owned())?;
    // To itself, not to root: files that the script writes must belong to the platform's account outside.
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))
}

/// Builds the new root and moves into it. Called by the first process in the namespaces.
pub(super) fn build_root(request: &LaunchRequest) -> Result<(), String> {
    build(request).map_err(|(what, error)| format!("{what}: {error}"))
}

type Step = Result<(), (String, io::Error)>;

fn failed<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> (String, io::Error) {
    move |error| (what.into(), error.into())
}

fn build(request: &LaunchRequest) -> Step {
    let root = &*request.root;
    // Mounts below would otherwise propagate to the machine where `/` is shared, as under systemd.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .map_err(failed("private mounts"))?;
    let tmpfs = |path: &Path, options: &str| {
        // No program inside may gain rights through a set-user-id file or a device node.
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))
            .map_err(failed(format!("tmpfs {}", path.display())))
    };
    // Holds mount points and links only, hence small.
    tmpfs(root, "mode=755,size=4m")?;

    // Mount points for other paths come first.
    bind(&request.temporary, root, Path::new("/tmp"), false)?;
    // Bound, not made: only real root may make device nodes.
    for device in DEVICES {
        bind_device(Path::new(device), root)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, root.join("dev").join(name)).map_err(failed(name))?;
    }
    let shared = root.join("dev/shm");
    fs::create_dir(&shared).map_err(failed("/dev/shm"))?;
    tmpfs(
        &shared,
        &format!("mode=1777,size={}", request.limits.memory / 4),
    )?;
    let mut bound: Vec<&Path> = Vec::new();
    if !request.namespace.hosts.is_empty() {
        let hosts = Path::new(HOSTS);
        let own = root.join("hosts");
        // In the root's own file system, which becomes read-only, so that a script cannot redirect names.
        fs::write(&own, &request.namespace.hosts).map_err(failed(HOSTS))?;
        bind(&own, root, hosts, true)?;
        bound.push(hosts);
    }
    for path in &request.readable {
        // A bind is recursive: what lies below a bound directory is there already.
        if !bound.iter().any(|above| path.starts_with(above)) && bind(path, root, path, true)? {
            bound.push(path);
        }
    }
    // After the readable ones: a scratch directory below a readable one must stay writable.
    for path in &request.writable {
        bind(path, root, path, false)?;
    }

    // A fresh one for the new namespace of processes: that of the machine would list all others.
    let proc = root.join("proc");
    fs::create_dir(&proc).map_err(failed("/proc"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &proc, Some("proc"), flags, NONE).map_err(failed("proc"))?;

    chdir(root).map_err(failed("the new root"))?;
    // With both at one path the old root is stacked on the new one, so it needs no mount point (pivot_root(2)).
    pivot_root(".", ".").map_err(failed("pivot_root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed("the old root"))?;
    chdir("/").map_err(failed("/"))?;
    // Last: the mount points above had to be made first.
    let flags = MsFlags::MS_REMOUNT
        | MsFlags::MS_BIND
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV;
    mount(NONE, "/", NONE, flags, NONE).map_err(failed("the root, read-only"))
}

/// Binds a file or directory into the new root. Returns false if it does not exist.
fn bind(
    source: &Path,
    root: &Path,
    displayed: &Path,
    read_only: bool,
) -> Result<bool, (String, io::Error)> {
    let what = || source.display().to_string();
    // Paths differ between distributions; what is not there cannot be needed.
    let Ok(kind) = fs::metadata(source) else {
        return Ok(false);
    };
    let target = root.join(displayed.strip_prefix("/").unwrap_or(displayed));
    if kind.is_dir() {
        fs::create_dir_all(&target).map_err(failed(what()))?;
    } else {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed(what()))?;
        }
        File::create(&target).map_err(failed(what()))?;
    }
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), &target, NONE, flags, NONE).map_err(failed(what()))?;
    // A bind ignores other flags at first: restrictions need a second mount with MS_REMOUNT.
    let has = statvfs(&target).map_err(failed(what()))?.flags();
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    // In a user namespace the flags of the outer mount must be retained.
    flags.set(MsFlags::MS_NOEXEC, has.contains(FsFlags::ST_NOEXEC));
    flags.set(
        MsFlags::MS_RDONLY,
        read_only || has.contains(FsFlags::ST_RDONLY),
    );
    mount(NONE, &target, NONE, flags, NONE).map_err(failed(what()))?;
    Ok(true)
}

fn bind_device(device: &Path, root: &Path) -> Step {
    let what = || device.display().to_string();
    let target = root.join(device.strip_prefix("/").unwrap_or(device));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(failed(what()))?;
    }
    File::create(&target).map_err(failed(what()))?;
    mount(Some(device), &target, NONE, MsFlags::MS_BIND, NONE).map_err(failed(what()))
}
