//! Interfaces to the outside world, as object-safe traits.
//!
//! **Invariants.** Traits take `&self`, are `Send + Sync`, and are injected as `Arc<dyn …>`. One
//! semantic method is one atomic effect, so no transaction type leaks and a fake stays simple. The
//! organization is a mandatory argument of every tenant-scoped call, and an implementation MUST
//! respond to another organization's id exactly as for one that does not exist. Errors are what a
//! caller can act on, never HTTP and never a driver's.

pub mod agent;
pub mod audit;
pub mod catalog;
pub mod clock;
pub mod data;
pub mod error;
pub mod events;
pub mod executions;
pub mod files;
pub mod idempotency;
pub mod ids;
pub mod instruments;
pub mod jobs;
pub mod maintenance;
pub mod models;
pub mod notifications;
pub mod outward;
pub mod people;
pub mod ports;
pub mod reading;
pub mod repositories;
pub mod trash;
pub mod triggers;
pub mod work;

pub use clock::Clock;
pub use error::PortError;
pub use ids::IdSource;
pub use ports::Ports;
pub use repositories::Repositories;
