//! The agent: runs that call tools, and saved chats.

pub mod chats;
mod events;
mod run_agent;
mod service;
mod slots;
pub mod tools;

pub use events::{AgentError, AgentEvent, AgentResult};
pub use run_agent::{RunAgent, run_agent};
pub use service::Agent;
pub use slots::RunSlots;
