//! Refusals of requests about webhooks.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

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

/// Error: a key that is narrowed to tables would manage webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this API key is narrowed to some tables, and webhooks are sent events of all tables: use another key"
)]
pub struct NarrowedWebhooks;

impl Refuse for NarrowedWebhooks {
    fn code(&self) -> ErrorCode {
        ErrorCode::KeyNarrowed
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}
