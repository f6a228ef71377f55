//! Claims of the provider's ID token, whose signature was checked before.

use std::fmt;

use time::{Duration, OffsetDateTime};

/// Difference between the clocks of provider and platform that is tolerated.
const LEEWAY: Duration = Duration::minutes(1);

/// Age at which a token is refused although it has not expired.
const MAX_AGE: Duration = Duration::minutes(10);

/// Claims of an ID token.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IdTokenClaims {
    /// `iss`
    pub issuer: String,
    /// `sub`
    pub subject: String,
    /// `aud`, one or several.
    pub audiences: Vec<String>,
    /// `azp`
    pub authorized_party: Option<String>,
    /// `exp`, in seconds.
    pub expires_at: i64,
    /// `iat`, in seconds.
    pub issued_at: i64,
    /// `nonce`
    pub nonce: Option<String>,
}

impl fmt::Debug for IdTokenClaims {
    /// Without the nonce, which proves that a sign-in is the caller's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdTokenClaims")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("audiences", &self.audiences)
            .field("authorized_party", &self.authorized_party)
            .field("expires_at", &self.expires_at)
            .field("issued_at", &self.issued_at)
            .finish_non_exhaustive()
    }
}

/// Values that the claims must have.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedClaims<'a> {
    /// The issuer, letter by letter.
    pub issuer: &'a str,
    /// The platform's client id.
    pub client_id: &'a str,
    /// The nonce of the sign-in; `None` for a refresh, which has none.
    pub nonce: Option<&'a str>,
    /// The person, of a refresh.
    pub subject: Option<&'a str>,
    /// Current time.
    pub now: OffsetDateTime,
}

/// Error: claims are not accepted. For the log, not for the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClaims {
    /// Another provider issued it.
    #[error("another issuer")]
    Issuer,
    /// It is for another client, or for several of which this one is not the authorized one.
    #[error("another audience")]
    Audience,
    /// It has expired.
    #[error("expired")]
    Expired,
    /// It was issued too long ago, or in the future.
    #[error("issued too long ago or in the future")]
    IssuedAt,
    /// It belongs to another sign-in.
    #[error("another nonce")]
    Nonce,
    /// It names no person, or another one.
    #[error("another subject")]
    Subject,
}

impl IdTokenClaims {
    /// Checks the claims (OpenID Connect Core 1.0, 3.1.3.7 and 12.2).
    ///
    /// # Errors
    /// The first claim that is not as expected.
    pub fn check(&self, expected: &ExpectedClaims<'_>) -> Result<(), InvalidClaims> {
        if self.issuer != expected.issuer {
            return Err(InvalidClaims::Issuer);
        }
        if !self.audiences.iter().any(|it| it == expected.client_id) {
            return Err(InvalidClaims::Audience);
        }
        // A token for several clients says which of them asked for it.
        let party = self.authorized_party.as_deref();
        let is_own = match party {
            Some(party) => party == expected.client_id,
            None => self.audiences.len() == 1,
        };
        if !is_own {
            return Err(InvalidClaims::Audience);
        }
        let now = expected.now.unix_timestamp();
        let leeway = LEEWAY.whole_seconds();
        if self.expires_at.saturating_add(leeway) <= now {
            return Err(InvalidClaims::Expired);
        }
        let age = now.saturating_sub(self.issued_at);
        if age < -leeway || age > MAX_AGE.whole_seconds() {
            return Err(InvalidClaims::IssuedAt);
        }
        if expected.nonce.is_some() && self.nonce.as_deref() != expected.nonce {
            return Err(InvalidClaims::Nonce);
        }
        // OpenID Connect Core 1.0, section 2: at most 255 ASCII characters. PostgreSQL stores no NUL.
        let is_person = (1..=255).contains(&self.subject.len())
            && self
                .subject
                .bytes()
                .all(|byte| (b' '..=b'~').contains(&byte));
        if !is_person || expected.subject.is_some_and(|it| it != self.subject) {
            return Err(InvalidClaims::Subject);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> ExpectedClaims<'static> {
        ExpectedClaims {
            issuer: "https://id.example.org",
            client_id: "lab",
            nonce: Some("n-1"),
            subject: None,
            now: OffsetDateTime::UNIX_EPOCH + Duration::hours(1),
        }
    }

    fn claims() -> IdTokenClaims {
        IdTokenClaims {
            issuer: "https://id.example.org".to_owned(),
            subject: "ada".to_owned(),
            audiences: vec!["lab".to_owned()],
            authorized_party: None,
            expires_at: 3_900,
            issued_at: 3_590,
            nonce: Some("n-1".to_owned()),
        }
    }

    #[test]
    fn claims_of_this_sign_in_are_accepted() {
        assert_eq!(claims().check(&expected()), Ok(()));
        let both = IdTokenClaims {
            audiences: vec!["other".to_owned(), "lab".to_owned()],
            authorized_party: Some("lab".to_owned()),
            ..claims()
        };
        assert_eq!(both.check(&expected()), Ok(()));
        let refreshed = IdTokenClaims {
            nonce: None,
            ..claims()
        };
        let expected = ExpectedClaims {
            nonce: None,
            subject: Some("ada"),
            ..expected()
        };
        assert_eq!(refreshed.check(&expected), Ok(()));
    }

    #[test]
    fn every_claim_that_differs_is_refused() {
        let owned = |text: &str| text.to_owned();
        // Each with a change of the claims that are right.
        let check = |change: &dyn Fn(&mut IdTokenClaims), problem| {
            let mut claims = claims();
            change(&mut claims);
            assert_eq!(claims.check(&expected()), Err(problem), "{claims:?}");
        };
        check(
            &|it| it.issuer = owned("https://id.example.org/"),
            InvalidClaims::Issuer,
        );
        check(
            &|it| it.issuer = owned("https://evil.example.org"),
            InvalidClaims::Issuer,
        );
        check(
            &|it| it.audiences = vec![owned("other")],
            InvalidClaims::Audience,
        );
        check(&|it| it.audiences = Vec::new(), InvalidClaims::Audience);
        check(
            &|it| it.audiences = vec![owned("lab"), owned("other")],
            InvalidClaims::Audience,
        );
        check(
            &|it| it.authorized_party = Some(owned("other")),
            InvalidClaims::Audience,
        );
        check(&|it| it.expires_at = 3_540, InvalidClaims::Expired);
        check(&|it| it.issued_at = 3_661, InvalidClaims::IssuedAt);
        check(&|it| it.issued_at = 2_999, InvalidClaims::IssuedAt);
        check(&|it| it.issued_at = i64::MIN, InvalidClaims::IssuedAt);
        check(&|it| it.nonce = Some(owned("n-2")), InvalidClaims::Nonce);
        check(&|it| it.nonce = None, InvalidClaims::Nonce);
        check(&|it| it.subject = String::new(), InvalidClaims::Subject);
        check(&|it| it.subject = owned("a\0da"), InvalidClaims::Subject);
        let other = ExpectedClaims {
            subject: Some("eve"),
            ..expected()
        };
        assert_eq!(claims().check(&other), Err(InvalidClaims::Subject));
    }
}
