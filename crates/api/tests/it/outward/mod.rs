//! What other programs use from outside: SQL logins and webhooks.

pub(crate) mod receiver;
mod sql_logins;
mod webhooks;
