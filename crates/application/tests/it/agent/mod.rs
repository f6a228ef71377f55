//! Runs of the agent on a scripted model.

mod assistants;
mod cancelled;
mod chats;
mod harness;
mod limits;
mod model_tools;
mod python;
mod runs;
mod tools;
mod writes;
