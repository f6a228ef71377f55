//! Packages that scripts declare in their inline metadata (PEP 723), and the wheel of the Python client.
//!
//! A script that depends on [`CLIENT`] gets the client of this program, even if a package index has a package
//! of that name. The dependencies of the client come from the index.

mod client_wheel;
mod script_metadata;

pub use client_wheel::{CLIENT, CLIENT_WHEEL, ClientWheel};
pub use script_metadata::ScriptMetadata;
