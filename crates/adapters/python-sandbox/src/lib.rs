//! Runs the agent's Python snippets in the sandbox.
//!
//! Each snippet gets a process without network, in a workspace that is removed when it ends. The process
//! runs the embedded program `harness/snippet.py`, whose packages (numpy, pandas, pyarrow, scipy, matplotlib
//! and Plotly) are installed at the first use of a server. Code and inputs reach it over its standard
//! input, and everything that it responds comes over its standard output: no file that a snippet made is
//! ever opened by the platform.
//!
//! **Invariants.** Everything that a process sends is untrusted: lengths, numbers and types are checked
//! before it is used. A process never outlives its snippet, and a snippet never its caller.

mod packages;
mod process;
mod report;
mod request;
mod sandbox;
mod settings;

pub use sandbox::SnippetSandbox;
pub use settings::SnippetSettings;
