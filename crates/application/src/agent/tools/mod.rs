//! Tools of the agent as a run sees them. What they do is declared with the operations of the API.

mod context;
mod registry;
mod tool;

pub use context::{RunWrites, ToolContext};
pub use registry::ToolRegistry;
pub use tool::{Tool, failure};
