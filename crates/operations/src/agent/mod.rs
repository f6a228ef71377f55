//! Runs of the agent, and saved chats.

use crate::Operation;

pub mod cancel;
pub mod chats;
pub mod events;
pub mod mcp;
mod output;
pub mod result_view;
pub mod run;
pub mod usage;

pub use events::EventView;
pub use result_view::{ResultView, ToolCallView, UsageView};

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = vec![run::operation(), cancel::operation(), usage::operation()];
    operations.extend(chats::operations());
    operations.push(mcp::operation());
    operations
}
