//! SQL logins, each a role of PostgreSQL.

pub(crate) mod rights;
mod role;
mod rows;
mod sessions;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Bool, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{OrganizationId, SqlLoginId, UserId},
    outward::sql_logins::{EndReason, LoginFacts, SqlLogin, SqlLoginLimits, SqlPassword},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    outward::sql_logins::{AddedLogin, DueLogin, Maintained, SqlLoginRepository},
};
use time::OffsetDateTime;
use uuid::Uuid;

use self::{
    rows::{DueRow, LoginRow, NewLoginRow},
    sessions::SessionLimits,
};
use crate::{
    data::query::role::{Found, exists, rights as platform_rights},
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    schema::sql_login,
};

/// SQL logins in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgSqlLoginRepository {
    database: Database,
}

impl PgSqlLoginRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Logins that must perhaps end; [`SqlLogin::due`] decides.
const CANDIDATES: &str = "\
    SELECT l.id, l.organization_id, l.user_id, l.name, l.created_at, l.expires_at, \
        u.disabled_at IS NOT NULL AS is_user_disabled, r.oid IS NOT NULL AS has_role, several.found AS is_several \
    FROM labdata.sql_login l \
    JOIN labdata.app_user u ON u.organization_id = l.organization_id AND u.id = l.user_id \
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = labdata.sql_role(l.id) \
    CROSS JOIN (SELECT count(*) > 1 AS found FROM labdata.organization) several \
    WHERE l.ended_at IS NULL AND (l.expires_at <= $1 OR u.disabled_at IS NOT NULL OR r.oid IS NULL \
        OR several.found AND NOT $2) \
    ORDER BY l.id LIMIT $3";

async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    login: &SqlLogin,
    password: &SqlPassword,
    limits: SqlLoginLimits,
) -> Result<AddedLogin, Fault> {
    let platform = platform_rights(connection).await?;
    if !platform.creates_roles {
        return Ok(AddedLogin::RolesRefused);
    }
    let users: Vec<Uuid> = sql_login::table
        .filter(sql_login::organization_id.eq(organization.as_uuid()))
        .filter(is_listed())
        .select(sql_login::user_id)
        .load(connection)
        .await?;
    let own = users.iter().filter(|user| **user == login.user.as_uuid());
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    if let Err(refused) = limits.check(count(users.len()), count(own.count())) {
        return Ok(AddedLogin::TooMany(refused));
    }
    diesel::insert_into(sql_login::table)
        .values(NewLoginRow::of(organization, login))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("sql_login_organization_id_fkey", || {
                    PortError::NotFound(Resource::Organization)
                })
                .on_violation("sql_login_user_id_fkey", || {
                    PortError::NotFound(Resource::User)
                })
        })?;
    rights::lock(connection, organization).await?;
    role::create(connection, platform, login, password).await?;
    rights::grant(connection, organization).await?;
    Ok(AddedLogin::Added)
}

/// Condition of logins that lists contain.
fn is_listed() -> diesel::dsl::IsDistinctFrom<sql_login::end_reason, &'static str> {
    sql_login::end_reason.is_distinct_from(EndReason::Revoked.as_str())
}

async fn end(
    connection: &mut Connection,
    organization: OrganizationId,
    id: SqlLoginId,
    reason: EndReason,
    now: OffsetDateTime,
) -> Result<SqlLogin, Fault> {
    // Before the row: a change of definitions takes the locks in this order.
    rights::lock(connection, organization).await?;
    let row: Option<LoginRow> = sql_login::table
        .find(id.as_uuid())
        .filter(sql_login::organization_id.eq(organization.as_uuid()))
        .select(LoginRow::as_select())
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let not_found = || PortError::NotFound(Resource::SqlLogin);
    let stored = SqlLogin::try_from(row.ok_or_else(not_found)?)?;
    // The role of one that had ended before is closed, or that of another database, after a restore.
    let was_active = stored.is_active();
    let ended = stored.end(reason, now).map_err(|_| not_found())?;
    diesel::update(sql_login::table.find(id.as_uuid()))
        .set((
            sql_login::ended_at.eq(now),
            sql_login::end_reason.eq(reason.as_str()),
        ))
        .execute(connection)
        .await?;
    let role = ended.role();
    if was_active && exists(connection, "pg_roles WHERE rolname = $1", &role).await? {
        role::close(connection, &role).await?;
    }
    Ok(ended)
}

