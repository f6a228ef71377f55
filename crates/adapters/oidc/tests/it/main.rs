//! Sign-ins at a small provider, and attacks on them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod provider;

use std::{sync::Arc, time::Duration};

use labdata_domain::people::oidc::{Groups, ReturnPath, SignInAttempt};
use labdata_http_client::Authorities;
use labdata_memory::FixedClock;
use labdata_oidc::{OidcProvider, OidcProviderSettings};
use labdata_ports::{
    Clock,
    people::oidc::{Identity, IdentityProvider, ProviderError},
};
use labdata_redacted::Secret;
use serde_json::{Value, json};

use self::provider::{CLIENT, Provider};

const CALLBACK: &str = "http://127.0.0.1:1/api/v1/session/oidc/callback";

struct Lab {
    provider: Provider,
    subject: OidcProvider,
    clock: Arc<FixedClock>,
}

impl Lab {
    async fn start() -> Self {
        let provider = Provider::start().await;
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let settings = OidcProviderSettings {
            issuer: provider.issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(Secret::new("a secret".to_owned())),
            scopes: "openid email".to_owned(),
            groups_claim: "groups".to_owned(),
        };
        let subject = OidcProvider::new(settings, Authorities::none(), &[7; 32], displayed);
        Self {
            provider,
            subject: subject.unwrap(),
            clock,
        }
    }

    fn attempt(&self, secret: u8) -> SignInAttempt {
        SignInAttempt::begin([secret; 32], ReturnPath::default(), self.clock.now())
    }

    /// Claims of a token of this sign-in.
    fn claims(&self, attempt: &SignInAttempt) -> Value {
        let now = self.clock.now().unix_timestamp();
        json!({
            "iss": self.provider.issuer, "sub": "ada", "aud": CLIENT, "nonce": attempt.nonce(),
            "iat": now, "exp": now + 300, "email": "ada@example.org", "email_verified": true,
            "name": "Ada", "groups": ["lab", "guests"],
        })
    }

    async fn exchange(
        &self,
        attempt: &SignInAttempt,
        token: String,
    ) -> Result<Identity, ProviderError> {
        self.provider
            .respond_with(json!({"id_token": token, "access_token": "a", "refresh_token": "r-1"}));
        self.subject.exchange(attempt, "code", None, CALLBACK).await
    }

    /// The result for claims that differ so.
    async fn with(&self, change: Value) -> Result<Identity, ProviderError> {
        let attempt = self.attempt(1);
        let mut claims = self.claims(&attempt);
        let change = change.as_object().unwrap().clone();
        claims.as_object_mut().unwrap().extend(change);
        self.exchange(&attempt, self.provider.sign(&claims)).await
    }
}

fn listed(groups: &[&str]) -> Groups {
    Groups::Listed(groups.iter().map(|&group| group.to_owned()).collect())
}

fn is_invalid<T>(result: &Result<T, ProviderError>) -> bool {
    matches!(result, Err(ProviderError::Invalid(_)))
}

#[tokio::test]
async fn a_person_signs_in_with_pkce_state_and_nonce() {
    let lab = Lab::start().await;
    let attempt = lab.attempt(1);
    let url = lab
        .subject
        .authorization_url(&attempt, CALLBACK)
        .await
        .unwrap();
    for part in [
        "response_type=code".to_owned(),
        format!("client_id={CLIENT}"),
        format!("state={}", attempt.state()),
        format!("nonce={}", attempt.nonce()),
        format!("code_challenge={}", attempt.challenge()),
        "code_challenge_method=S256".to_owned(),
        "scope=openid+email".to_owned(),
    ] {
        assert!(url.contains(&part), "{url} lacks {part}");
    }
    let identity = lab.with(json!({})).await.unwrap();
    assert_eq!(identity.subject, "ada");
    assert_eq!(identity.email.as_deref(), Some("ada@example.org"));
    assert_eq!(identity.groups, listed(&["lab", "guests"]));
    let form = lab.provider.last_form();
    assert!(
        form.contains(&format!("code_verifier={}", attempt.verifier())),
        "{form}"
    );
    assert!(
        !form.contains("secret"),
        "the secret is in the header: {form}"
    );
}

#[tokio::test]
async fn tokens_of_other_issuers_audiences_and_times_sign_nobody_in() {
    let lab = Lab::start().await;
    let now = lab.clock.now().unix_timestamp();
    for change in [
        json!({"iss": "https://evil.example.org"}),
        json!({"aud": "another client"}),
        json!({"aud": [CLIENT, "another client"]}),
        json!({"azp": "another client"}),
        json!({"exp": now - 120}),
        json!({"iat": now - 3_600}),
        json!({"iat": now + 3_600}),
        json!({"nonce": lab.attempt(2).nonce()}),
        json!({"nonce": null}),
        json!({"sub": ""}),
        json!({"exp": null}),
    ] {
        let result = lab.with(change.clone()).await;
        assert!(is_invalid(&result), "{change}: {result:?}");
    }
}

