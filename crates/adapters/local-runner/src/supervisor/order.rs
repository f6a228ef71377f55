//! What the runner and a supervisor tell each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How far a script is kept apart from the rest of the machine, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// It sees a file system with only what it may use, and no processes but its own, which end
    /// with it. Landlock and the limits apply as well, where the kernel has it.
    Namespaces,
    /// Landlock keeps it from files that it may not use and from other processes. Its descendants
    /// are found by their parents.
    Landlock,
    /// Its own session, directory, environment and limits: nothing keeps it from what the
    /// platform's account may do.
    Nothing,
}

/// What a supervisor is to run: a line of JSON behind its length, on its standard input. What
/// follows on standard input are [`CANCEL`] bytes; its end means "kill everything, now".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) isolation: Isolation,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// What may be read and executed. What does not exist is left out.
    pub(crate) readable: Vec<PathBuf>,
    /// What may be written.
    pub(crate) writable: Vec<PathBuf>,
    /// The directory that is `/tmp` where there is a file system of the script's own.
    pub(crate) temporary: PathBuf,
    /// An empty directory, in which that file system is put together.
    pub(crate) root: PathBuf,
    /// Where the log's segments are.
    pub(crate) log: PathBuf,
    /// How long the log is already.
    pub(crate) logged: u64,
    /// The user and group to become, where this process may.
    pub(crate) account: Option<u32>,
    pub(crate) limits: Limits,
}

/// What is enforced.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) wall_clock_ms: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) memory: u64,
    pub(crate) file_size: u64,
    pub(crate) processes: u64,
}

/// TERM to everything, and after a grace KILL.
pub(crate) const CANCEL: u8 = b'c';

/// What a supervisor tells: a line of JSON each, on its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The program could not be started as ordered; nothing ran.
    Failed(String),
    /// The log has that length now.
    Logged(u64),
    /// Nothing of it runs any more.
    Ended {
        cause: Cause,
        exit: Exit,
        /// The last lines of standard error.
        tail: String,
        /// The log's length.
        logged: u64,
    },
}

/// Who ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    Itself,
    Cancelled,
    TimedOut,
    Memory,
}

/// How the program's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}
