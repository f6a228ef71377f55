//! Reads files of instruments in the sandbox, with allotropy.
//!
//! Each file gets a process without network, in a workspace that is removed when it ends. The process runs the
//! embedded program `reader/`, whose packages are locked by version and hash (`reader/requirements.txt`) and
//! installed at the first use of a server. Request and file reach it over its standard input, the result comes
//! over its standard output.
//!
//! **Invariants.** Everything that a process sends is untrusted. A process never outlives its reading, and a
//! reading never its caller.

use std::path::Path;

use labdata_sandbox::{PLATFORM_SCOPE, has_package};

mod packages;
mod process;
mod program;
mod reader;
mod settings;

pub use program::{REQUIREMENTS, program};
pub use reader::SandboxFileReader;
pub use settings::FileReaderSettings;

/// Returns true if the packages of readers are installed below that data directory. Reads only. Blocks.
#[must_use]
pub fn is_prepared(data_dir: &Path) -> bool {
    has_package(data_dir, PLATFORM_SCOPE, "allotropy")
}
