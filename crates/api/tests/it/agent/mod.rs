//! `/api/v1/agent`

mod budget;
mod cancelled;
mod chats;
mod faults;
mod lab;
mod requests;
mod runs;
