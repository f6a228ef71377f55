//! What other programs reach, or are told: SQL logins and webhooks.

pub(crate) mod receiver;
mod sql_logins;
mod webhooks;
