//! The agent.

mod chats;
mod rows;

pub use chats::PgChatRepository;
