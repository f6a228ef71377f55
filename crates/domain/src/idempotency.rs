//! Idempotency keys: how long responses are stored, and when they are replayed.

use time::{Duration, OffsetDateTime};

use crate::{
    catalog::TableIdentity,
    people::visible_tables::VisibleTables,
    refusal::{ErrorCode, Refuse},
};

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
    /// Tables whose data the body shows.
    pub tables: Vec<TableIdentity>,
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

    /// Returns it for a caller who may see these tables. Who may see a table can change without a change of the caller's
    /// rights.
    ///
    /// # Errors
    /// [`KeyReused::OtherRights`] if it shows data of another table.
    pub fn shown_to(self, visible: &VisibleTables) -> Result<Self, KeyReused> {
        if visible.include_all(&self.tables) {
            Ok(self)
        } else {
            Err(KeyReused::OtherRights)
        }
    }
}

/// Properties that a request has in common with its repetitions, beside its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of the body.
    pub body: [u8; 32],
    /// The caller's [`Rights::digest`](crate::people::rights::Rights::digest): the response may hold what the caller may
    /// not see any more.
    pub rights: [u8; 32],
}

/// A request that was answered, stored under its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// Fingerprint that a repetition must have as well.
    pub fingerprint: Fingerprint,
    /// When it was answered.
    pub answered_at: OffsetDateTime,
    /// The response.
    pub response: StoredResponse,
}

/// Error: the key was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyReused {
    /// The request had another body.
    #[error(
        "this key was used for a request with another body within the last {} hours; use a new one",
        RESPONSE_RETENTION.whole_hours()
    )]
    OtherBody,
    /// It was the same request, but the caller's role, groups or tables have changed since, or who may see a table of the
    /// response.
    #[error(
        "this request was done before, and what you may see has changed since, so its response is not repeated; do not \
         send it with a new key, which would do it twice, but look at what it did"
    )]
    OtherRights,
}

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
    /// [`KeyReused`] if the request has another fingerprint.
    pub fn replay(
        self,
        fingerprint: &Fingerprint,
        now: OffsetDateTime,
    ) -> Result<Option<StoredResponse>, KeyReused> {
        // Counts as absent even before the sweeper has deleted it.
        if self.has_expired(now) {
            Ok(None)
        } else if self.fingerprint.body != fingerprint.body {
            Err(KeyReused::OtherBody)
        } else if self.fingerprint.rights != fingerprint.rights {
            Err(KeyReused::OtherRights)
        } else {
            Ok(Some(self.response))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    const fn with(body: u8, rights: u8) -> Fingerprint {
        Fingerprint {
            body: [body; 32],
            rights: [rights; 32],
        }
    }

    fn answered() -> CompletedRequest {
        CompletedRequest {
            fingerprint: with(7, 0),
            answered_at: NOW,
            response: StoredResponse {
                status: 200,
                content_type: "application/json".to_owned(),
                body: b"{}".to_vec(),
                tables: Vec::new(),
            },
        }
    }

    #[test]
    fn the_same_request_gets_the_first_response_for_a_day() {
        let response = answered().response;
        let last = NOW + RESPONSE_RETENTION - Duration::MICROSECOND;
        for now in [NOW, last] {
            assert_eq!(
                answered().replay(&with(7, 0), now),
                Ok(Some(response.clone()))
            );
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
        let refused = KeyReused::OtherBody;
        assert_eq!(answered().replay(&with(8, 0), last), Err(refused));
        assert_eq!(answered().replay(&with(8, 1), last), Err(refused));
        assert_eq!(
            refused.to_string(),
            "this key was used for a request with another body within the last 24 hours; use a \
             new one"
        );
    }

    #[test]
    fn with_other_rights_the_response_is_not_repeated_and_no_new_key_advised() {
        let refused = KeyReused::OtherRights;
        assert_eq!(answered().replay(&with(7, 1), NOW), Err(refused));
        assert!(
            refused
                .to_string()
                .contains("do not send it with a new key")
        );
    }

    #[test]
    fn a_response_is_shown_to_who_may_see_all_its_tables() {
        let [one, other] = [1, 2].map(TableIdentity::Organization);
        let of = |tables: &[&TableIdentity]| StoredResponse {
            tables: tables.iter().map(|&table| table.clone()).collect(),
            ..answered().response
        };
        let visible = VisibleTables::Only([one.clone()].into());
        for tables in [&[][..], &[&one]] {
            assert_eq!(of(tables).shown_to(&visible), Ok(of(tables)));
        }
        let both = of(&[&one, &other]);
        let refused = both.clone().shown_to(&visible);
        assert_eq!(refused, Err(KeyReused::OtherRights));
        assert_eq!(both.clone().shown_to(&VisibleTables::All), Ok(both));
    }

    #[test]
    fn after_a_day_the_key_accepts_any_request() {
        let expired = NOW + RESPONSE_RETENTION;
        assert!(answered().has_expired(expired));
        for fingerprint in [with(7, 0), with(8, 0), with(7, 1)] {
            assert_eq!(answered().replay(&fingerprint, expired), Ok(None));
        }
    }
}
