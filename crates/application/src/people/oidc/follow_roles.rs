//! Asks the identity provider again for the roles of people who are signed in.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    people::{
        FoundKey,
        actor::Actor,
        oidc::{REFRESH_EVERY, REFRESH_RETRY, SignInRefused},
        role::Role,
    },
};
use labdata_ports::{
    PortError,
    people::oidc::{Identity, ProviderError, ProviderSession},
};
use time::OffsetDateTime;

use super::{BY, OidcService, set_role::set_role};
use crate::{
    Error, Services,
    audit::record::{Record, audited},
};

/// Sessions that are taken at a time: few, so that each is asked for before another server takes it.
const BATCH: u32 = 10;

/// Failures to reach the provider after which a pass ends.
const MAX_FAILURES: u32 = 3;

/// Outcome of a check of a session.
enum Checked {
    /// It continues.
    Continues,
    /// It was ended.
    Ended,
    /// The provider did not respond.
    Unavailable,
}

/// Asks the provider again for the roles of people who are signed in, and ends the sessions of those who have none
/// now; returns the number of ended ones. No caller requests it.
///
/// # Errors
/// Errors of the ports. A provider that does not respond is no error: it is asked again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn follow_roles(services: &Services) -> Result<u64, Error> {
    let now = services.clock.now();
    services.oidc_store.remove_ended_attempts(now).await?;
    let Some(service) = services.oidc.clone() else {
        return Ok(0);
    };
    let (mut ended, mut failures) = (0, 0);
    loop {
        let due = services
            .oidc_store
            .due_sessions(now, now + REFRESH_RETRY, BATCH)
            .await?;
        let is_last = u32::try_from(due.len()) != Ok(BATCH);
        for session in due {
            match check(services, &service, session, now).await? {
                Checked::Continues => {}
                Checked::Ended => ended += 1,
                Checked::Unavailable => failures += 1,
            }
            // The provider is down, and each attempt would wait for its timeout. What is left of the batch is due
            // again after `REFRESH_RETRY`.
            if failures == MAX_FAILURES {
                return Ok(ended);
            }
        }
        if is_last {
            return Ok(ended);
        }
    }
}

async fn check(
    services: &Services,
    service: &OidcService,
    session: ProviderSession,
    now: OffsetDateTime,
) -> Result<Checked, Error> {
    let found = services
        .api_keys
        .get(session.organization, session.key)
        .await;
    let key = match found {
        Ok(found) if found.is_valid(now) => found,
        // Revoked, or of a disabled user: there is nothing to ask for, and the refresh token is not needed.
        Ok(_) | Err(PortError::NotFound(_)) => {
            services.sessions.remove(session.session).await?;
            return Ok(Checked::Continues);
        }
        Err(error) => return Err(error.into()),
    };
    let refreshed = service
        .provider
        .refresh(&session.refresh, &session.subject)
        .await;
    match refreshed {
        Ok(identity) => follow(services, service, session, key, identity).await,
        Err(ProviderError::Unavailable(reason)) => {
            tracing::warn!(reason, "the identity provider does not respond");
            Ok(Checked::Unavailable)
        }
        Err(error) => end(services, &session, key, &error.to_string()).await,
    }
}

/// Gives the user the role of now; ends the session of a person without one.
async fn follow(
    services: &Services,
    service: &OidcService,
    session: ProviderSession,
    key: FoundKey,
    identity: Identity,
) -> Result<Checked, Error> {
    let role = service.policy.role_of(&identity.groups);
    let known = match &role {
        Ok(role) => Some(*role),
        // The provider lists groups, and none has a role: keys of the user must not write any more, either.
        Err(SignInRefused::NoRole) => Some(Role::Viewer),
        Err(_) => None,
    };
    if let Some(role) = known {
        let user = services.tenancy.user(session.organization, session.user);
        set_role(services, user.await?, role).await?;
    }
    if let Err(refusal) = role {
        return end(services, &session, key, &refusal.to_string()).await;
    }
    let checked = ProviderSession {
        // A provider that does not rotate its tokens sends none.
        refresh: identity.refresh.unwrap_or_else(|| session.refresh.clone()),
        check_at: services.clock.now() + REFRESH_EVERY,
        ..session
    };
    services.oidc_store.checked(&checked).await?;
    Ok(Checked::Continues)
}

/// Ends a session at once in this process, within seconds in every other.
async fn end(
    services: &Services,
    session: &ProviderSession,
    key: FoundKey,
    reason: &str,
) -> Result<Checked, Error> {
    let operator = Actor::operator(session.organization, session.user);
    let key = key.key;
    audited(services, &operator, |within| async move {
        let revoked = within
            .api_keys
            .revoke(key.organization, key.id, within.clock.now());
        revoked.await?;
        let target = AuditTarget::new(AuditTargetKind::ApiKey, key.id, key.name);
        let record = Record::of(AuditAction::ApiKeyRevoked, target)
            .with("by", BY)
            .with("prefix", key.prefix)
            .with("reason", reason);
        Ok(((), Some(record)))
    })
    .await?;
    services.sessions.remove(session.session).await?;
    services.key_cache.evict(session.key);
    Ok(Checked::Ended)
}
