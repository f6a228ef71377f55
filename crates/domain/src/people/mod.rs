//! API keys: text, hash, expiry and revocation.

pub mod actor;
pub mod author;
pub mod credential;
pub mod group;
pub mod invitation;
pub mod invitation_email;
pub mod oidc;
pub mod rights;
pub mod role;
pub mod run_key;
pub mod run_nonce;
pub mod scope;
pub mod session;
pub mod setup;
pub mod tenancy;
pub mod visible_tables;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use time::OffsetDateTime;

use crate::{
    catalog::{Catalog, TableIdentity},
    conflict::Conflict,
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{actor::Actor, rights::Rights, role::Role, scope::Scopes},
    refusal::{ErrorCode, Refuse},
};

/// Maximum number of characters of a key's name.
pub const MAX_NAME_LENGTH: usize = 200;

/// Prefix of every key.
const MARK: &str = "ldk_";
/// Length of a key's public part, by which it is found and displayed.
const PREFIX_LENGTH: usize = 8;
/// Minimum length of the secret part of a key chosen by an operator; generated ones have 43
/// characters (32 random bytes).
const SHORTEST_SECRET: usize = 16;

/// Plain text of a key: `ldk_<prefix>_<secret>`. Never stored, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainApiKey(String);

impl std::fmt::Debug for PlainApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlainApiKey({}…)", self.prefix())
    }
}

impl PlainApiKey {
    /// Makes a key of random bytes: five for the prefix, 32 for the secret.
    #[must_use]
    pub fn from_random(prefix: [u8; 5], secret: [u8; 32]) -> Self {
        Self(format!(
            "{MARK}{}_{}",
            base32(prefix),
            URL_SAFE_NO_PAD.encode(secret)
        ))
    }

    /// Parses a key; `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The first `_`: base64url secrets may contain it, prefixes cannot.
        let (prefix, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        let well_formed = prefix.len() == PREFIX_LENGTH
            && prefix
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && secret.len() >= SHORTEST_SECRET
            // Bounds what is hashed before the key is known to exist.
            && secret.len() <= 128
            && secret
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        well_formed.then(|| Self(text.to_owned()))
    }

    /// Returns the public part, by which a key is found.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.0
            .get(MARK.len()..MARK.len() + PREFIX_LENGTH)
            .unwrap_or_default()
    }

    /// Returns the hash that is stored of the key.
    #[must_use]
    pub fn hash(&self) -> ApiKeyHash {
        // A fast hash is enough for a random secret, and it is computed on every request.
        ApiKeyHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the whole key, to be displayed once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Encodes five bytes as eight lower-case base32 characters (alphabet of RFC 4648).
fn base32(bytes: [u8; 5]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let number = bytes
        .iter()
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    // 40 bits are exactly eight digits of 5 bits, so there is no padding.
    (0..PREFIX_LENGTH)
        .rev()
        .filter_map(|place| usize::try_from((number >> (5 * place)) & 31).ok())
        .filter_map(|index| ALPHABET.get(index).copied().map(char::from))
        .collect()
}

/// SHA-256 of a whole key, or of a token.
#[derive(Clone, Copy, Debug)]
pub struct ApiKeyHash(pub [u8; 32]);

impl ApiKeyHash {
    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        // Constant time: an early end would reveal how much of a guess is right.
        self.0.ct_eq(&other.0).into()
    }
}

/// Stored record of a key.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Id.
    pub id: ApiKeyId,
    /// Organization to which it gives access.
    pub organization: OrganizationId,
    /// User to whom it belongs.
    pub user: UserId,
    /// Display name.
    pub name: String,
    /// The public part of the key.
    pub prefix: String,
    /// The hash of the whole key.
    pub hash: ApiKeyHash,
    /// Scopes. The role of its user limits them.
    pub scopes: Scopes,
    /// The only tables that it concerns; `None` for all.
    pub tables: Option<Vec<TableIdentity>>,
    /// Execution of an ephemeral key.
    pub execution: Option<ExecutionId>,
    /// Creation time.
    pub created_at: OffsetDateTime,
    /// Expiry time.
    pub expires_at: Option<OffsetDateTime>,
    /// Approximate time of its last use.
    pub last_used_at: Option<OffsetDateTime>,
    /// Time of its revocation.
    pub revoked_at: Option<OffsetDateTime>,
}

