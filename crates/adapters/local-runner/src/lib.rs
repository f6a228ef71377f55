//! Runs job scripts as processes of this machine, in the sandbox.
//!
//! Each run has a workspace of the [`Sandbox`](labdata_sandbox::Sandbox): its dependencies are
//! installed first, then the script runs. This crate translates between the port and the sandbox.
//!
//! **Invariants.** No isolation, limit or installation logic: that is the sandbox's. Environments
//! are shared within an organization only, except for those whose dependencies the platform declares.
//! Nothing is reserved: limits alone bound a run.

mod run;
mod runner;

pub use runner::LocalRunner;
