//! The provider: code flow, refresh.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use labdata_domain::people::oidc::{ExpectedClaims, Groups, SignInAttempt};
use labdata_http_client::Authorities;
use labdata_ports::{
    Clock,
    people::oidc::{Identity, IdentityProvider, ProviderError},
};
use labdata_redacted::Secret;
use url::Url;

use crate::{
    jwt::{Claims, Unverified},
    metadata::{Metadata, is_safe},
    published::{CACHED_FOR, Cache, KEYS_EVERY, Published},
    requests::{Client, Tokens, invalid},
    sealing::Sealing,
};

/// Start of the issuers of Entra ID, which says in a separate claim that an address is of the tenant's domain.
const ENTRA: &str = "https://login.microsoftonline.com/";

/// Settings of a provider.
#[derive(Clone, Debug)]
pub struct OidcProviderSettings {
    /// Issuer, as its tokens name it.
    pub issuer: String,
    /// Id of the platform at the provider.
    pub client_id: String,
    /// Secret of the platform at the provider; none for a public client.
    pub client_secret: Option<Secret>,
    /// Scopes, separated by blanks.
    pub scopes: String,
    /// Name of the claim with the groups.
    pub groups_claim: String,
}

/// Checks an issuer: https, or http on this machine, without query and fragment.
///
/// # Errors
/// The reason, in one line.
pub fn check_issuer(issuer: &str) -> Result<(), String> {
    let is_plain = !issuer.contains(['?', '#']);
    if is_plain && is_safe(issuer) {
        Ok(())
    } else {
        Err("an issuer is an https URL; http is accepted on this machine only".to_owned())
    }
}

/// An `OpenID` provider.
pub struct OidcProvider {
    settings: OidcProviderSettings,
    client: Client,
    sealing: Sealing,
    clock: Arc<dyn Clock>,
    cache: Cache,
}

impl std::fmt::Debug for OidcProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcProvider")
            .field("issuer", &self.settings.issuer)
            .finish_non_exhaustive()
    }
}

impl OidcProvider {
    /// A provider of these settings; it is not contacted yet. Refresh tokens are sealed under `secret`.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn new(
        settings: OidcProviderSettings,
        authorities: Authorities,
        secret: &[u8; 32],
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        check_issuer(&settings.issuer)?;
        let (id, password) = (settings.client_id.clone(), settings.client_secret.clone());
        Ok(Self {
            client: Client::new(id, password, authorities)?,
            settings,
            sealing: Sealing::new(secret).ok_or("no sealing of tokens")?,
            clock,
            cache: Cache::default(),
        })
    }

    async fn published(&self, max_age: Duration) -> Result<Published, ProviderError> {
        let issuer = &self.settings.issuer;
        self.cache.get(&self.client, issuer, max_age).await
    }

    /// The claims of an ID token that a key of the provider signed.
    async fn claims(&self, token: &str) -> Result<Claims, ProviderError> {
        let unverified = Unverified::read(token).ok_or_else(|| invalid("a malformed ID token"))?;
        if let Some(claims) = unverified.verify(&self.published(CACHED_FOR).await?.keys) {
            return Ok(claims);
        }
        // The provider may have rotated its keys. Not more often, so that forged tokens cannot make it be asked.
        let newer = self.published(KEYS_EVERY).await?;
        unverified
            .verify(&newer.keys)
            .ok_or_else(|| invalid("an ID token that no key of the provider signed"))
    }

    /// The person of tokens, whose ID token must be as expected.
    async fn identity(
        &self,
        metadata: &Metadata,
        tokens: &Tokens,
        expected: &ExpectedClaims<'_>,
    ) -> Result<Identity, ProviderError> {
        let token = tokens
            .id_token
            .as_deref()
            .ok_or_else(|| invalid("no ID token"))?;
        let claims = self.claims(token).await?;
        let checked = claims
            .id_token()
            .ok_or_else(|| invalid("an ID token without its claims"))?;
        checked
            .check(expected)
            .map_err(|error| invalid(error.to_string()))?;
        let mut person = self.person(&claims, checked.subject, tokens);
        if (person.email.is_none() || person.groups == Groups::Missing)
            && let Some(more) = self.userinfo(metadata, tokens, &person.subject).await?
        {
            let more = self.person(&more, person.subject.clone(), tokens);
            person.email = person.email.or(more.email);
            person.name = person.name.or(more.name);
            if person.groups == Groups::Missing {
                person.groups = more.groups;
            }
        }
        Ok(person)
    }

    /// The person of checked claims.
    fn person(&self, claims: &Claims, subject: String, tokens: &Tokens) -> Identity {
        let is_entra = self.settings.issuer.starts_with(ENTRA);
        let email = claims.verified_email();
        let refresh = tokens.refresh_token.as_deref();
        Identity {
            issuer: self.settings.issuer.clone(),
            email: email.or_else(|| claims.email_of_own_domain().filter(|_| is_entra)),
            name: claims.name(),
            groups: claims.groups(&self.settings.groups_claim),
            refresh: refresh.and_then(|token| self.sealing.seal(token, &subject)),
            subject,
        }
    }

    /// Further claims about that person; `None` where the provider has none.
    async fn userinfo(
        &self,
        metadata: &Metadata,
        tokens: &Tokens,
        subject: &str,
    ) -> Result<Option<Claims>, ProviderError> {
        let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token) else {
            return Ok(None);
        };
        let claims = Claims(self.client.get(url, Some(token)).await?);
        // Of another person they would be another's e-mail address and groups.
        if claims.0.get("sub").and_then(serde_json::Value::as_str) != Some(subject) {
            return Err(invalid("the user info is another person's"));
        }
        Ok(Some(claims))
    }

    /// The claims that an ID token must have now.
    fn expected<'a>(
        &'a self,
        nonce: Option<&'a str>,
        subject: Option<&'a str>,
    ) -> ExpectedClaims<'a> {
        ExpectedClaims {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce,
            subject,
            now: self.clock.now(),
        }
    }
}

