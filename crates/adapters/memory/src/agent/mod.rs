//! The agent in memory.

mod chats;
mod language_model;
mod python;
mod runs;

mod write_sessions;

pub(crate) use chats::ChatRow;
pub use chats::InMemoryChatRepository;
pub use language_model::{ScriptedModel, ScriptedResponse};
pub use python::ScriptedPython;
pub(crate) use runs::AgentRunRow;
pub use runs::InMemoryAgentRunRepository;
pub use write_sessions::InMemoryWriteSessions;
pub(crate) use write_sessions::WriteSessionRow;
