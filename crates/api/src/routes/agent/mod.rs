//! `/api/v1/agent`: runs of the agent, and saved chats.

pub mod cancel;
pub mod chats;
pub mod event_view;
mod events;
mod output;
pub mod result_view;
pub mod run;
pub mod usage;

pub use event_view::EventView;
pub use result_view::{ResultView, ToolCallView, UsageView};
