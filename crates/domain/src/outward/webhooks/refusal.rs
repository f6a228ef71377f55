//! Refusals of requests about webhooks.

use crate::refusal::{ErrorCode, Refuse};

/// Largest number of webhooks of an organization.
pub const MAX_WEBHOOKS: u32 = 50;

/// Error: the organization has as many webhooks as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an organization has at most {MAX_WEBHOOKS} webhooks: delete one that is not needed")]
pub struct TooManyWebhooks;

impl Refuse for TooManyWebhooks {
    fn code(&self) -> ErrorCode {
        ErrorCode::TooManyWebhooks
    }
}

/// Error: a disabled webhook is to send something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this webhook is disabled: enable it first")]
pub struct WebhookDisabled;

impl Refuse for WebhookDisabled {
    fn code(&self) -> ErrorCode {
        ErrorCode::WebhookDisabled
    }
}
