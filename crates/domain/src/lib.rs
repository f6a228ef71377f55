//! Entities, state machines and validation of the laboratory data platform.
//!
//! **Invariants.** No I/O, no `async`, no clock and no randomness: time, ids and random bytes are
//! inputs. State machines are enums that carry their state's data. A rule lives here or nowhere;
//! adapters and handlers only carry it out. `serde_json::Value` appears only where a person's own
//! JSON is stored as it is (`json` columns, defaults, filters).

pub mod actor;
pub mod api_key;
pub mod catalog;
pub mod data_write;
pub mod event;
pub mod execution;
pub mod file;
pub mod ids;
pub mod instrument;
pub mod job;
pub mod notification;
pub mod page;
pub mod query;
pub mod read;
pub mod revert;
pub mod run;
pub mod scalar;
pub mod scope;
pub mod tenancy;
pub mod timestamp;
