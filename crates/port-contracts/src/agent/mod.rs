//! Contracts of the ports of the agent.

pub mod chats;
pub mod language_model;
pub mod python;
pub mod runs;
pub mod write_sessions;