#[tokio::test]
async fn no_other_signature_counts() {
    let lab = Lab::start().await;
    let attempt = lab.attempt(1);
    let claims = lab.claims(&attempt);
    let signed = lab.provider.sign(&claims);
    let (body, signature) = signed.rsplit_once('.').unwrap();
    let (_, payload) = body.split_once('.').unwrap();
    let other = Provider::start().await;
    for (why, token) in [
        ("alg none", provider::unsigned(&claims)),
        ("a key of another provider", other.sign(&claims)),
        (
            "HS256 with the client's secret",
            provider::hmac_signed(&claims, b"a secret"),
        ),
        (
            "HS256 with the public key",
            provider::hmac_signed(&claims, &lab.provider.public_key()),
        ),
        (
            "another header",
            format!(
                "{}.{payload}.{signature}",
                provider::header("ES256", "other")
            ),
        ),
        ("no signature", format!("{body}.")),
        ("extensions", provider::critical(&lab.provider, &claims)),
        ("no token", "nonsense".to_owned()),
    ] {
        let result = lab.exchange(&attempt, token).await;
        assert!(is_invalid(&result), "{why}: {result:?}");
    }
    assert!(lab.exchange(&attempt, signed).await.is_ok());
}

#[tokio::test]
async fn a_key_that_the_provider_no_longer_publishes_signs_nobody_in() {
    let lab = Lab::start().await;
    let attempt = lab.attempt(1);
    let signed = lab.provider.sign(&lab.claims(&attempt));
    let other = Provider::start().await;
    lab.provider.publish_keys_of(&other);
    let result = lab.exchange(&attempt, signed).await;
    assert!(is_invalid(&result), "{result:?}");
    // A key without an id counts for tokens without one only if it signed them.
    let unnamed = lab.provider.sign_without_key_id(&lab.claims(&attempt));
    let result = lab.exchange(&attempt, unnamed).await;
    assert!(is_invalid(&result), "{result:?}");
}

#[tokio::test]
async fn a_token_of_an_unknown_key_is_refused_without_asking_over_and_over() {
    let lab = Lab::start().await;
    let attempt = lab.attempt(1);
    let claims = lab.claims(&attempt);
    for _ in 0..5 {
        let token = lab.provider.sign_with_key_id("unknown", &claims);
        assert!(is_invalid(&lab.exchange(&attempt, token).await));
    }
    assert_eq!(lab.provider.requests_for_keys(), 1);
}

#[tokio::test]
async fn a_provider_that_announces_its_issuer_in_callbacks_must_send_it() {
    let lab = Lab::start().await;
    lab.provider
        .change_document(&json!({"authorization_response_iss_parameter_supported": true}));
    let attempt = lab.attempt(1);
    let result = lab
        .exchange(&attempt, lab.provider.sign(&lab.claims(&attempt)))
        .await;
    assert!(is_invalid(&result), "{result:?}");
}

#[tokio::test]
async fn groups_that_the_provider_omits_are_none_and_are_said_to_be_omitted() {
    let lab = Lab::start().await;
    let overage = json!({"groups": null, "_claim_names": {"groups": "src1"},
        "_claim_sources": {"src1": {"endpoint": "https://evil.example.org"}}});
    assert_eq!(lab.with(overage).await.unwrap().groups, Groups::Omitted);
    let none = lab.with(json!({"groups": null})).await.unwrap();
    assert_eq!(none.groups, Groups::Missing);
}

#[tokio::test]
async fn user_info_counts_for_the_same_person_only() {
    let lab = Lab::start().await;
    let userinfo = format!("{}/userinfo", lab.provider.issuer);
    lab.provider
        .change_document(&json!({ "userinfo_endpoint": userinfo }));
    let ada = json!({"sub": "ada", "groups": ["lab"], "email": "ada@example.org", "email_verified": true});
    lab.provider.set_user_info(ada);
    let missing = json!({"groups": null, "email": null});
    let identity = lab.with(missing.clone()).await.unwrap();
    assert_eq!(identity.groups, listed(&["lab"]));
    assert_eq!(identity.email.as_deref(), Some("ada@example.org"));
    lab.provider
        .set_user_info(json!({"sub": "eve", "groups": ["lab-admins"]}));
    let result = lab.with(missing).await;
    assert!(is_invalid(&result), "{result:?}");
}

