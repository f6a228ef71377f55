//! The background worker: claims, runs and ends runs, and does the periodic tasks.
//!
//! **Invariants.** Depends on `application` and knows neither HTTP nor an adapter. Calls use cases
//! for every decision about work; this crate decides only when to ask. It waits on the queue and on
//! job backends by their ports.

mod background;
mod mail_settings;
mod periodic;
#[cfg(test)]
mod testing;
mod webhooks;
mod work;

pub use background::{Background, WorkerSettings};
pub use mail_settings::MailSettings;
pub use periodic::{NoObserver, TaskObserver};
pub use webhooks::WebhookSettings;
pub use work::{BACKEND_TIMEOUT, BackendSettings, WorkSettings};
