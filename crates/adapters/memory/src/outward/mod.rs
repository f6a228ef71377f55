//! Access for other programs, in memory: webhooks and SQL logins.

pub(crate) mod sql_logins;
mod webhook_outbox;
pub(crate) mod webhooks;
