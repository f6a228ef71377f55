//! Triggers and the events that fire them.

pub mod fire_triggers;
pub mod preview_schedule;
pub mod watch_events;
