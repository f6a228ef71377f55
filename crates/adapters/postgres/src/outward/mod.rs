//! What other programs reach from outside, or are told: webhooks.

mod webhooks;

pub use webhooks::PgWebhookRepository;
