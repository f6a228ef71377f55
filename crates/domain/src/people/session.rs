//! Sessions of browsers, and links that open them (contract §13).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

use super::{ApiKeyHash, FoundKey};
use crate::ids::{ApiKeyId, OrganizationId, UserId};

/// Time after which a session ends, however much it is used.
pub const SESSION_LIFETIME: Duration = Duration::days(7);

/// Time without use after which a session ends.
pub const SESSION_PAUSE: Duration = Duration::hours(12);

/// Time for which a link to sign in can be used.
pub const LINK_LIFETIME: Duration = Duration::minutes(30);

/// Number of sessions that rest on one key. One more ends the oldest of them.
pub const MAX_SESSIONS_PER_KEY: usize = 100;

/// A session's last use is noted at most this often.
const TOUCH_EVERY: Duration = Duration::minutes(1);

/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Plain text of the token of a session or a link. Never stored, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainToken(String);

impl std::fmt::Debug for PlainToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlainToken(…)")
    }
}

impl PlainToken {
    /// Makes a token of random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Parses a token; `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == TOKEN_BYTES).then(|| Self(text.to_owned()))
    }

    /// Returns the hash that is stored of the token.
    #[must_use]
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the token, to be handed to its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Session of a browser. It stands for an API key.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Hash of its token.
    pub token: ApiKeyHash,
    /// Organization of the key.
    pub organization: OrganizationId,
    /// The key whose user and scopes it has.
    pub api_key: ApiKeyId,
    /// When it began.
    pub created_at: OffsetDateTime,
    /// Approximate time of its last use.
    pub last_used_at: OffsetDateTime,
}

impl Session {
    /// A session that begins now.
    #[must_use]
    pub const fn begin(
        token: ApiKeyHash,
        organization: OrganizationId,
        api_key: ApiKeyId,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            token,
            organization,
            api_key,
            created_at: now,
            last_used_at: now,
        }
    }

    /// Returns true until it has lasted too long or was not used for too long.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        now < self.ends_at() && now < self.last_used_at + SESSION_PAUSE
    }

    /// When it ends, however much it is used.
    #[must_use]
    pub fn ends_at(&self) -> OffsetDateTime {
        self.created_at + SESSION_LIFETIME
    }

    /// Returns true if its use now is worth a note.
    #[must_use]
    pub fn is_due_for_touch(&self, now: OffsetDateTime) -> bool {
        now - self.last_used_at >= TOUCH_EVERY
    }
}

/// A session found by its token, and the key on which it rests.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// The session.
    pub session: Session,
    /// Its key.
    pub key: FoundKey,
}

impl FoundSession {
    /// Returns true if the session and its key are valid.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        // Revoking the key that signed in ends its sessions at once.
        self.session.is_valid(now) && self.key.is_valid(now)
    }
}

/// Link that opens a session of a user once.
#[derive(Clone, Copy, Debug)]
pub struct SignInLink {
    /// Hash of its token.
    pub token: ApiKeyHash,
    /// Organization of the user.
    pub organization: OrganizationId,
    /// The user who is signed in.
    pub user: UserId,
    /// From when on it is refused.
    pub expires_at: OffsetDateTime,
}

impl SignInLink {
    /// Returns true until it expires.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        now < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn a_token_reads_back_and_shows_nothing() {
        let token = PlainToken::from_random([7; 32]);
        assert_eq!(token.reveal().len(), 43);
        assert_eq!(PlainToken::parse(token.reveal()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "PlainToken(…)");
        for text in [
            "",
            "x",
            &token.reveal()[1..],
            "ldk_aaaaaaaa_0123456789abcdef",
        ] {
            assert_eq!(PlainToken::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_session_ends_after_a_pause_and_after_a_week() {
        let token = PlainToken::from_random([7; 32]).hash();
        let organization = OrganizationId::new(Uuid::nil());
        let mut session = Session::begin(token, organization, ApiKeyId::new(Uuid::nil()), NOW);
        let second = Duration::SECOND;
        assert!(session.is_valid(NOW + SESSION_PAUSE - second));
        assert!(!session.is_valid(NOW + SESSION_PAUSE));
        session.last_used_at = NOW + SESSION_LIFETIME - second;
        assert!(session.is_valid(NOW + SESSION_LIFETIME - second));
        assert!(!session.is_valid(NOW + SESSION_LIFETIME));
        assert!(!session.is_due_for_touch(session.last_used_at + Duration::seconds(59)));
        assert!(session.is_due_for_touch(session.last_used_at + Duration::seconds(60)));
    }

    #[test]
    fn a_link_is_refused_once_it_expires() {
        let link = SignInLink {
            token: PlainToken::from_random([7; 32]).hash(),
            organization: OrganizationId::new(Uuid::nil()),
            user: UserId::new(Uuid::nil()),
            expires_at: NOW,
        };
        assert!(link.is_valid(NOW - Duration::SECOND));
        assert!(!link.is_valid(NOW));
    }
}
