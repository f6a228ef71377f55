//! Access for other programs: webhooks and SQL logins.

pub mod sql_logins;
pub mod webhooks;
