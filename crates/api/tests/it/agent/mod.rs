//! `/api/v1/agent`

mod budget;
mod cancelled;
mod chats;
mod failed;
mod faults;
mod growth_curves;
mod injection;
mod killed_server;
pub(crate) mod lab;
mod requests;
mod runs;
