//! The agent in memory.

mod chats;
mod language_model;

pub(crate) use chats::ChatRow;
pub use chats::InMemoryChatRepository;
pub use language_model::{ScriptedAnswer, ScriptedModel};
