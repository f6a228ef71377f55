//! Ends a sign-in with the identity provider: opens the session, or refuses it.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::OrganizationId,
    people::{
        oidc::{REFRESH_EVERY, ReturnPath, SignInAttempt, SignInRefused},
        session::{PlainToken, Session},
        tenancy::User,
    },
    refusal::RefusalKind,
};
use labdata_ports::people::oidc::{Identity, ProviderSession};

use super::{BY, OidcService, of_provider, person::admit, secret, service};
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    people::sessions::{add_session_key, append_refusal, organization_named, random_token},
};

/// Name of the keys on which sessions rest.
const KEY_NAME: &str = "identity provider";

/// Parameters of the provider's callback.
#[derive(Debug)]
pub struct Callback<'a> {
    /// `state`
    pub state: &'a str,
    /// `code`, or `error`.
    pub code: Result<&'a str, &'a str>,
    /// `iss`
    pub issuer: Option<&'a str>,
    /// The cookie of the browser.
    pub cookie: &'a str,
    /// URL of the callback.
    pub redirect_uri: &'a str,
}

/// A session that a callback began.
#[derive(Debug)]
pub struct OpenedSession {
    /// Its token.
    pub token: PlainToken,
    /// Path to return to.
    pub return_to: ReturnPath,
}

/// Opens a session for the person of a callback.
///
/// # Errors
/// `Unauthenticated` for a callback that belongs to no sign-in of this browser; `Forbidden` for a person who may
/// not sign in; `Unavailable` when the provider does not respond.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn finish_oidc(
    services: &Services,
    callback: &Callback<'_>,
) -> Result<OpenedSession, Error> {
    let service = service(services)?;
    let now = services.clock.now();
    let attempt = SignInAttempt::open(&secret(services).await?, callback.cookie, now)
        .filter(|attempt| attempt.has_state(callback.state))
        .ok_or_else(|| Error::refused(SignInRefused::InvalidAttempt))?;
    let name = &service.policy.organization;
    let organization = organization_named(services, name).await?;
    let organization = organization
        .ok_or_else(|| Error::refused(SignInRefused::UnknownOrganization(name.clone())))?
        .id;
    let identity = match identify(services, &service, &attempt, callback).await {
        Ok(identity) => identity,
        Err(error) => {
            let target = AuditTarget::named(AuditTargetKind::Platform, KEY_NAME);
            return Err(recorded(services, organization, target, error).await?);
        }
    };
    match admit(services, &service.policy, organization, &identity).await {
        Ok(user) => Ok(OpenedSession {
            token: open_session(services, &user, identity).await?,
            return_to: attempt.return_to,
        }),
        Err(error) => {
            let name = identity.email.unwrap_or(identity.subject);
            let target = AuditTarget::named(AuditTargetKind::User, name);
            Err(recorded(services, organization, target, error).await?)
        }
    }
}

/// Finds out from the provider who the person is. A sign-in does so once.
async fn identify(
    services: &Services,
    service: &OidcService,
    attempt: &SignInAttempt,
    callback: &Callback<'_>,
) -> Result<Identity, Error> {
    let code = callback.code.map_err(|error| {
        // The parameter is anybody's text, and is displayed.
        let plain = error.chars().filter(char::is_ascii_graphic).take(100);
        Error::refused(SignInRefused::ByProvider(plain.collect()))
    })?;
    let exchanged =
        service
            .provider
            .exchange(attempt, code, callback.issuer, callback.redirect_uri);
    let identity = exchanged.await.map_err(of_provider)?;
    // After the exchange, so that only persons of the provider add rows.
    let is_first = services
        .oidc_store
        .use_attempt(attempt.hash(), attempt.ends_at());
    if is_first.await? {
        Ok(identity)
    } else {
        Err(Error::refused(SignInRefused::InvalidAttempt))
    }
}

/// Records a refused sign-in in the audit log, and returns the error.
async fn recorded(
    services: &Services,
    organization: OrganizationId,
    target: AuditTarget,
    error: Error,
) -> Result<Error, Error> {
    if error.kind() == Some(RefusalKind::Forbidden) {
        let record = Record::of(AuditAction::SessionRefused, target.clone())
            .with("by", BY)
            .with("reason", error.to_string());
        append_refusal(services, organization, &target, record).await?;
    }
    Ok(error)
}

/// Opens a session with the rights of the user.
async fn open_session(
    services: &Services,
    user: &User,
    identity: Identity,
) -> Result<PlainToken, Error> {
    let now = services.clock.now();
    let found = add_session_key(services, user, KEY_NAME).await?;
    // Always a new token: one that was in the browser before, perhaps put there by somebody else, opens nothing.
    let token = random_token(services);
    let session = Session::begin(token.hash(), user.organization, found.key.id, now);
    let refreshed = identity.refresh.map(|refresh| ProviderSession {
        session: session.token,
        organization: session.organization,
        key: session.api_key,
        user: user.id,
        subject: identity.subject,
        refresh,
        check_at: now + REFRESH_EVERY,
    });
    let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
    audited(services, &found.actor(), |within| async move {
        within.sessions.add(&session).await?;
        if let Some(session) = &refreshed {
            within.oidc_store.add_session(session).await?;
        }
        let record = Record::of(AuditAction::SessionStarted, target)
            .with("by", BY)
            .with("role", user.role.as_str());
        Ok(((), Some(record)))
    })
    .await?;
    Ok(token)
}
