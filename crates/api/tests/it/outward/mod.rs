//! What other programs are told: webhooks.

mod receiver;
mod webhooks;
