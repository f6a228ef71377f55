//! The agent: models, Python snippets and saved chats.

mod chats;
mod language_model;
mod python;
mod runs;
mod write_sessions;

pub use chats::{AppendError, ChatRepository, SavedChat};
pub use language_model::{
    LanguageModel, ModelRequest, ResponsePart, ResponseStream, ToolDefinition,
};
pub use python::{PythonContent, PythonInput, PythonSandbox, PythonSnippet};
pub use runs::{AgentRunRepository, BeginRun, BeginRunError, DecideStart, RenewedRun};
pub use write_sessions::{IdleSession, WriteSessions};
