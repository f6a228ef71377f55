//! Idempotency keys: how long responses are stored, and when they are replayed.

use time::{Duration, OffsetDateTime};

use crate::refusal::{ErrorCode, Refuse};

/// Retention of stored responses.
pub const RESPONSE_RETENTION: Duration = Duration::hours(24);

/// Maximum size of a stored response in bytes. Ordinary responses of creations have less than 1 MiB.
pub const MAX_STORED_BYTES: usize = 4 << 20;

/// A response, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body's media type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Error: the response to a request with an idempotency key is too large to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the response has {bytes} bytes, of which at most {} MiB are stored for an Idempotency-Key, so nothing \
     was done: do less per request, leave out return_rows, or send it without the header",
    MAX_STORED_BYTES >> 20
)]
pub struct ResponseTooLarge {
    /// Its size.
    pub bytes: usize,
}

impl Refuse for ResponseTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::ResultTooLarge
    }
}

impl StoredResponse {
    /// Checks the size of a body before it is stored.
    ///
    /// # Errors
    /// [`ResponseTooLarge`] over [`MAX_STORED_BYTES`].
    pub const fn check_size(bytes: usize) -> Result<(), ResponseTooLarge> {
        if bytes > MAX_STORED_BYTES {
            return Err(ResponseTooLarge { bytes });
        }
        Ok(())
    }
}

/// A request that was answered, stored under its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// SHA-256 of the request's body.
    pub body_sha256: [u8; 32],
    /// When it was answered.
    pub answered_at: OffsetDateTime,
    /// The response.
    pub response: StoredResponse,
}

/// Error: the key was used for a request with another body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this key was used for a request with another body within the last {} hours; use a new one",
    RESPONSE_RETENTION.whole_hours()
)]
pub struct KeyReused;

/// The time at which responses expire: those of this time and before have expired.
#[must_use]
pub fn expired_at(now: OffsetDateTime) -> OffsetDateTime {
    now - RESPONSE_RETENTION
}

impl CompletedRequest {
    /// Returns true if the stored response no longer counts.
    #[must_use]
    pub fn has_expired(&self, now: OffsetDateTime) -> bool {
        self.answered_at <= expired_at(now)
    }

    /// The response to replay to a request with the same key; `None` if it has expired, so that the
    /// request runs.
    ///
    /// # Errors
    /// [`KeyReused`] if the request has another body.
    pub fn replay(
        self,
        body_sha256: &[u8; 32],
        now: OffsetDateTime,
    ) -> Result<Option<StoredResponse>, KeyReused> {
        // Counts as absent even before the sweeper has deleted it.
        if self.has_expired(now) {
            Ok(None)
        } else if self.body_sha256 == *body_sha256 {
            Ok(Some(self.response))
        } else {
            Err(KeyReused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn answered() -> CompletedRequest {
        CompletedRequest {
            body_sha256: [7; 32],
            answered_at: NOW,
            response: StoredResponse {
                status: 200,
                content_type: "application/json".to_owned(),
                body: b"{}".to_vec(),
            },
        }
    }

    #[test]
    fn the_same_request_gets_the_first_response_for_a_day() {
        let response = answered().response;
        let last = NOW + RESPONSE_RETENTION - Duration::MICROSECOND;
        for now in [NOW, last] {
            assert_eq!(answered().replay(&[7; 32], now), Ok(Some(response.clone())));
        }
    }

    #[test]
    fn a_response_is_stored_up_to_its_limit() {
        assert_eq!(StoredResponse::check_size(MAX_STORED_BYTES), Ok(()));
        let bytes = MAX_STORED_BYTES + 1;
        let refused = StoredResponse::check_size(bytes);
        assert_eq!(refused, Err(ResponseTooLarge { bytes }));
    }

    #[test]
    fn another_body_under_the_key_is_refused_for_a_day() {
        let last = NOW + RESPONSE_RETENTION - Duration::MICROSECOND;
        assert_eq!(answered().replay(&[8; 32], last), Err(KeyReused));
        assert_eq!(
            KeyReused.to_string(),
            "this key was used for a request with another body within the last 24 hours; use a \
             new one"
        );
    }

    #[test]
    fn after_a_day_the_key_accepts_any_request() {
        let expired = NOW + RESPONSE_RETENTION;
        assert!(answered().has_expired(expired));
        for body in [[7; 32], [8; 32]] {
            assert_eq!(answered().replay(&body, expired), Ok(None));
        }
    }
}
