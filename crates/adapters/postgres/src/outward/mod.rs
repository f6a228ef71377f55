//! Access for other programs: SQL logins and webhooks.

pub(crate) mod sql_logins;
pub(crate) mod webhooks;

pub use sql_logins::PgSqlLoginRepository;
pub use webhooks::PgWebhookRepository;
