//! The event log.

pub mod follow;
