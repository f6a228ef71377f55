//! Runs of the agent on a scripted model.

mod chats;
mod harness;
mod limits;
mod runs;
mod tools;
mod writes;
