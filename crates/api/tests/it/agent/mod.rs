//! `/api/v1/agent`

mod chats;
mod lab;
mod requests;
mod runs;