/// Checks the issuer of a callback (RFC 9207): that of another provider must not reach this one.
fn check_callback(
    own: &str,
    metadata: &Metadata,
    presented: Option<&str>,
) -> Result<(), ProviderError> {
    match presented {
        Some(issuer) if issuer != own => Err(invalid("a callback of another issuer")),
        None if metadata.authorization_response_iss_parameter_supported => {
            Err(invalid("a callback without its issuer"))
        }
        _ => Ok(()),
    }
}

#[async_trait]
impl IdentityProvider for OidcProvider {
    async fn check(&self) -> Result<(), ProviderError> {
        let published = self.published(Duration::ZERO).await?;
        if published.keys.is_empty() {
            return Err(invalid("the provider publishes no key for signatures"));
        }
        Ok(())
    }

    async fn authorization_url(
        &self,
        attempt: &SignInAttempt,
        redirect_uri: &str,
    ) -> Result<String, ProviderError> {
        let metadata = self.published(CACHED_FOR).await?.metadata;
        let mut url = Url::parse(&metadata.authorization_endpoint)
            .map_err(|error| invalid(error.to_string()))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &self.settings.scopes)
            .append_pair("state", &attempt.state())
            .append_pair("nonce", &attempt.nonce())
            .append_pair("code_challenge", &attempt.challenge())
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    async fn exchange(
        &self,
        attempt: &SignInAttempt,
        code: &str,
        issuer: Option<&str>,
        redirect_uri: &str,
    ) -> Result<Identity, ProviderError> {
        let metadata = self.published(CACHED_FOR).await?.metadata;
        check_callback(&self.settings.issuer, &metadata, issuer)?;
        let (verifier, nonce) = (attempt.verifier(), attempt.nonce());
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier.as_str()),
        ];
        let tokens = self.client.tokens(&metadata, &grant).await?;
        let expected = self.expected(Some(&nonce), None);
        self.identity(&metadata, &tokens, &expected).await
    }

    async fn refresh(&self, sealed: &[u8], subject: &str) -> Result<Identity, ProviderError> {
        let opened = self.sealing.open(sealed, subject);
        let token = opened.ok_or_else(|| ProviderError::Refused("unreadable_token".to_owned()))?;
        let metadata = self.published(CACHED_FOR).await?.metadata;
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
        ];
        let mut tokens = self.client.tokens(&metadata, &grant).await?;
        // A provider that does not rotate its tokens sends none.
        if tokens.refresh_token.is_none() {
            tokens.refresh_token = Some(token);
        }
        if tokens.id_token.is_some() {
            let expected = self.expected(None, Some(subject));
            return self.identity(&metadata, &tokens, &expected).await;
        }
        // A refresh need not bring an ID token; then the user info has the claims.
        let claims = self.userinfo(&metadata, &tokens, subject).await?;
        let claims = claims.ok_or_else(|| invalid("a refresh without a person"))?;
        Ok(self.person(&claims, subject.to_owned(), &tokens))
    }
}
