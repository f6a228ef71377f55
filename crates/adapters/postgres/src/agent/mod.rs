//! The agent.

mod chats;
mod rows;
mod runs;
mod write_sessions;

pub use chats::PgChatRepository;
pub use runs::PgAgentRunRepository;
pub use write_sessions::PgWriteSessions;