impl ApiKey {
    /// Names of the only tables that it concerns, of those in a caller's view of the catalog; `None` for all.
    #[must_use]
    pub fn table_names(&self, catalog: &Catalog) -> Option<Vec<String>> {
        let tables = self.tables.as_ref()?;
        let known = catalog.tables().iter();
        let known = known.filter(|table| tables.contains(&table.identity()));
        let mut names: Vec<String> = known.map(|table| table.name.clone()).collect();
        names.sort_unstable();
        Some(names)
    }
}

/// API key found by its prefix, and what of its user decides whether it is valid.
#[derive(Clone, Debug)]
pub struct FoundKey {
    /// The key.
    pub key: ApiKey,
    /// Time since which the key's user is disabled.
    pub user_disabled_at: Option<OffsetDateTime>,
    /// Role of the key's user.
    pub role: Role,
    /// Names of the groups of the key's user.
    pub groups: Vec<String>,
}

impl FoundKey {
    /// Returns true if the presented key is this one and is valid now.
    #[must_use]
    pub fn admits(&self, presented: &PlainApiKey, now: OffsetDateTime) -> bool {
        self.key.admits(presented, now) && self.user_disabled_at.is_none()
    }

    /// The caller that presents the key, with the rights that it has now.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let rights = Rights::of(self.role, self.groups.iter().cloned());
        let rights = rights.narrowed_to(self.key.tables.as_deref());
        Actor {
            organization: self.key.organization,
            user: self.key.user,
            api_key: self.key.id,
            scopes: rights.effective(self.key.scopes),
            rights,
            execution: self.key.execution,
        }
    }

    /// Returns true if the key is neither revoked nor expired, and its user is not disabled.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        self.key.is_valid(now) && self.user_disabled_at.is_none()
    }
}

/// Error: a new key would have expired already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expires_at lies in the past")]
pub struct ExpiresInPast;

impl Refuse for ExpiresInPast {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidExpiry
    }
}

/// Error: a new key would be narrowed to a table that its maker does not see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tables: there is no table \"{0}\"")]
pub struct UnknownKeyTable(pub String);

impl Refuse for UnknownKeyTable {
    fn code(&self) -> ErrorCode {
        ErrorCode::UnknownTable
    }
}

