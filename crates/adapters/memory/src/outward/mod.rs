//! What other programs reach from outside, or are told, in memory: webhooks.

pub(crate) mod sql_logins;
pub(crate) mod webhooks;
