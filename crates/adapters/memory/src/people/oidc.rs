//! Sign-ins with an identity provider, in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::ApiKeyHash,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    people::oidc::{OidcStore, ProviderSession},
};
use time::OffsetDateTime;

use crate::memory::{State, fake};

fake!(
    /// Sign-ins with an identity provider, in memory.
    pub struct InMemoryOidcStore;
);

/// An account of the provider that a user has.
#[derive(Clone, Debug)]
pub(crate) struct AccountRow {
    organization: OrganizationId,
    user: UserId,
    issuer: String,
    subject: String,
}

#[async_trait]
impl OidcStore for InMemoryOidcStore {
    async fn use_attempt(
        &self,
        attempt: ApiKeyHash,
        ends_at: OffsetDateTime,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        if state
            .used_attempts
            .iter()
            .any(|(used, _)| *used == attempt.0)
        {
            return Ok(false);
        }
        state.used_attempts.push((attempt.0, ends_at));
        Ok(true)
    }

    async fn linked_user(
        &self,
        organization: OrganizationId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<UserId>, PortError> {
        let state = self.memory.lock();
        let mut accounts = state.accounts.iter();
        let linked = accounts.find(|it| {
            it.organization == organization && it.issuer == issuer && it.subject == subject
        });
        Ok(linked.map(|it| it.user))
    }

    async fn link_account(
        &self,
        organization: OrganizationId,
        user: UserId,
        issuer: &str,
        subject: &str,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        state.require_user(organization, user)?;
        let linked = state.accounts.iter().find(|it| {
            let is_account = it.issuer == issuer && it.subject == subject;
            it.organization == organization && (it.user == user || is_account)
        });
        if let Some(it) = linked {
            return Ok(it.user == user && it.issuer == issuer && it.subject == subject);
        }
        state.accounts.push(AccountRow {
            organization,
            user,
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
        });
        Ok(true)
    }

    async fn add_session(&self, session: &ProviderSession) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let mut sessions = state.sessions.iter();
        if !sessions.any(|it| it.token.matches(&session.session)) {
            return Err(PortError::NotFound(Resource::Session));
        }
        state.provider_sessions.push(session.clone());
        Ok(())
    }

    async fn due_sessions(
        &self,
        now: OffsetDateTime,
        next: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<ProviderSession>, PortError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut state = self.memory.lock();
        let State {
            sessions,
            provider_sessions,
            ..
        } = &mut *state;
        // Sessions are removed in several ways; their refresh tokens end with them.
        provider_sessions.retain(|it| sessions.iter().any(|of| of.token.matches(&it.session)));
        let mut due: Vec<&mut ProviderSession> = provider_sessions
            .iter_mut()
            .filter(|session| session.check_at <= now)
            .collect();
        due.sort_by_key(|session| session.check_at);
        Ok(due
            .into_iter()
            .take(limit)
            .map(|session| {
                session.check_at = next;
                session.clone()
            })
            .collect())
    }

    async fn checked(&self, session: &ProviderSession) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let mut sessions = state.provider_sessions.iter_mut();
        if let Some(stored) = sessions.find(|it| it.session.matches(&session.session)) {
            stored.refresh.clone_from(&session.refresh);
            stored.check_at = session.check_at;
        }
        Ok(())
    }

    async fn remove_ended_attempts(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let before = state.used_attempts.len();
        state.used_attempts.retain(|(_, ends_at)| *ends_at > now);
        Ok(u64::try_from(before - state.used_attempts.len()).unwrap_or_default())
    }
}
