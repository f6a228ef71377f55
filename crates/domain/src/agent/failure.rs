//! Failures of a model's provider.

use std::fmt;

use super::text::start;

use crate::{
    ids::ExecutionId,
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Maximum number of bytes of a provider's message that people are displayed.
pub const MAX_PROVIDER_MESSAGE: usize = 500;

/// Why a model gave no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelFailure {
    /// A setting is missing.
    #[error("the agent is not set up: the operator has to set {0}")]
    NotConfigured(&'static str),
    /// The provider refused the request.
    #[error("the provider of the model answered {status}: {message}")]
    Refused {
        /// Its HTTP status.
        status: u16,
        /// Seconds after which it wants to be asked again.
        retry_after: Option<u32>,
        /// Its message, without secrets ([`provider_message`]).
        message: String,
    },
    /// The provider sent nothing for that many seconds.
    #[error("the provider of the model sent nothing for {0} s")]
    Timeout(u64),
    /// No connection could be made, or it broke before the response began.
    #[error("the provider of the model cannot be reached: {0}")]
    Unreachable(String),
    /// It sent something of that media type in place of a stream.
    #[error("the provider of the model answered {0}, not a stream: check LABDATA_LLM_BASE_URL")]
    NoStream(String),
    /// The response began and is not usable.
    #[error("the response of the provider of the model is not usable: {0}")]
    Broken(BrokenStream),
}

impl Refuse for ModelFailure {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotConfigured(_) => ErrorCode::AgentNotConfigured,
            Self::Refused { .. }
            | Self::Timeout(_)
            | Self::Unreachable(_)
            | Self::NoStream(_)
            | Self::Broken(_) => ErrorCode::ProviderFailed,
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Upstream
    }
}

/// Fault of a response that began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenStream {
    /// The connection broke.
    #[error("the connection broke")]
    Connection,
    /// It ended without the mark of its end.
    #[error("it broke off before its end")]
    NoEnd,
    /// A chunk of it cannot be read.
    #[error("a part of it is not what {0} sends")]
    Malformed(&'static str),
    /// A chunk of a tool call does not say which call it belongs to.
    #[error("a part of a tool call has no index")]
    NoIndex,
    /// Two tool calls have the same index.
    #[error("two tool calls have the same index")]
    CollidingIndex,
    /// It is longer than the platform reads.
    #[error("it is too long")]
    TooLong,
    /// The provider reported an error in the middle of it.
    #[error("the provider reported: {0}")]
    Reported(String),
}

/// Failure of a run that had begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Why the model gave no further response.
    pub failure: ModelFailure,
    /// The execution that the run has written under.
    pub execution: Option<ExecutionId>,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, execution } = self;
        write!(f, "{failure}")?;
        match execution {
            None => Ok(()),
            Some(id) => write!(
                f,
                "; what the run wrote before it failed is under job execution {id}, which can be reverted"
            ),
        }
    }
}

impl std::error::Error for RunFailure {}

impl Refuse for RunFailure {
    fn code(&self) -> ErrorCode {
        self.failure.code()
    }

    fn kind(&self) -> RefusalKind {
        self.failure.kind()
    }
}

impl ModelFailure {
    /// True if the same request may succeed a moment later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            // Timeouts, rate limits and faults of the server pass; other refusals would come again.
            Self::Refused { status, .. } => matches!(*status, 408 | 429 | 500..=599),
            Self::Unreachable(_) => true,
            // Parts of a broken response may already have reached the user, and a page of another server, such as a
            // login, is there on the next try as well.
            Self::NotConfigured(_) | Self::Timeout(_) | Self::NoStream(_) | Self::Broken(_) => {
                false
            }
        }
    }
}

/// Message of a provider as people may see it: one line, without the secret, with its length bounded.
#[must_use]
pub fn provider_message(message: &str, secret: Option<&str>) -> String {
    let message = match secret.filter(|secret| !secret.is_empty()) {
        // Providers repeat a refused key in their message.
        Some(secret) => message.replace(secret, "…"),
        None => message.to_owned(),
    };
    // One line, because the message becomes part of a sentence.
    let words: Vec<&str> = message
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    if line.is_empty() {
        return "no message".to_owned();
    }
    let displayed = start(&line, MAX_PROVIDER_MESSAGE);
    if displayed.len() < line.len() {
        format!("{displayed}…")
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_for_the_moment_are_transient() {
        let refused = |status| ModelFailure::Refused {
            status,
            retry_after: None,
            message: String::new(),
        };
        for status in [408, 429, 500, 503, 529] {
            assert!(refused(status).is_transient(), "{status}");
        }
        for status in [400, 401, 403, 404, 422] {
            assert!(!refused(status).is_transient(), "{status}");
        }
        assert!(ModelFailure::Unreachable(String::new()).is_transient());
        assert!(!ModelFailure::Timeout(60).is_transient());
        assert!(!ModelFailure::Broken(BrokenStream::NoEnd).is_transient());
    }

    #[test]
    fn a_failure_names_the_execution_of_what_was_written() {
        let id = ExecutionId::new(uuid::Uuid::from_u128(7));
        let failed = |execution| RunFailure {
            failure: ModelFailure::Timeout(60),
            execution,
        };
        let said = failed(None).to_string();
        assert_eq!(said, ModelFailure::Timeout(60).to_string());
        let said = failed(Some(id)).to_string();
        assert!(said.contains(&format!("job execution {id}")), "{said}");
    }

    #[test]
    fn a_provider_does_not_repeat_the_key_nor_write_lines() {
        let message = provider_message("Incorrect key sk-1\r\n  provided: sk-1", Some("sk-1"));
        assert_eq!(message, "Incorrect key … provided: …");
        assert_eq!(provider_message("a\0b", Some("")), "a b");
        assert_eq!(provider_message(" \n", None), "no message");
        let long = provider_message(&"ä".repeat(1_000), None);
        assert_eq!(long.len(), MAX_PROVIDER_MESSAGE + "…".len());
    }
}
