//! The file `postmaster.pid`, in which a server publishes its state.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// The file's name in the cluster.
pub(crate) const FILE_NAME: &str = "postmaster.pid";

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostmasterPid {
    /// Line 1: the postmaster.
    pub(crate) pid: Pid,
    /// Line 5: the directory of the socket.
    pub(crate) socket_dir: PathBuf,
    /// Line 8: `starting`, `ready`, `stopping` or `standby`; absent early in the start.
    pub(crate) status: String,
}

impl PostmasterPid {
    /// Reads the file; nothing when it is absent, torn or not understood.
    pub(crate) fn read(cluster: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(cluster.join(FILE_NAME)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = crate::process::parse_pid(OsStr::new(lines.next()?.trim()))?;
        let socket_dir = PathBuf::from(lines.nth(3).unwrap_or_default());
        let status = lines.nth(2).unwrap_or_default().trim().to_owned();
        Some(Self {
            pid,
            socket_dir,
            status,
        })
    }

    /// Returns whether the server accepts connections.
    pub(crate) fn is_ready(&self) -> bool {
        self.status == "ready"
    }

    /// Returns whether the server is shutting down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.status == "stopping"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_process_and_the_status() {
        let text = "4711\n/data/postgres\n1700000000\n5432\n/run/x\n\n  123 456\nready   \n";
        let parsed = PostmasterPid::parse(text).expect("well formed");
        assert_eq!(Some(parsed.pid), Pid::from_raw(4711));
        assert_eq!(parsed.socket_dir, Path::new("/run/x"));
        assert!(parsed.is_ready() && !parsed.is_stopping());
    }

    #[test]
    fn a_torn_file_is_not_ready() {
        assert_eq!(PostmasterPid::parse(""), None);
        assert_eq!(PostmasterPid::parse("not a number\n"), None);
        assert!(
            !PostmasterPid::parse("12\n/data\n")
                .expect("has a process")
                .is_ready()
        );
    }
}
