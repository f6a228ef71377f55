//! Runs job scripts as processes of this machine.
//!
//! Each run has a supervisor ([`supervise`]), a process of its own that isolates the script as far
//! as the kernel allows ([`Isolation`]), holds its limits, and leaves nothing of it behind; it dies
//! with the platform. Dependencies that a script declares are installed first, by `uv`, into an
//! environment that the organization's runs with the same declaration share and cannot write; then
//! that environment's Python runs the script. A script without dependencies needs Python only.
//!
//! ```text
//! <data dir>/jobs/workers/<n>/<run>/   a run: script/, scratch/, tmp/, log/; gone when reaped
//! <data dir>/jobs/workers/<n>.lock     held as long as the runner lives
//! <data dir>/jobs/cache/<organization>/uv, envs    what preparations wrote
//! <data dir>/jobs/ready/<organization>/<env>       says that an environment is whole
//! <data dir>/jobs/tools/               the fetched uv, if there is one
//! ```
//!
//! **Invariants.** Nothing of the server's environment reaches a script; a preparation gets where
//! to find packages ([`PASSED_TO_PREPARATION`]) and no more. What a script can write is in its
//! run's directory, which no other run sees. `unsafe` is one call of `fork`, in the supervisor.

mod dependencies;
mod ground;
mod log_segments;
mod places;
mod prepare;
mod python;
mod run;
mod runner;
mod step;
mod supervisor;
mod uv;

use std::{ffi::OsString, path::PathBuf};

pub use dependencies::PASSED_TO_PREPARATION;
pub use runner::LocalRunner;
pub use supervisor::{Isolation, supervise};

/// How a [`LocalRunner`] works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The platform's data directory, absolute.
    pub data_dir: PathBuf,
    /// The program that calls [`supervise`], and its arguments.
    pub supervisor: Vec<OsString>,
    /// The Python that runs scripts; `python3` of the path when none is named.
    pub python: Option<PathBuf>,
    /// The uv that installs dependencies; when none is named, that of the path, or else a pinned
    /// one that is fetched once.
    pub uv: Option<PathBuf>,
    /// The most isolation to ask for; less is used where the kernel allows no more.
    pub isolation: Isolation,
}

impl Settings {
    /// The settings with that data directory and supervisor, and all else as it is best.
    #[must_use]
    pub fn new(data_dir: PathBuf, supervisor: Vec<OsString>) -> Self {
        Self {
            data_dir,
            supervisor,
            python: None,
            uv: None,
            isolation: Isolation::Namespaces,
        }
    }
}
