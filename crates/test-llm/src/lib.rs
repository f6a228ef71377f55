//! A scripted provider of language models, for tests. Only tests may use it.
//!
//! It speaks two dialects over plain TCP: chat completions (`…/chat/completions`) and messages
//! (`…/messages`), streaming and not. So a [`Reply`] is written once and works in both. Faults stand
//! in [`Fault`].
//!
//! ```no_run
//! # async fn example() {
//! use labdata_test_llm::{Provider, Reply};
//!
//! let provider = Provider::start().await;
//! provider.will(Reply::text("42"));
//! let base_url: String = provider.base_url();
//! # }
//! ```
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test without its provider can only fail"
)]

mod dialect;
mod provider;
mod reply;
mod request;

pub use provider::{Provider, Responder};
pub use reply::{Call, Fault, Reply, Usage};
pub use request::Request;