#[tokio::test]
async fn a_check_finds_a_provider_that_can_be_used() {
    let lab = Lab::start().await;
    assert_eq!(lab.subject.check().await, Ok(()));
    let without = Lab::start().await;
    without.provider.publish_no_keys();
    assert!(is_invalid(&without.subject.check().await));
}

#[tokio::test]
async fn an_address_counts_only_if_it_is_verified() {
    let lab = Lab::start().await;
    for change in [
        json!({"email_verified": false}),
        json!({"email_verified": null}),
        json!({"email_verified": 1}),
        json!({"email_verified": "false"}),
    ] {
        let identity = lab.with(change.clone()).await.unwrap();
        assert_eq!(identity.email, None, "{change}");
    }
}

#[tokio::test]
async fn a_code_that_the_provider_refuses_signs_nobody_in() {
    let lab = Lab::start().await;
    lab.provider.refuse("invalid_grant");
    let result = lab
        .subject
        .exchange(&lab.attempt(1), "used", None, CALLBACK)
        .await;
    assert_eq!(
        result.unwrap_err(),
        ProviderError::Refused("invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn callbacks_of_another_provider_are_refused() {
    let lab = Lab::start().await;
    let attempt = lab.attempt(1);
    lab.provider
        .respond_with(json!({"id_token": lab.provider.sign(&lab.claims(&attempt))}));
    let other = lab
        .subject
        .exchange(&attempt, "code", Some("https://evil.example.org"), CALLBACK)
        .await;
    assert!(is_invalid(&other), "{other:?}");
    let issuer = lab.provider.issuer.clone();
    let own = lab
        .subject
        .exchange(&attempt, "code", Some(&issuer), CALLBACK)
        .await;
    assert!(own.is_ok(), "{own:?}");
}

#[tokio::test]
async fn a_document_of_another_issuer_or_with_unsafe_urls_is_not_used() {
    for change in [
        json!({"issuer": "https://evil.example.org"}),
        json!({"token_endpoint": "http://evil.example.org/token"}),
        json!({"jwks_uri": "file:///etc/passwd"}),
    ] {
        let lab = Lab::start().await;
        lab.provider.change_document(&change);
        let url = lab
            .subject
            .authorization_url(&lab.attempt(1), CALLBACK)
            .await;
        assert!(is_invalid(&url), "{change}: {url:?}");
    }
}

#[tokio::test]
async fn a_refresh_returns_the_groups_of_now_and_of_nobody_else() {
    let lab = Lab::start().await;
    let sealed = lab.with(json!({})).await.unwrap().refresh.unwrap();
    assert!(!sealed.windows(3).any(|bytes| bytes == b"r-1"), "in plain");
    let mut claims = lab.claims(&lab.attempt(1));
    claims["groups"] = json!(["guests"]);
    claims["nonce"] = Value::Null;
    lab.provider
        .respond_with(json!({"id_token": lab.provider.sign(&claims), "access_token": "a"}));
    let refreshed = lab.subject.refresh(&sealed, "ada").await.unwrap();
    assert_eq!(refreshed.groups, listed(&["guests"]));
    assert!(lab.provider.last_form().contains("refresh_token=r-1"));
    assert!(refreshed.refresh.is_some(), "the token is used again");
    claims["sub"] = json!("eve");
    lab.provider
        .respond_with(json!({"id_token": lab.provider.sign(&claims)}));
    assert!(is_invalid(&lab.subject.refresh(&sealed, "ada").await));
    let other = lab.subject.refresh(&sealed, "eve").await;
    assert!(matches!(other, Err(ProviderError::Refused(_))), "{other:?}");
    lab.provider.refuse("invalid_grant");
    let refused = lab.subject.refresh(&sealed, "ada").await;
    assert_eq!(
        refused.unwrap_err(),
        ProviderError::Refused("invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn issuers_by_http_are_on_this_machine_only() {
    assert!(labdata_oidc::check_issuer("https://id.example.org/realms/lab").is_ok());
    assert!(labdata_oidc::check_issuer("http://127.0.0.1:8080").is_ok());
    for issuer in [
        "http://id.example.org",
        "id.example.org",
        "https://id.example.org?x=1",
    ] {
        assert!(labdata_oidc::check_issuer(issuer).is_err(), "{issuer}");
    }
    let lab = Lab::start().await;
    drop(lab.provider);
    let attempt = SignInAttempt::begin([1; 32], ReturnPath::default(), lab.clock.now());
    let url = lab.subject.authorization_url(&attempt, CALLBACK);
    let url = tokio::time::timeout(Duration::from_mins(1), url)
        .await
        .unwrap();
    assert!(matches!(url, Err(ProviderError::Unavailable(_))), "{url:?}");
}
