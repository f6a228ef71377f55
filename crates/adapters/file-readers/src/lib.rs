//! Reads files of instruments in the sandbox, with allotropy.
//!
//! An organization's first file starts a process without network, in a workspace that is removed when it ends. The
//! process runs the embedded program `reader/`, whose packages are locked by version and hash
//! (`reader/requirements.txt`) and installed at the first use of a server. It imports all readers, then forks a
//! child for each file, and ends when it is idle. Request and file reach the child over its standard input, the
//! result comes over its standard output.
//!
//! **Invariants.** Everything that a process sends is untrusted. A process reads files of one organization only,
//! and never a file after one that ended without a result. A reading never outlives its caller.

use std::path::Path;

use labdata_sandbox::{PLATFORM_SCOPE, has_package};

mod pool;
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
