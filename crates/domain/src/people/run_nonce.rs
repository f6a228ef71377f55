//! One-time nonces of runs. Where others see what a run is submitted with, it gets a nonce instead of
//! its key, and exchanges one for the other before its script starts.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    ids::{ExecutionId, OrganizationId, UserId},
    people::scope::Scopes,
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Time for which a nonce is valid, unless its run ends before. A Ray cluster lets a job wait for its
/// resources this long by default.
pub const NONCE_LIFETIME: Duration = Duration::minutes(15);

/// Prefix of every nonce.
const MARK: &str = "ldn_";

/// Plain text of a nonce: `ldn_<execution>-<attempt>_<secret>`. Never stored, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainRunNonce {
    text: String,
    execution: ExecutionId,
    attempt: u32,
}

impl fmt::Debug for PlainRunNonce {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainRunNonce")
            .field("execution", &self.execution)
            .field("attempt", &self.attempt)
            // The secret must not get into logs.
            .finish_non_exhaustive()
    }
}

impl PlainRunNonce {
    /// Makes a nonce of random bytes for an attempt at an execution.
    #[must_use]
    pub fn from_random(execution: ExecutionId, attempt: u32, secret: [u8; 32]) -> Self {
        let secret = URL_SAFE_NO_PAD.encode(secret);
        Self {
            text: format!("{MARK}{}-{attempt}_{secret}", execution.as_uuid().simple()),
            execution,
            attempt,
        }
    }

    /// Parses a nonce; `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (run, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        let (execution, attempt) = run.split_once('-')?;
        let execution = ExecutionId::new(Uuid::try_parse(execution).ok()?);
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        let parsed = Self::from_random(execution, attempt.parse().ok()?, secret);
        // UUIDs and numbers have several spellings, but only one was hashed.
        (parsed.text == text).then_some(parsed)
    }

    /// Returns the execution of the run.
    #[must_use]
    pub const fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the hash that is stored of the nonce.
    #[must_use]
    pub fn hash(&self) -> RunNonceHash {
        RunNonceHash(Sha256::digest(self.text.as_bytes()).into())
    }

    /// Returns the whole nonce, for the submission of the run.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

/// SHA-256 of a whole nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNonceHash(pub [u8; 32]);

impl RunNonceHash {
    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Stored record of a nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNonce {
    /// Organization of the run.
    pub organization: OrganizationId,
    /// Execution of the run.
    pub execution: ExecutionId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// User in whose name the run acts, to whom its key will belong.
    pub user: UserId,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// The hash of the whole nonce.
    pub hash: RunNonceHash,
    /// Expiry time.
    pub expires_at: OffsetDateTime,
    /// Expiry time of the key.
    pub key_expires_at: Option<OffsetDateTime>,
    /// Time of its use.
    pub used_at: Option<OffsetDateTime>,
}

/// Reason why a nonce does not give a key.
///
/// Only a caller that has the nonce learns more than [`Self::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NonceRefusal {
    /// It is not the nonce of a run that a worker holds.
    #[error("this nonce is unknown, or its run has ended")]
    Unknown,
    /// It expired before it was used.
    #[error("this nonce has expired: a run fetches its key within 15 minutes of its submission")]
    Expired,
    /// It was used before: one of both callers is not the run.
    #[error(
        "this nonce was used before, perhaps by someone who read it in the job backend; the key of the \
         run is revoked"
    )]
    Used,
}

impl Refuse for NonceRefusal {
    fn code(&self) -> ErrorCode {
        ErrorCode::CredentialInvalid
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unauthenticated
    }
}

/// Line in the log of a run whose nonce was used twice.
pub const NONCE_USED_TWICE: &str = "the key of this run was requested twice, perhaps by someone who read its nonce in the job \
     backend; the key is revoked";

impl RunNonce {
    /// Returns when a new nonce expires, given the expiry of the key.
    #[must_use]
    pub fn expiry(now: OffsetDateTime, key_expires_at: Option<OffsetDateTime>) -> OffsetDateTime {
        let latest = now + NONCE_LIFETIME;
        key_expires_at.map_or(latest, |end| end.min(latest))
    }

    /// Checks a nonce that a caller presents.
    ///
    /// # Errors
    /// [`NonceRefusal`].
    pub fn check(
        &self,
        presented: &PlainRunNonce,
        now: OffsetDateTime,
    ) -> Result<(), NonceRefusal> {
        // The secret first: without it, no one learns whether the nonce was used.
        if !self.hash.matches(&presented.hash()) {
            Err(NonceRefusal::Unknown)
        } else if self.used_at.is_some() {
            Err(NonceRefusal::Used)
        } else if self.expires_at <= now {
            Err(NonceRefusal::Expired)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn plain(secret: u8) -> PlainRunNonce {
        PlainRunNonce::from_random(ExecutionId::new(Uuid::from_u128(7)), 2, [secret; 32])
    }

    fn stored(presented: &PlainRunNonce) -> RunNonce {
        RunNonce {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            execution: presented.execution(),
            attempt: presented.attempt(),
            user: UserId::new(Uuid::from_u128(2)),
            scopes: Scopes::default(),
            hash: presented.hash(),
            expires_at: RunNonce::expiry(NOW, None),
            key_expires_at: None,
            used_at: None,
        }
    }

    #[test]
    fn a_nonce_reads_back_and_names_its_run() {
        // The secret contains the separators.
        for secret in [0, 0x3e, 0xff] {
            let nonce = plain(secret);
            let parsed = PlainRunNonce::parse(nonce.reveal()).unwrap();
            assert_eq!(parsed, nonce);
            assert_eq!((parsed.execution(), parsed.attempt()), (nonce.execution, 2));
        }
    }

    #[test]
    fn refuses_texts_that_are_no_nonces() {
        let whole = plain(7);
        let whole = whole.reveal();
        let changed = [
            String::new(),
            "ldn_".to_owned(),
            whole.replace("ldn_", "ldk_"),
            whole.replace("-2_", "-02_"),
            whole.replace("-2_", "-+2_"),
            whole.replace("-2_", "_"),
            whole.to_uppercase(),
            format!("{whole}="),
            format!(" {whole}"),
            whole[..whole.len() - 1].to_owned(),
        ];
        for text in changed {
            assert_eq!(PlainRunNonce::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn debug_never_shows_the_secret() {
        let nonce = plain(7);
        let (_, secret) = nonce.reveal().rsplit_once('_').unwrap();
        assert!(!format!("{nonce:?}").contains(secret));
    }

    #[test]
    fn a_nonce_gives_a_key_once_and_soon_and_only_to_its_holder() {
        let (presented, end) = (plain(7), NOW + NONCE_LIFETIME);
        let nonce = stored(&presented);
        assert_eq!(nonce.check(&presented, NOW), Ok(()));
        assert_eq!(nonce.check(&presented, end), Err(NonceRefusal::Expired));
        let used = RunNonce {
            used_at: Some(NOW),
            ..nonce
        };
        assert_eq!(used.check(&presented, NOW), Err(NonceRefusal::Used));
        assert_eq!(used.check(&presented, end), Err(NonceRefusal::Used));
        assert_eq!(used.check(&plain(8), NOW), Err(NonceRefusal::Unknown));
    }

    #[test]
    fn a_nonce_does_not_outlive_the_key() {
        let soon = NOW + Duration::minutes(1);
        assert_eq!(RunNonce::expiry(NOW, Some(soon)), soon);
        let late = NOW + Duration::days(1);
        assert_eq!(RunNonce::expiry(NOW, Some(late)), NOW + NONCE_LIFETIME);
    }
}
