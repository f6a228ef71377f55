//! The agent: runs that call tools, and saved chats.

mod admit_assistant;
mod call_tool;
pub mod cancel_run;
mod chat_files;
pub mod chats;
mod conversation;
mod events;
pub mod get_usage;
mod lease;
mod run_agent;
pub mod run_python;
mod service;
pub mod tools;
mod work;
pub mod write_in_run;
mod write_session;

pub use admit_assistant::admit_assistant;
pub use call_tool::call_tool;
pub use events::{AgentError, AgentEvent, AgentResult};
pub use lease::Pause;
pub use run_agent::{RunAgent, StartedRun, run_agent};
pub use service::{Agent, NoUsageObserver, UsageObserver};
pub use work::RunWork;
pub use write_session::end_write_sessions;
