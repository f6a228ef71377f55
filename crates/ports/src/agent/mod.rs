//! The agent: models and saved chats.

mod chats;
mod language_model;

pub use chats::{AppendError, ChatRepository, SavedChat};
pub use language_model::{AnswerPart, AnswerStream, LanguageModel, ModelRequest, ToolDefinition};
