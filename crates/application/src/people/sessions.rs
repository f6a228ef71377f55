//! Signs people in and out, in browsers.

use labdata_domain::{
    audit::{AuditAction, AuditFilter, AuditTarget, AuditTargetKind},
    ids::{ApiKeyId, OrganizationId},
    page::PageRequest,
    people::{
        ApiKey, FoundKey, PlainApiKey,
        actor::Actor,
        credential::InvalidCredential,
        run_key::GuardedAction,
        session::{FoundSession, LINK_LIFETIME, PlainToken, SESSION_LIFETIME, Session, SignInLink},
        tenancy::{Organization, User, UserDisabled, fold_email},
    },
    refusal::{RefusalKind, Resource},
};
use labdata_ports::PortError;
use time::Duration;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    people::{
        authenticate::authenticate, create_api_key::random_key, invitations::accept_invitation,
    },
};

/// Name of the key on which a session of a link rests.
const LINK_KEY_NAME: &str = "sign-in link";

/// Refused sign-ins with one key are recorded once in this time.
const REFUSALS_EVERY: Duration = Duration::MINUTE;

/// Maximum number of refused sign-ins of an organization that are recorded in that time.
const MAX_REFUSALS: u32 = 20;

/// Attempts to find a free prefix.
const ATTEMPTS: u32 = 10;

/// Credential with which a person signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// With an API key.
    ApiKey(String),
    /// With the token of a link.
    Token(String),
}

/// Opens a session. The token is returned this once and retained nowhere.
///
/// # Errors
/// `Unauthenticated` for a key or a link that is not valid; `Forbidden` for the key of
/// a run on the platform.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sign_in(services: &Services, presented: SignIn) -> Result<(PlainToken, Actor), Error> {
    let (actor, by) = match presented {
        SignIn::ApiKey(key) => match authenticate(services, &key).await {
            Ok(actor) => (actor, "api_key"),
            Err(error) => {
                record_refused(services, &key, &error).await?;
                return Err(error);
            }
        },
        SignIn::Token(token) => (follow_link(services, &token).await?, "link"),
    };
    actor.may(GuardedAction::BeginSession)?;
    let token = random_token(services);
    let now = services.clock.now();
    let session = Session::begin(token.hash(), actor.organization, actor.api_key, now);
    let user = actor.user;
    audited(services, &actor, |within| async move {
        within.sessions.add(&session).await?;
        let user = within.tenancy.user(session.organization, user).await?;
        let target = AuditTarget::new(AuditTargetKind::User, user.id, user.email);
        let record = Record::of(AuditAction::SessionStarted, target).with("by", by);
        Ok(((), Some(record)))
    })
    .await?;
    Ok((token, actor))
}

/// Records a refused sign-in with a key that names an organization.
async fn record_refused(services: &Services, presented: &str, error: &Error) -> Result<(), Error> {
    let is_refusal = error.kind() == Some(RefusalKind::Unauthenticated);
    let Some(plain) = PlainApiKey::parse(presented).filter(|_| is_refusal) else {
        return Ok(());
    };
    let Some(found) = services.api_keys.find_by_prefix(plain.prefix()).await? else {
        return Ok(());
    };
    let key = found.key;
    let target = AuditTarget::new(AuditTargetKind::ApiKey, key.id, key.name);
    record_refusal(services, key.organization, target).await
}

/// Records that a sign-in with the target was refused.
pub(super) async fn record_refusal(
    services: &Services,
    organization: OrganizationId,
    target: AuditTarget,
) -> Result<(), Error> {
    let record = Record::of(AuditAction::SessionRefused, target.clone());
    append_refusal(services, organization, &target, record).await
}

/// Records a refused sign-in, at most once a minute for each target and a limited number for the
/// organization, so that guesses do not fill the log.
pub(super) async fn append_refusal(
    services: &Services,
    organization: OrganizationId,
    target: &AuditTarget,
    record: Record,
) -> Result<(), Error> {
    let recent = AuditFilter {
        action: Some(AuditAction::SessionRefused),
        from: Some(services.clock.now() - REFUSALS_EVERY),
        ..AuditFilter::default()
    };
    let audit = &services.audit;
    let recorded = audit.list_after(organization, &recent, None, MAX_REFUSALS);
    let recorded = recorded.await?;
    let is_many = u32::try_from(recorded.len()) == Ok(MAX_REFUSALS);
    if is_many || recorded.iter().any(|entry| entry.target == *target) {
        return Ok(());
    }
    let entry = record.entry(services, None);
    Ok(audit.append(organization, entry).await?)
}

/// Uses a link or an invitation up, and makes the key on which its session rests: it is listed and can be revoked like
/// any other, but its text is never displayed.
async fn follow_link(services: &Services, token: &str) -> Result<Actor, Error> {
    let invalid = || Error::refused(InvalidCredential::Link);
    let token = PlainToken::parse(token).ok_or_else(invalid)?;
    let user = match accept_invitation(services, &token).await? {
        Some(user) => user,
        None => linked_user(services, &token).await?,
    };
    let found = add_session_key(services, &user, LINK_KEY_NAME).await?;
    Ok(found.actor())
}

