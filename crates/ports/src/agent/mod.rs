//! The agent: models and saved chats.

mod chats;
mod language_model;
mod runs;

pub use chats::{AppendError, ChatRepository, SavedChat};
pub use language_model::{AnswerPart, AnswerStream, LanguageModel, ModelRequest, ToolDefinition};
pub use runs::{AgentRunRepository, BeginRun, BeginRunError, DecideStart};
