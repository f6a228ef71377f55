//! Specification and outcome of a sandboxed process.

use std::{path::PathBuf, time::Duration};

use labdata_redacted::Variables;
use serde::{Deserialize, Serialize};

use crate::dependency_cache::EnvironmentUse;

/// Degree of isolation from the rest of the machine, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Isolation {
    /// A session, a directory, an environment and limits. The process may do everything that the
    /// account of this process may do.
    Nothing,
    /// Landlock denies access to other files and processes. Descendants are found by their parents.
    Landlock,
    /// A file system that contains only permitted paths, and a process namespace that ends with the
    /// process. Landlock and the limits apply as well, where the kernel has Landlock.
    Namespaces,
}

/// Limits of a process and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time until everything is killed.
    pub wall_clock: Duration,
    /// Processor time of each process, in whole seconds, at least one.
    pub cpu_time: Duration,
    /// Memory of each process, and of all of them together with their files in memory, in bytes.
    pub memory: u64,
    /// Size of a written file, in bytes.
    pub file_size: u64,
    /// Total size of the files in the scratch and temporary directories, in bytes.
    pub scratch: u64,
    /// Number of processes and threads.
    pub processes: u32,
    /// Time between TERM and KILL when the process is cancelled.
    pub grace: Duration,
}

/// Network access of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// The network of this machine.
    Host,
    /// The platform, and public addresses through an HTTP proxy of this program. In
    /// [namespaces](crate::Isolation::Namespaces) nothing else can be reached; under
    /// [Landlock](crate::Isolation::Landlock) no other TCP port, from Linux 6.7 on; without isolation
    /// nothing is denied.
    Internet,
    /// The platform, enforced like [`Network::Internet`].
    Platform,
    /// No network, enforced like [`Network::Internet`].
    Denied,
}

/// Installed packages.
#[derive(Clone, Debug)]
pub struct ScriptEnvironment {
    /// Parent directory. Sandboxed processes cannot replace it by a link.
    pub(crate) cache: PathBuf,
    /// Directory of the virtual environment.
    pub(crate) directory: PathBuf,
    /// Retains the packages installed.
    pub(crate) _in_use: EnvironmentUse,
}

/// Python process to run in a [`Workspace`](crate::Workspace).
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Arguments of Python, such as the path of the script.
    pub arguments: Vec<String>,
    /// Installed packages; none means the standard library only.
    pub packages: Option<ScriptEnvironment>,
    /// Environment variables, added to `PATH`, `HOME`, `TMPDIR`, `LANG` and `PYTHONUNBUFFERED`.
    pub environment: Variables,
    /// Network access.
    pub network: Network,
    /// Resource limits.
    pub limits: Limits,
    /// Length of the workspace's log, in bytes, when the process starts; output is appended.
    pub logged: u64,
}

/// Cause of a process's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// The process ended without intervention.
    Exited,
    /// It was cancelled.
    Cancelled,
    /// It exceeded [`Limits::wall_clock`].
    TimedOut,
    /// It exceeded [`Limits::memory`].
    Memory,
    /// It exceeded [`Limits::processes`], where the kernel does not enforce that limit.
    Processes,
    /// It exceeded [`Limits::scratch`].
    Scratch,
    /// The file system of its directories was almost full, perhaps by other causes.
    DiskFull,
}

/// Exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// Exit code.
    Code(i32),
    /// Number of the signal that killed it.
    Signal(i32),
}

/// Returns true if a line of standard error is the end of a report by Python that the kernel refused
/// memory, which [`Limits::memory`] limits for each process.
#[must_use]
pub fn is_refused_memory(line: &str) -> bool {
    // Such as `numpy._core._exceptions._ArrayMemoryError: Unable to allocate 2.00 GiB`.
    let kind = line.split(':').next().unwrap_or(line);
    kind.ends_with("MemoryError") && !kind.contains(char::is_whitespace)
}

/// Facts about a process that has ended. None of its descendants is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutcome {
    /// Cause of the end.
    pub cause: EndCause,
    /// Exit status of the process itself.
    pub exit: Exit,
    /// Last whole lines of standard error, at most
    /// [`ERROR_TAIL_BYTES`](crate::ERROR_TAIL_BYTES).
    pub error_tail: String,
    /// Length of the log, in bytes.
    pub logged: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_memory_is_an_error_of_python_or_numpy() {
        for (line, expected) in [
            ("MemoryError", true),
            ("MemoryError: std::bad_alloc", true),
            (
                "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 2.00 GiB",
                true,
            ),
            ("ValueError: a MemoryError", false),
            ("no MemoryError", false),
            ("", false),
        ] {
            assert_eq!(is_refused_memory(line), expected, "{line}");
        }
    }
}
