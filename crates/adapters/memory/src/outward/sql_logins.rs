//! SQL logins in memory. There are no roles behind them.

use async_trait::async_trait;
use labdata_domain::{
    ids::{OrganizationId, SqlLoginId, UserId},
    outward::sql_logins::{
        EndReason, LoginFacts, SqlLogin, SqlLoginLimits, SqlLoginState, SqlPassword,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    outward::sql_logins::{AddedLogin, DueLogin, Maintained, SqlLoginRepository},
};
use time::OffsetDateTime;

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

fake!(
    /// SQL logins in memory.
    pub struct InMemorySqlLoginRepository;
);

fn is_revoked(login: &SqlLogin) -> bool {
    matches!(
        login.state,
        SqlLoginState::Ended {
            reason: EndReason::Revoked,
            ..
        }
    )
}

impl State {
    fn login_facts(&self, login: &SqlLogin, is_shared: bool) -> LoginFacts {
        let mut users = self.users.iter();
        let user = users.find(|user| user.id == login.user);
        LoginFacts {
            is_user_disabled: user.is_none_or(|user| user.disabled_at.is_some()),
            has_role: true,
            is_sharing_refused: !is_shared && self.organizations.len() > 1,
        }
    }
}

#[async_trait]
impl SqlLoginRepository for InMemorySqlLoginRepository {
    async fn may_create_roles(&self) -> Result<bool, PortError> {
        Ok(true)
    }

    async fn add(
        &self,
        organization: OrganizationId,
        login: &SqlLogin,
        _password: &SqlPassword,
        limits: SqlLoginLimits,
    ) -> Result<AddedLogin, PortError> {
        let mut state = self.memory.lock();
        state.require_user(organization, login.user)?;
        let (mut of_organization, mut of_user) = (0, 0);
        for stored in owned(&state.sql_logins, organization).filter(|login| !is_revoked(login)) {
            of_organization += 1;
            of_user += u64::from(stored.user == login.user);
        }
        if let Err(refused) = limits.check(of_organization, of_user) {
            return Ok(AddedLogin::TooMany(refused));
        }
        state.sql_logins.push(Owned {
            organization,
            thing: login.clone(),
        });
        Ok(AddedLogin::Added)
    }

    async fn owner(&self, id: SqlLoginId) -> Result<Option<(OrganizationId, UserId)>, PortError> {
        let state = self.memory.lock();
        let mut logins = state.sql_logins.iter();
        let found = logins.find(|row| row.thing.id == id && row.thing.is_active());
        Ok(found.map(|row| (row.organization, row.thing.user)))
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: Option<UserId>,
        request: PageRequest,
    ) -> Result<Page<SqlLogin>, PortError> {
        let state = self.memory.lock();
        let logins = owned(&state.sql_logins, organization)
            .filter(|login| !is_revoked(login))
            .filter(|login| user.is_none_or(|user| login.user == user));
        Ok(page(logins.cloned(), request, |login| Cursor {
            at: login.created_at,
            id: login.id.as_uuid(),
        }))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
    ) -> Result<SqlLogin, PortError> {
        let state = self.memory.lock();
        owned(&state.sql_logins, organization)
            .find(|login| login.id == id && !is_revoked(login))
            .cloned()
            .ok_or(PortError::NotFound(Resource::SqlLogin))
    }

    async fn end(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
        reason: EndReason,
        now: OffsetDateTime,
    ) -> Result<SqlLogin, PortError> {
        let mut state = self.memory.lock();
        let mut logins = state.sql_logins.iter_mut();
        let stored = logins
            .find(|owned| owned.organization == organization && owned.thing.id == id)
            .ok_or(PortError::NotFound(Resource::SqlLogin))?;
        let ended = stored.thing.clone().end(reason, now);
        stored.thing = ended.map_err(|_| PortError::NotFound(Resource::SqlLogin))?;
        Ok(stored.thing.clone())
    }

    async fn due(
        &self,
        is_shared: bool,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<DueLogin>, PortError> {
        let state = self.memory.lock();
        let due = state.sql_logins.iter().filter_map(|owned| {
            let facts = state.login_facts(&owned.thing, is_shared);
            Some(DueLogin {
                organization: owned.organization,
                login: owned.thing.clone(),
                reason: owned.thing.due(facts, now)?,
            })
        });
        Ok(due
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect())
    }

    async fn maintain(&self) -> Result<Maintained, PortError> {
        Ok(Maintained::default())
    }
}
