//! The agent.

mod chats;
mod rows;
mod runs;

pub use chats::PgChatRepository;
pub use runs::PgAgentRunRepository;
