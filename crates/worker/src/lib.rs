//! The background worker: claims, runs and ends runs, and does the periodic tasks.
//!
//! **Invariants.** Depends on `application` and knows neither HTTP nor an adapter. Calls use cases
//! only, never a port. A decision about a run is a use case's; this crate decides only when to ask.

mod background;
mod periodic;
mod runs;
#[cfg(test)]
mod testing;
mod trainings;
mod work;

pub use background::{Background, MailSettings, WorkerSettings};
pub use periodic::{NoObserver, TaskObserver};
pub use runs::RunWorkerSettings;
pub use trainings::TrainingWorkerSettings;
pub use work::workload::{BackendSettings, PATIENCE};
