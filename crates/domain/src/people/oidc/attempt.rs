//! A sign-in between the platform, a browser and the provider.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use time::OffsetDateTime;

use super::ATTEMPT_LIFETIME;
use crate::{notifications::is_platform_path, people::ApiKeyHash};

/// Length of the random part, of the end, and of the signature.
const SECRET: usize = 32;
const END: usize = 8;
const MAC: usize = 32;

/// Maximum number of bytes of a path to return to.
const MAX_RETURN_PATH: usize = 1_000;

/// Path of the platform to which a sign-in returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnPath(String);

impl ReturnPath {
    /// Reads a path of the platform: no other site's address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_path = text.len() <= MAX_RETURN_PATH && is_platform_path(text) && text.is_ascii();
        is_path.then(|| Self(text.to_owned()))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ReturnPath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

/// A sign-in that has begun. The browser holds it in a cookie; state, nonce and verifier are derived from its
/// secret, so they belong to that browser and to no other sign-in.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInAttempt {
    secret: [u8; SECRET],
    ends_at: i64,
    /// Path to return to.
    pub return_to: ReturnPath,
}

impl std::fmt::Debug for SignInAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignInAttempt(…)")
    }
}

impl SignInAttempt {
    /// A sign-in that begins now, with random bytes.
    #[must_use]
    pub fn begin(secret: [u8; SECRET], return_to: ReturnPath, now: OffsetDateTime) -> Self {
        Self {
            secret,
            ends_at: (now + ATTEMPT_LIFETIME).unix_timestamp(),
            return_to,
        }
    }

    /// The value of the cookie, signed by the platform.
    #[must_use]
    pub fn seal(&self, platform: &[u8; 32]) -> String {
        let mut bytes = self.secret.to_vec();
        bytes.extend_from_slice(&self.ends_at.to_be_bytes());
        bytes.extend_from_slice(self.return_to.as_str().as_bytes());
        bytes.extend_from_slice(&mac(platform, &bytes).finalize().into_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cookie; `None` unless the platform signed it and it has not ended.
    #[must_use]
    pub fn open(platform: &[u8; 32], cookie: &str, now: OffsetDateTime) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (signed, given) = bytes.split_at_checked(bytes.len().checked_sub(MAC)?)?;
        mac(platform, signed).verify_slice(given).ok()?;
        let (secret, rest) = signed.split_at_checked(SECRET)?;
        let (ends_at, path) = rest.split_at_checked(END)?;
        let ends_at = i64::from_be_bytes(ends_at.try_into().ok()?);
        let attempt = Self {
            secret: secret.try_into().ok()?,
            ends_at,
            return_to: ReturnPath::parse(std::str::from_utf8(path).ok()?)?,
        };
        (now.unix_timestamp() < ends_at).then_some(attempt)
    }

    /// The parameter `state`.
    #[must_use]
    pub fn state(&self) -> String {
        self.derive("state")
    }

    /// Returns whether the callback's `state` is that of this sign-in; in constant time.
    #[must_use]
    pub fn has_state(&self, state: &str) -> bool {
        self.state().as_bytes().ct_eq(state.as_bytes()).into()
    }

    /// The parameter `nonce`, which the provider's token repeats.
    #[must_use]
    pub fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// The verifier of PKCE.
    #[must_use]
    pub fn verifier(&self) -> String {
        self.derive("verifier")
    }

    /// The challenge of PKCE: S256 of the verifier.
    #[must_use]
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier()))
    }

    /// Hash by which it is noted as used.
    #[must_use]
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(Sha256::digest(self.secret).into())
    }

    /// When it ends.
    #[must_use]
    pub fn ends_at(&self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.ends_at).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    fn derive(&self, purpose: &str) -> String {
        let mac = mac(&self.secret, purpose.as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }
}

/// Starts the HMAC-SHA256 of some bytes.
fn mac(secret: &[u8; 32], bytes: &[u8]) -> Hmac<Sha256> {
    // HMAC pads a shorter key with zeros to a block of its hash.
    let mut block = [0; 64];
    let (start, _) = block.split_at_mut(32);
    start.copy_from_slice(secret);
    Hmac::<Sha256>::new(&block.into()).chain_update(bytes)
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const PLATFORM: [u8; 32] = [3; 32];

    fn attempt(secret: u8) -> SignInAttempt {
        let path = ReturnPath::parse("/console/tables?name=sample").unwrap();
        SignInAttempt::begin([secret; 32], path, NOW)
    }

    #[test]
    fn a_cookie_reads_back_until_it_ends() {
        let cookie = attempt(1).seal(&PLATFORM);
        let open = |at| SignInAttempt::open(&PLATFORM, &cookie, at);
        assert_eq!(open(NOW), Some(attempt(1)));
        assert_eq!(
            open(NOW + ATTEMPT_LIFETIME - Duration::SECOND),
            Some(attempt(1))
        );
        assert_eq!(open(NOW + ATTEMPT_LIFETIME), None);
    }

    #[test]
    fn no_other_cookie_is_read() {
        let cookie = attempt(1).seal(&PLATFORM);
        assert_eq!(SignInAttempt::open(&[4; 32], &cookie, NOW), None);
        for index in 0..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let opened = SignInAttempt::open(&PLATFORM, &changed, NOW);
            // The last character has unused bits.
            assert!(opened.is_none() || opened == Some(attempt(1)), "{index}");
        }
        for text in ["", "AAAA", "!"] {
            assert_eq!(SignInAttempt::open(&PLATFORM, text, NOW), None);
        }
    }

    #[test]
    fn each_attempt_has_values_of_its_own() {
        let (one, other) = (attempt(1), attempt(2));
        let values = [one.state(), one.nonce(), one.verifier(), one.challenge()];
        for (index, value) in values.iter().enumerate() {
            assert_eq!(value.len(), 43);
            assert!(!values[index + 1..].contains(value));
        }
        assert!(one.has_state(&one.state()));
        assert!(!one.has_state(&other.state()));
        assert!(!one.has_state(""));
        assert_ne!(one.nonce(), other.nonce());
    }

    #[test]
    fn only_paths_of_the_platform_are_returned_to() {
        for path in ["/", "/console/", "/jobs/1?tab=runs"] {
            assert!(ReturnPath::parse(path).is_some(), "{path}");
        }
        for path in [
            "",
            "console",
            "//evil.example.org",
            "/\\evil.example.org",
            "https://evil.example.org",
            "/a\r\nSet-Cookie: x",
            "javascript:alert(1)",
            "/\u{e9}",
        ] {
            assert!(ReturnPath::parse(path).is_none(), "{path:?}");
        }
    }
}
