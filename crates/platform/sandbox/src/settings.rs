//! Settings of a sandbox.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::{network::NetworkSettings, spec::Isolation};

/// Configuration of a [`Sandbox`](crate::Sandbox).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Data directory of the platform, absolute.
    pub data_dir: PathBuf,
    /// Program that calls [`supervise`](crate::supervise), and its arguments.
    pub supervisor: Vec<OsString>,
    /// Python that runs scripts; default: `python3` of the path.
    pub python: Option<PathBuf>,
    /// uv that installs dependencies; default: that of the path, or a pinned one that is fetched
    /// once.
    pub uv: Option<PathBuf>,
    /// Strongest isolation to use. Weaker isolation, down to `minimum`, is used where the kernel does
    /// not allow it.
    pub isolation: Isolation,
    /// Least isolation under which processes run.
    pub minimum: Isolation,
    /// Interval at which stronger isolation is tried again after a trial that failed.
    pub retrial: Duration,
    /// Files and directories that all processes may read, besides the system and their packages.
    pub readable: Vec<PathBuf>,
    /// Files and directories that processes must not read, even below a path that they may read.
    pub hidden: Vec<PathBuf>,
    /// Maximum size of the installed dependencies of one scope, in bytes.
    pub cache_quota: u64,
    /// Network of scripts and installations.
    pub network: NetworkSettings,
}

impl Settings {
    /// Returns settings with that data directory and supervisor, and defaults for the rest.
    #[must_use]
    pub fn new(data_dir: PathBuf, supervisor: Vec<OsString>) -> Self {
        Self {
            data_dir,
            supervisor,
            python: None,
            uv: None,
            isolation: Isolation::Namespaces,
            minimum: Isolation::Landlock,
            retrial: Duration::from_mins(1),
            readable: Vec::new(),
            hidden: Vec::new(),
            cache_quota: 20 << 30,
            network: NetworkSettings::default(),
        }
    }
}
