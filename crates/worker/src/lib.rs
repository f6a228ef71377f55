//! The background worker: claims, runs and ends runs, and does the periodic tasks.
//!
//! **Invariants.** Depends on `application` and knows neither HTTP nor an adapter. A decision about
//! a run is a use case's; this crate decides only when to ask.

mod background;
mod runs;

pub use background::Background;
pub use runs::{PATIENCE, RunWorkerSettings};
