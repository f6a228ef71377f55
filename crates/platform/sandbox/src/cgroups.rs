//! Limits of whole runs by control groups (version 2), where one is delegated to the platform.
//!
//! The kernel then also counts what no process has mapped, such as the memory of sockets and pipes. A
//! group is delegated to a service by systemd (`Delegate=yes`), and to a container as its root.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::spec::Limits;

/// Mount point of the groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// Group of the platform's processes: a group with limited children has no processes itself.
const PLATFORM: &str = "labdata";

/// Start of the names of runs' groups.
const RUN: &str = "labdata-run-";

/// Attribute with which systemd marks a delegated group.
const DELEGATED: &str = "user.delegate";

/// Group that is delegated to the platform.
#[derive(Debug)]
pub(crate) struct Cgroups {
    own: PathBuf,
    next: AtomicU64,
}

/// Group of one run. Its processes are killed when it is dropped.
#[derive(Debug)]
pub(crate) struct RunCgroup {
    path: PathBuf,
}

impl Cgroups {
    /// Takes over the group of this process, if it is delegated. Blocks.
    pub(crate) fn open() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        // A second sandbox of this process finds it moved.
        let path = path
            .strip_suffix(PLATFORM)
            .map_or(path, |above| above.trim_end_matches('/'));
        let own = Path::new(MOUNT).join(path.trim_start_matches('/'));
        if !is_delegated(&own, path) {
            return None;
        }
        let opened = Self::prepare(own).and_then(|groups| groups.check().map(|()| groups));
        opened
            .inspect_err(|error| {
                tracing::warn!(%error, "the control group of the platform cannot be used for runs");
            })
            .ok()
    }

    /// Moves the platform's processes aside, and enables the limits of children.
    fn prepare(own: PathBuf) -> io::Result<Self> {
        let platform = own.join(PLATFORM);
        // A group with its own processes cannot enable controllers for children ("no internal processes").
        fs::create_dir_all(&platform)?;
        for process in fs::read_to_string(own.join("cgroup.procs"))?.lines() {
            // One that has ended in the meantime cannot be moved.
            let _ = fs::write(platform.join("cgroup.procs"), process);
        }
        fs::write(own.join("cgroup.subtree_control"), "+memory +pids")?;
        for entry in fs::read_dir(&own)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(RUN) {
                // Succeeds for the groups of workers that were killed.
                let _ = fs::remove_dir(entry.path());
            }
        }
        Ok(Self {
            own,
            next: AtomicU64::default(),
        })
    }

    /// Starts a process in a group.
    fn check(&self) -> io::Result<()> {
        let group = self.create(u64::from(u32::MAX), 16)?;
        // Writing may be allowed and joining not, for example in a container with a read-only delegation.
        let status = Command::new("/bin/sh")
            .args(["-c", "echo 0 > \"$0\""])
            .arg(group.members())
            .stdin(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other("no process can join a group"))
        }
    }

    /// Creates the group of a run.
    pub(crate) fn for_run(&self, limits: &Limits) -> io::Result<RunCgroup> {
        self.create(limits.memory, limits.processes)
    }

    fn create(&self, memory: u64, processes: u32) -> io::Result<RunCgroup> {
        // With the process id the name is unique among workers that share the group.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{RUN}{}-{number}", std::process::id());
        let path = self.own.join(name);
        fs::create_dir(&path)?;
        let group = RunCgroup { path };
        let set = |name: &str, value: String| fs::write(group.path.join(name), value);
        set("memory.max", memory.to_string())?;
        set("pids.max", processes.to_string())?;
        // Missing in kernels without swap, and before Linux 4.19.
        let _ = set("memory.swap.max", "0".to_owned());
        let _ = set("memory.oom.group", "1".to_owned());
        Ok(group)
    }
}

impl RunCgroup {
    /// Returns the file through which processes join.
    pub(crate) fn members(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Returns true if the kernel has killed processes of the group for lack of memory.
    pub(crate) fn exceeded_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events"));
        events.is_ok_and(|events| {
            events
                .lines()
                .any(|line| line.strip_prefix("oom_kill ").is_some_and(|it| it != "0"))
        })
    }
}

impl Drop for RunCgroup {
    fn drop(&mut self) {
        // Removed at the next start, if processes are still ending.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        let _ = fs::remove_dir(&self.path);
    }
}

/// Returns true for a group that was given to this process with all controllers that it needs. The
/// machine's root group has no type.
fn is_delegated(own: &Path, path: &str) -> bool {
    let has_controllers =
        fs::read_to_string(own.join("cgroup.controllers")).is_ok_and(|controllers| {
            let mut needed = ["memory", "pids"].into_iter();
            needed.all(|needed| controllers.split_whitespace().any(|it| it == needed))
        });
    let is_root_of_container = matches!(path, "" | "/") && own.join("cgroup.type").exists();
    has_controllers && (is_root_of_container || has_mark(own))
}

fn has_mark(own: &Path) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(own, DELEGATED, &mut value[..])
        .is_ok_and(|length| value.get(..length) == Some(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files that the kernel would create.
    fn delegated() -> (tempfile::TempDir, Cgroups) {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.procs"), "1\n2\n").unwrap();
        let groups = Cgroups::prepare(own.path().to_owned()).unwrap();
        (own, groups)
    }

    #[test]
    fn the_platform_moves_aside_before_its_group_limits_children() {
        let (own, _groups) = delegated();
        let read = |name: &str| fs::read_to_string(own.path().join(name)).unwrap();
        assert_eq!(read("labdata/cgroup.procs"), "2", "the last one written");
        assert_eq!(read("cgroup.subtree_control"), "+memory +pids");
    }

    #[test]
    fn each_run_has_a_group_with_its_limits() {
        let (_own, groups) = delegated();
        let (one, other) = (
            groups.create(4096, 7).unwrap(),
            groups.create(1, 1).unwrap(),
        );
        assert_ne!(one.path, other.path);
        let read = |name: &str| fs::read_to_string(one.path.join(name)).unwrap();
        let values = [
            "memory.max",
            "memory.swap.max",
            "memory.oom.group",
            "pids.max",
        ]
        .map(read);
        assert_eq!(values, ["4096", "0", "1", "7"]);
        assert!(one.members().starts_with(&one.path));
    }

    #[test]
    fn a_kill_for_lack_of_memory_is_read_from_the_group() {
        let (_own, groups) = delegated();
        let group = groups.create(4096, 7).unwrap();
        assert!(!group.exceeded_memory());
        for (count, expected) in [(0, false), (2, true)] {
            let events = format!("low 0\nmax 9\noom 3\noom_kill {count}\noom_group_kill 0\n");
            fs::write(group.path.join("memory.events"), events).unwrap();
            assert_eq!(group.exceeded_memory(), expected);
        }
    }

    #[test]
    fn a_group_without_a_mark_is_left_alone() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert!(!is_delegated(own.path(), "/user.slice/session-3.scope"));
        assert!(!is_delegated(own.path(), "/"), "the machine's root group");
        fs::write(own.path().join("cgroup.type"), "domain\n").unwrap();
        assert!(is_delegated(own.path(), "/"), "the root of a container");
        fs::write(own.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert!(!is_delegated(own.path(), "/"));
    }
}
