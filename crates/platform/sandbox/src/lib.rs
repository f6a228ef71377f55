//! Isolated processes with limits, and Python environments made by uv.
//!
//! Each process has a supervisor ([`supervise`]), which isolates it as far as the kernel allows
//! ([`Isolation`]), enforces its limits, and ends only when none of its descendants is left. The
//! supervisor dies with the process that started it. Dependencies that a script declares are first
//! installed by uv into an environment that all scripts of the same scope and declaration share and
//! cannot write. A script without dependencies needs only Python.
//!
//! ```text
//! <data dir>/jobs/workers/<n>/<name>/   workspace: script/, scratch/, tmp/, log/
//! <data dir>/jobs/workers/<n>.lock      held while the sandbox exists
//! <data dir>/jobs/cache/<scope>/uv, envs    written by installations
//! <data dir>/jobs/ready/<scope>/<env>   marks an environment as complete
//! <data dir>/jobs/tools/                the wheel of the Python client, and the fetched uv, if any
//! /var/lib/labdata/accounts/<uid>       allocation of accounts, if the platform is root
//! ```
//!
//! **Invariants.** No port, no domain. The environment of this process never reaches a sandboxed
//! one; an installation receives only the package index, proxy and certificate settings
//! ([`INSTALL_VARIABLES`]). A process can write only to its own workspace, which no other process
//! sees. `unsafe` is one call of `fork`, in the supervisor. Results are facts ([`ProcessOutcome`]):
//! the caller decides what they mean.

mod accounts;
mod blocking;
#[cfg(target_os = "linux")]
mod cgroups;
mod confinement;
mod dependency_cache;
mod descriptors;
mod directories;
mod error;
mod file_system;
pub mod frames;
mod host;
mod install_access;
mod installation_start;
mod isolation_trial;
mod launch;
mod log_segments;
mod network;
mod package_index;
mod pipes;
mod platform_program;
mod process;
mod python;
mod readable_paths;
mod sandbox;
mod script_environment;
mod script_metadata;
mod settings;
mod spec;
mod supervisor;
mod uv;

pub use confinement::confine_to_pipes;
pub use dependency_cache::has_package;
pub use directories::{ActiveWorkspace, Workspace, remove_leftovers};
pub use error::SandboxError;
pub use host::HostCapabilities;
pub use labdata_python_packages::DeclaredPackages;
pub use log_segments::{LOG_SEGMENT_BYTES, LogSlice};
pub use network::{NetworkSettings, is_permitted};
pub use pipes::{ProcessPipes, Streams, process_pipes};
pub use platform_program::{PlatformProgram, ProgramDefinition, ProgramError};
pub use process::{KillOnDrop, StopHandle, StopRequest, StopSignal, stop_channel};
pub use python::Python;
pub use sandbox::Sandbox;
pub use script_environment::{EnvironmentOutcome, EnvironmentRequest, PLATFORM_SCOPE};
pub use script_metadata::INSTALL_VARIABLES;
pub use settings::Settings;
pub use spec::{
    EndCause, Exit, Isolation, Limits, Network, ProcessOutcome, ProcessSpec, ScriptEnvironment,
    is_refused_memory,
};
pub use supervisor::{ERROR_TAIL_BYTES, supervise};
pub use uv::Uv;
