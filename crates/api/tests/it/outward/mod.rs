//! Access for other programs: SQL logins and webhooks.

pub(crate) mod receiver;
mod sql_logins;
mod webhooks;
