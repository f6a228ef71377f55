//! Streams of the agent: runs, and files of chats.

pub mod chat_file;
mod events;
pub mod run;