/// Adds the key on which a session rests that no key began. It has the scopes of the user's role.
pub(super) async fn add_session_key(
    services: &Services,
    user: &User,
    name: &str,
) -> Result<FoundKey, Error> {
    let now = services.clock.now();
    for _ in 0..ATTEMPTS {
        let plain = random_key(services);
        let key = ApiKey {
            id: ApiKeyId::new(services.ids.next_id()),
            organization: user.organization,
            user: user.id,
            name: name.to_owned(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: user.role.scopes(),
            tables: None,
            execution: None,
            created_at: now,
            // The key exists only for the session, so it ends no later.
            expires_at: Some(now + SESSION_LIFETIME),
            last_used_at: None,
            revoked_at: None,
        };
        match services.api_keys.add(&key).await {
            Ok(()) => {
                return Ok(FoundKey {
                    key,
                    user_disabled_at: None,
                    role: user.role,
                    groups: user.groups.clone(),
                });
            }
            Err(PortError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}

/// The user of a link, which is used up.
async fn linked_user(services: &Services, token: &PlainToken) -> Result<User, Error> {
    let invalid = || Error::refused(InvalidCredential::Link);
    // Taken before it is checked: a link works once, also if two follow it at the same time.
    let link = services.sessions.take_link(token.hash()).await?;
    let link = link.ok_or_else(invalid)?;
    let user = services.tenancy.user(link.organization, link.user).await?;
    if link.is_valid(services.clock.now()) && user.disabled_at.is_none() {
        return Ok(user);
    }
    let target = AuditTarget::new(AuditTargetKind::User, user.id, user.email);
    record_refusal(services, link.organization, target).await?;
    Err(invalid())
}

/// Finds the caller that a session belongs to.
///
/// # Errors
/// `Unauthenticated` for a session that is unknown or has ended, or whose key is not valid any
/// more.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn authenticate_session(services: &Services, presented: &str) -> Result<Actor, Error> {
    let invalid = || Error::refused(InvalidCredential::Session);
    let token = PlainToken::parse(presented).ok_or_else(invalid)?;
    let now = services.clock.now();
    let generation = match services.key_cache.get(token.hash(), now) {
        Ok(actor) => return Ok(actor),
        Err(generation) => generation,
    };
    let found = services.sessions.find(token.hash()).await?;
    let found = found
        .filter(|found| found.is_valid(now))
        .ok_or_else(invalid)?;
    let FoundSession { session, key } = found;
    // As with keys, a request does not fail because the time of its use cannot be stored.
    if session.is_due_for_touch(now)
        && let Err(error) = services.sessions.touch(session.token, now).await
    {
        tracing::warn!(%error, "could not note the use of a session");
    }
    let actor = key.actor();
    // The cached entry must outlive neither the key nor the session.
    let ends_at = key.key.expires_at.map_or(session.ends_at(), |expires_at| {
        expires_at.min(session.ends_at())
    });
    let cache = &services.key_cache;
    cache.insert(generation, session.token, actor.clone(), now, Some(ends_at));
    Ok(actor)
}

/// Ends a session, if it is one.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sign_out(services: &Services, presented: &str) -> Result<(), Error> {
    // A malformed token belongs to no session, so there is nothing to end.
    let Some(token) = PlainToken::parse(presented) else {
        return Ok(());
    };
    services.sessions.remove(token.hash()).await?;
    // On other servers a cached entry still counts for the few seconds of its lifetime.
    services.key_cache.evict_hash(token.hash());
    Ok(())
}

/// Makes a link that signs a user in once, for an operator on the platform's machine; no endpoint may
/// call it.
///
/// # Errors
/// `NotFound` when there is no such organization or user; `Invalid` for a disabled
/// user.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sign_in_link(
    services: &Services,
    organization: &str,
    email: &str,
) -> Result<PlainToken, Error> {
    let user = user_of(services, organization, email).await?;
    if user.disabled_at.is_some() {
        return Err(Error::refused(UserDisabled));
    }
    let token = random_token(services);
    let link = SignInLink {
        token: token.hash(),
        organization: user.organization,
        user: user.id,
        expires_at: services.clock.now() + LINK_LIFETIME,
    };
    services.sessions.add_link(&link).await?;
    Ok(token)
}

async fn user_of(services: &Services, organization: &str, email: &str) -> Result<User, Error> {
    let organization = organization_named(services, organization)
        .await?
        .ok_or_else(|| Error::not_found(Resource::Organization))?;
    user_with_email(services, organization.id, email)
        .await?
        .ok_or_else(|| Error::not_found(Resource::User))
}

/// The organization of that name.
pub(super) async fn organization_named(
    services: &Services,
    name: &str,
) -> Result<Option<Organization>, PortError> {
    let organizations = services.tenancy.organizations().await?;
    Ok(organizations.into_iter().find(|known| known.name == name))
}

/// The organization's user of that e-mail address.
pub(super) async fn user_with_email(
    services: &Services,
    organization: OrganizationId,
    email: &str,
) -> Result<Option<User>, PortError> {
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let users = services.tenancy.users(organization, all).await?.items;
    let email = fold_email(email);
    let mut users = users.into_iter();
    Ok(users.find(|user| fold_email(&user.email) == email))
}

pub(super) fn random_token(services: &Services) -> PlainToken {
    let mut bytes = [0; 32];
    services.ids.fill_random(&mut bytes);
    PlainToken::from_random(bytes)
}

/// Removes sessions, links and invitations that have ended; returns their number. No caller requests it: it is the
/// platform's own housekeeping, for all organizations.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn remove_ended_sessions(services: &Services) -> Result<u64, Error> {
    let now = services.clock.now();
    let invitations = services.invitations.remove_expired(now).await?;
    Ok(services.sessions.remove_ended(now).await? + invitations)
}