#[async_trait]
impl SqlLoginRepository for PgSqlLoginRepository {
    async fn may_create_roles(&self) -> Result<bool, PortError> {
        let mut connection = self.database.connection().await?;
        let rights = platform_rights(&mut connection).await?;
        Ok(rights.creates_roles)
    }

    async fn add(
        &self,
        organization: OrganizationId,
        login: &SqlLogin,
        password: &SqlPassword,
        limits: SqlLoginLimits,
    ) -> Result<AddedLogin, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => add(connection, organization, login, password, limits)
        )?)
    }

    async fn owner(&self, id: SqlLoginId) -> Result<Option<(OrganizationId, UserId)>, PortError> {
        let mut connection = self.database.connection().await?;
        let found: Option<(Uuid, Uuid)> = sql_login::table
            .find(id.as_uuid())
            .filter(sql_login::ended_at.is_null())
            .select((sql_login::organization_id, sql_login::user_id))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(
            found
                .map(|(organization, user)| (OrganizationId::new(organization), UserId::new(user))),
        )
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Result<Page<SqlLogin>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let mut query = sql_login::table
            .filter(sql_login::organization_id.eq(organization.as_uuid()))
            .filter(is_listed())
            .select(LoginRow::as_select())
            .into_boxed();
        if let Some(user) = user {
            query = query.filter(sql_login::user_id.eq(user.as_uuid()));
        }
        let rows: Vec<LoginRow> = page_of!(query, page, sql_login::created_at, sql_login::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let logins: Result<Vec<SqlLogin>, _> = rows.into_iter().map(SqlLogin::try_from).collect();
        Ok(Page::from_overfetched(logins?, page.limit, |login| {
            Cursor {
                at: login.created_at,
                id: login.id.as_uuid(),
            }
        }))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
    ) -> Result<SqlLogin, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<LoginRow> = sql_login::table
            .find(id.as_uuid())
            .filter(sql_login::organization_id.eq(organization.as_uuid()))
            .filter(is_listed())
            .select(LoginRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound(Resource::SqlLogin))?
            .try_into()
    }

    async fn end(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
        reason: EndReason,
        now: OffsetDateTime,
    ) -> Result<SqlLogin, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => end(connection, organization, id, reason, now)
        )?)
    }

    async fn due(
        &self,
        is_shared: bool,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<DueLogin>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<DueRow> = diesel::sql_query(CANDIDATES)
            .bind::<Timestamptz, _>(now)
            .bind::<Bool, _>(is_shared)
            .bind::<BigInt, _>(i64::from(limit))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let due = rows.into_iter().filter_map(|row| {
            let facts = LoginFacts {
                is_user_disabled: row.is_user_disabled,
                has_role: row.has_role,
                is_sharing_refused: row.is_several && !is_shared,
            };
            let organization = OrganizationId::new(row.organization_id);
            let login = row.login();
            let reason = login.due(facts, now)?;
            Some(DueLogin {
                organization,
                login,
                reason,
            })
        });
        Ok(due.collect())
    }

    async fn maintain(&self) -> Result<Maintained, PortError> {
        let mut connection = self.database.connection().await?;
        // Nearly always one query is all: most platforms have no logins.
        let any: Found =
            diesel::sql_query("SELECT EXISTS (SELECT FROM labdata.sql_login) AS found")
                .get_result(&mut connection)
                .await
                .map_err(port_error)?;
        if !any.found {
            return Ok(Maintained::default());
        }
        let sessions = sessions::end_sessions(&mut connection, SessionLimits::default()).await?;
        let stale = rights::stale(&mut connection).await?;
        let roles = role::remove_ended(&mut connection).await?;
        // Each organization below takes a connection: holding this one as well could wait for itself in a small pool.
        drop(connection);
        let mut granted = 0;
        for organization in stale {
            transacted!(
                self.database.of(organization),
                connection => rights::refresh(connection, organization)
            )
            .map_err(PortError::from)?;
            granted += 1;
        }
        Ok(Maintained {
            granted,
            sessions,
            roles,
        })
    }
}
