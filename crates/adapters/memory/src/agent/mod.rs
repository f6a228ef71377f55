//! The agent in memory.

mod chats;
mod language_model;
mod runs;

pub(crate) use chats::ChatRow;
pub use chats::InMemoryChatRepository;
pub use language_model::{ScriptedAnswer, ScriptedModel};
pub(crate) use runs::AgentRunRow;
pub use runs::InMemoryAgentRunRepository;
