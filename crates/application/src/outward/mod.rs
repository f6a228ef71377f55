//! What other programs reach from outside, or are told: webhooks.

pub mod sql_logins;
pub mod webhooks;
