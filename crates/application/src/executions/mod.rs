//! Executions and their ends.

pub mod cancel_execution;
pub mod close_execution;
pub(crate) mod end_agent_execution;
pub mod get_execution;
pub mod list_executions;
pub mod start_execution;
pub mod starters;
pub mod sweep_executions;
