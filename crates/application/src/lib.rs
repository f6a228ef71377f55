//! The platform's use cases, one file each: the only callers of the ports.
//!
//! **Invariants.** A use case is a plain function: `async fn verb(ports: &Services, actor: &Actor,
//! command: Verb) -> Result<Thing, Error>`. It authorizes the actor before anything else. It
//! depends on ports, never on an adapter, and knows nothing of HTTP.

pub mod agent;
pub mod audit;
pub mod catalog;
pub mod data;
pub mod error;
pub mod events;
pub mod executions;
pub mod files;
pub mod idempotency;
pub mod instruments;
pub mod jobs;
pub mod maintenance;
pub mod models;
pub mod notifications;
pub mod outward;
pub mod people;
pub(crate) mod reading;
pub mod services;
pub mod slots;
pub mod subscription;
pub mod trash;
pub mod triggers;
pub mod work;

pub use error::Error;
pub use services::Services;
