//! The event log.

pub mod follow_events;
pub mod sweep_events;
