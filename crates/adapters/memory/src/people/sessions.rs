//! Sessions in memory.

use async_trait::async_trait;
use labdata_domain::{
    people::{
        ApiKeyHash,
        session::{FoundSession, MAX_SESSIONS_PER_KEY, Session, SignInLink},
    },
    refusal::Resource,
};
use labdata_ports::{PortError, people::sessions::SessionRepository};
use time::OffsetDateTime;

use crate::memory::fake;

fake!(
    /// Sessions in memory.
    pub struct InMemorySessionRepository;
);

#[async_trait]
impl SessionRepository for InMemorySessionRepository {
    async fn add(&self, session: &Session) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let mut keys = state.api_keys.iter();
        if !keys.any(|key| key.organization == session.organization && key.id == session.api_key) {
            return Err(PortError::NotFound(Resource::ApiKey));
        }
        let mut others: Vec<Session> = state
            .sessions
            .iter()
            .filter(|other| other.api_key == session.api_key)
            .copied()
            .collect();
        others.sort_by_key(|other| std::cmp::Reverse(other.created_at));
        let ended = others.split_off(others.len().min(MAX_SESSIONS_PER_KEY - 1));
        state
            .sessions
            .retain(|other| !ended.iter().any(|ended| ended.token.matches(&other.token)));
        state.sessions.push(*session);
        Ok(())
    }

    async fn find(&self, token: ApiKeyHash) -> Result<Option<FoundSession>, PortError> {
        let state = self.memory.lock();
        let mut sessions = state.sessions.iter();
        let Some(session) = sessions.find(|session| session.token.matches(&token)) else {
            return Ok(None);
        };
        let mut keys = state.api_keys.iter();
        let key = keys.find(|key| key.id == session.api_key);
        Ok(key.map(|key| FoundSession {
            session: *session,
            key: state.found(key),
        }))
    }

    async fn touch(&self, token: ApiKeyHash, at: OffsetDateTime) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let mut sessions = state.sessions.iter_mut();
        if let Some(session) = sessions.find(|session| session.token.matches(&token)) {
            session.last_used_at = session.last_used_at.max(at);
        }
        Ok(())
    }

    async fn remove(&self, token: ApiKeyHash) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state
            .sessions
            .retain(|session| !session.token.matches(&token));
        Ok(())
    }

    async fn add_link(&self, link: &SignInLink) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_user(link.organization, link.user)?;
        state.sign_in_links.push(*link);
        Ok(())
    }

    async fn take_link(&self, token: ApiKeyHash) -> Result<Option<SignInLink>, PortError> {
        let mut state = self.memory.lock();
        let mut links = state.sign_in_links.iter();
        let found = links.position(|link| link.token.matches(&token));
        Ok(found.map(|index| state.sign_in_links.swap_remove(index)))
    }

    async fn remove_ended(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let count = |state: &crate::memory::State| state.sessions.len() + state.sign_in_links.len();
        let before = count(&state);
        state.sessions.retain(|session| session.is_valid(now));
        state.sign_in_links.retain(|link| link.is_valid(now));
        Ok(u64::try_from(before - count(&state)).unwrap_or(u64::MAX))
    }
}
