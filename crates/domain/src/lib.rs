//! Entities, state machines and validation of the laboratory data platform.
//!
//! **Invariants.** No I/O, no `async`, no clock and no randomness: time, ids and random bytes are
//! inputs. State machines are enums that carry their state's data. A rule lives here or nowhere;
//! adapters and handlers only carry it out. `serde_json::Value` appears only where a person's own
//! JSON is stored as it is (`json` columns, defaults, filters).

pub mod agent;
pub mod audit;
pub mod catalog;
pub mod conflict;
pub mod data;
pub mod events;
pub mod executions;
pub mod files;
pub mod html;
pub mod idempotency;
pub mod ids;
pub mod instruments;
pub mod jobs;
pub mod models;
pub mod names;
pub mod notifications;
mod numbers;
pub mod outward;
pub mod page;
pub mod patterns;
pub mod people;
pub mod refusal;
pub mod scalar;
pub mod storage;
pub mod timestamp;
pub mod trash;
pub mod triggers;
pub mod work;
