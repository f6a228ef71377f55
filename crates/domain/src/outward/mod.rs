//! What other programs reach from outside, or are told: webhooks and SQL logins.

pub mod sql_logins;
pub mod webhooks;
