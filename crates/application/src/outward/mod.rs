//! What other programs use from outside: webhooks and SQL logins.

pub mod sql_logins;
pub mod webhooks;