/// Checks the expiry of a new key; `None` for a key that never expires.
///
/// # Errors
/// [`ExpiresInPast`].
pub fn check_expiry(
    expires_at: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<(), ExpiresInPast> {
    if expires_at.is_some_and(|end| end <= now) {
        Err(ExpiresInPast)
    } else {
        Ok(())
    }
}

impl ApiKey {
    /// Revokes the key. A key that is revoked already retains the time of its revocation.
    pub fn revoke(&mut self, now: OffsetDateTime) {
        // The first revocation counts: repeating it must not move the time.
        self.revoked_at.get_or_insert(now);
    }

    /// Notes a use of the key at that time. The time of its last use never moves back.
    pub fn note_use(&mut self, at: OffsetDateTime) {
        // Notes of uses may arrive out of order.
        self.last_used_at = self.last_used_at.max(Some(at));
    }

    /// The conflict of a key whose prefix another key has.
    #[must_use]
    pub fn prefix_taken(&self) -> Conflict {
        Conflict::KeyPrefix(self.prefix.clone())
    }

    /// Returns true if the presented key is this one and is valid now.
    #[must_use]
    pub fn admits(&self, presented: &PlainApiKey, now: OffsetDateTime) -> bool {
        self.hash.matches(&presented.hash()) && self.is_valid(now)
    }

    /// Returns true if the key is neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_has_the_documented_form_and_reads_back() {
        let key = PlainApiKey::from_random([0xff; 5], [7; 32]);
        assert_eq!(key.prefix(), "77777777");
        assert_eq!(key.reveal().len(), 4 + 8 + 1 + 43);
        assert_eq!(PlainApiKey::parse(key.reveal()), Some(key));
    }

    #[test]
    fn refuses_texts_that_are_no_keys() {
        for text in [
            "",
            "ldk_",
            "ldk_short_x",
            "LDK_aaaaaaaa_0123456789abcdef",
            "ldk_aaaaaaaa_0123456789abcde é",
        ] {
            assert_eq!(PlainApiKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn debug_never_shows_the_secret() {
        let key = PlainApiKey::from_random([1; 5], [7; 32]);
        assert!(!format!("{key:?}").contains(&key.reveal()[13..]));
    }

    #[test]
    fn the_prefix_is_the_base32_of_its_bytes() {
        let key = PlainApiKey::from_random(*b"hello", [7; 32]);
        assert_eq!(key.prefix(), "nbswy3dp");
        assert_eq!(format!("{key:?}"), "PlainApiKey(nbswy3dp…)");
    }

    #[test]
    fn each_part_of_a_key_is_checked() {
        let secret = "0123456789abc-_Z";
        let key =
            |prefix: &str, secret: &str| PlainApiKey::parse(&format!("ldk_{prefix}_{secret}"));
        assert!(key("abcd2345", secret).is_some());
        assert!(key("abcd2345", &"x".repeat(128)).is_some());
        for prefix in ["abcd234", "abcd23456", "Abcd2345", "abcd-345"] {
            assert_eq!(key(prefix, secret), None, "{prefix}");
        }
        let too_long = "x".repeat(129);
        for secret in ["0123456789abcde", "0123456789abcde.", &too_long] {
            assert_eq!(key("abcd2345", secret), None, "{secret}");
        }
    }

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn stored(presented: &PlainApiKey) -> ApiKey {
        ApiKey {
            id: ApiKeyId::new(uuid::Uuid::from_u128(1)),
            organization: OrganizationId::new(uuid::Uuid::from_u128(2)),
            user: UserId::new(uuid::Uuid::from_u128(3)),
            name: "laptop".to_owned(),
            prefix: presented.prefix().to_owned(),
            hash: presented.hash(),
            scopes: Scopes::default(),
            tables: None,
            execution: None,
            created_at: NOW,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn a_key_admits_its_holder_until_it_is_revoked_or_expires() {
        let now = NOW;
        let second = time::Duration::SECOND;
        let presented = PlainApiKey::from_random([1; 5], [7; 32]);
        let other = PlainApiKey::from_random([1; 5], [8; 32]);
        let lasting = stored(&presented);
        let key = ApiKey {
            expires_at: Some(now + second),
            ..lasting.clone()
        };
        assert!(key.admits(&presented, now));
        assert!(!key.admits(&other, now), "another secret");
        assert!(!key.admits(&presented, now + second), "expired");
        assert!(lasting.admits(&presented, now + second));
        assert!(!lasting.admits(&other, now + second));
        let revoked = ApiKey {
            revoked_at: Some(now),
            ..lasting
        };
        assert!(!revoked.admits(&presented, now));
    }

    #[test]
    fn a_key_of_a_disabled_user_admits_no_one() {
        let presented = PlainApiKey::from_random([1; 5], [7; 32]);
        let found = |user_disabled_at| FoundKey {
            key: stored(&presented),
            user_disabled_at,
            role: Role::Admin,
            groups: Vec::new(),
        };
        assert!(found(None).admits(&presented, NOW));
        assert!(!found(Some(NOW)).admits(&presented, NOW));
        let other = PlainApiKey::from_random([1; 5], [8; 32]);
        assert!(!found(None).admits(&other, NOW));
    }

    #[test]
    fn a_caller_has_the_rights_that_role_groups_and_key_allow() {
        let presented = PlainApiKey::from_random([1; 5], [7; 32]);
        let key = ApiKey {
            scopes: Scopes::all(),
            tables: Some(vec![TableIdentity::Organization(7)]),
            ..stored(&presented)
        };
        let found = FoundKey {
            key,
            user_disabled_at: None,
            role: Role::Viewer,
            groups: vec!["lab".to_owned()],
        };
        let actor = found.actor();
        assert_eq!(actor.scopes, Role::Viewer.scopes());
        assert_eq!(actor.rights.tables(), found.key.tables);
        assert_eq!((actor.user, actor.api_key), (found.key.user, found.key.id));
    }

    #[test]
    fn a_key_keeps_its_first_revocation_and_its_latest_use() {
        let second = time::Duration::SECOND;
        let mut key = stored(&PlainApiKey::from_random([1; 5], [7; 32]));
        for at in [NOW, NOW + second] {
            key.revoke(at);
            assert_eq!(key.revoked_at, Some(NOW));
        }
        for (at, latest) in [
            (NOW, NOW),
            (NOW + second, NOW + second),
            (NOW, NOW + second),
        ] {
            key.note_use(at);
            assert_eq!(key.last_used_at, Some(latest));
        }
    }
}
