//! Tokens with which trainings report to the platform: one per claim, valid while its lease exists.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::ids::ModelVersionId;

/// Prefix of every token.
const MARK: &str = "ldt_";

/// Plain text of a token: `ldt_<version>_<secret>`. Never stored, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainReportToken {
    text: String,
    version: ModelVersionId,
}

impl fmt::Debug for PlainReportToken {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainReportToken")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl PlainReportToken {
    /// Makes a token of random bytes for the training of a version.
    #[must_use]
    pub fn from_random(version: ModelVersionId, secret: [u8; 32]) -> Self {
        let secret = URL_SAFE_NO_PAD.encode(secret);
        Self {
            text: format!("{MARK}{}_{secret}", version.as_uuid().simple()),
            version,
        }
    }

    /// Parses a token; `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (version, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        let version = ModelVersionId::new(Uuid::try_parse(version).ok()?);
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        let parsed = Self::from_random(version, secret);
        // Tokens are compared by the hash of their text, and `Uuid` reads
        // ids that are spelled otherwise.
        (parsed.text == text).then_some(parsed)
    }

    /// Returns the version that is trained.
    #[must_use]
    pub const fn version(&self) -> ModelVersionId {
        self.version
    }

    /// Returns the hash that is stored of the token.
    #[must_use]
    pub fn hash(&self) -> ReportTokenHash {
        ReportTokenHash(Sha256::digest(self.text.as_bytes()).into())
    }

    /// Returns the whole token, for the training.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

/// SHA-256 of a whole token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportTokenHash(pub [u8; 32]);

impl ReportTokenHash {
    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> PlainReportToken {
        PlainReportToken::from_random(ModelVersionId::new(Uuid::from_u128(7)), [9; 32])
    }

    #[test]
    fn a_token_names_its_version_and_is_known_by_its_hash() {
        let read = PlainReportToken::parse(token().reveal()).unwrap();
        assert_eq!(read.version(), token().version());
        assert!(read.hash().matches(&token().hash()));
        let other = PlainReportToken::from_random(token().version(), [8; 32]);
        assert!(!other.hash().matches(&token().hash()));
    }

    #[test]
    fn any_other_text_is_no_token() {
        let text = token().reveal().to_owned();
        for other in [
            "",
            "ldt_",
            &text[1..],
            &text[..text.len() - 1],
            &text.replace("ldt_", "ldk_"),
            &text.to_uppercase(),
        ] {
            assert_eq!(PlainReportToken::parse(other), None, "{other}");
        }
    }

    #[test]
    fn debug_output_omits_the_secret() {
        let presented = format!("{:?}", token());
        assert!(!presented.contains(token().reveal().rsplit('_').next().unwrap()));
    }
}
