//! What other programs use from outside, in memory: webhooks and SQL logins.

pub(crate) mod sql_logins;
pub(crate) mod webhooks;
