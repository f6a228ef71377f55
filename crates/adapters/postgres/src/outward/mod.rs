//! What other programs reach from outside, or are told: SQL logins and webhooks.

pub(crate) mod sql_logins;
mod webhooks;

pub use sql_logins::PgSqlLoginRepository;
pub use webhooks::PgWebhookRepository;
