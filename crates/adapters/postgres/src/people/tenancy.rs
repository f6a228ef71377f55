//! Organizations, users and the platform's secrets.

use async_trait::async_trait;
use diesel::{prelude::*, sql_types::Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    people::{
        role::Role,
        tenancy::{Organization, User, UserChange, fold_email},
    },
    refusal::Resource,
};
use labdata_ports::{PortError, people::tenancy::TenancyRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    catalog,
    database::{
        errors::{Fault, corrupt, port_error, retried, transacted},
        paging::page_of,
        pool::{Connection, Database},
        sql, transaction,
    },
    people::rows::{group_names, read_role},
    schema::{app_user, organization, server_secret},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = organization)]
struct OrganizationRow {
    id: Uuid,
    name: String,
    created_at: OffsetDateTime,
}

impl From<OrganizationRow> for Organization {
    fn from(row: OrganizationRow) -> Self {
        Self {
            id: OrganizationId::new(row.id),
            name: row.name,
            created_at: row.created_at,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = app_user)]
struct UserRow {
    id: Uuid,
    organization_id: Uuid,
    email: String,
    name: String,
    created_at: OffsetDateTime,
    disabled_at: Option<OffsetDateTime>,
    role: String,
}

#[derive(QueryableByName)]
struct AdminRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

/// A user, and the names of the groups.
type UserWithGroups = (UserRow, Vec<String>);

fn user((row, groups): UserWithGroups) -> Result<User, PortError> {
    let id = UserId::new(row.id);
    Ok(User {
        id,
        organization: OrganizationId::new(row.organization_id),
        email: row.email,
        name: row.name,
        role: read_role(&row.role, id)?,
        groups,
        created_at: row.created_at,
        disabled_at: row.disabled_at,
    })
}

/// The columns of [`UserWithGroups`].
macro_rules! with_groups {
    () => {
        (
            UserRow::as_select(),
            group_names(app_user::organization_id, app_user::id),
        )
    };
}

/// Organizations, users and secrets in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTenancyRepository {
    database: Database,
}

impl PgTenancyRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn ensure_organization_once(
        &self,
        candidate: &Organization,
    ) -> Result<Organization, Fault> {
        let mut connection = self.database.connection().await?;
        // Outside of a transaction: nearly always it exists, and nothing is to be written.
        if let Some(found) = organization_named(&mut connection, &candidate.name).await? {
            return Ok(found);
        }
        transaction::begin(&mut connection).await?;
        let outcome = create_organization(&mut connection, candidate).await;
        transaction::end(&mut connection, outcome).await?;
        // Read back, because a racing call may have stored it with another id.
        organization_named(&mut connection, &candidate.name)
            .await?
            .ok_or_else(|| vanished("organization"))
    }
}

async fn organization_named(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<Organization>, Fault> {
    let row = organization::table
        .filter(organization::name.eq(name))
        .select(OrganizationRow::as_select())
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(Organization::from))
}

/// Stores the candidate and makes its tables, unless another call is first: the insertion waits
/// until that one has ended.
async fn create_organization(
    connection: &mut Connection,
    candidate: &Organization,
) -> Result<(), Fault> {
    let stored = diesel::insert_into(organization::table)
        .values((
            organization::id.eq(candidate.id.as_uuid()),
            organization::name.eq(&candidate.name),
            organization::schema_name.eq(sql::schema_name(candidate.id)),
            organization::created_at.eq(candidate.created_at),
        ))
        .on_conflict(organization::name)
        .do_nothing()
        .execute(connection)
        .await?;
    // Only the call that stored the row makes the schemas: two would clash over their names.
    if stored == 1 {
        catalog::create_organization_schema(connection, candidate.id).await?;
    }
    Ok(())
}

async fn user_of(
    connection: &mut Connection,
    organization: OrganizationId,
    email_folded: &str,
) -> Result<Option<User>, Fault> {
    let row = app_user::table
        .filter(app_user::organization_id.eq(organization.as_uuid()))
        .filter(app_user::email_folded.eq(email_folded))
        .select(with_groups!())
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(user).transpose()?)
}

async fn insert_user(connection: &mut Connection, user: &User) -> Result<bool, Fault> {
    let stored = diesel::insert_into(app_user::table)
        .values((
            app_user::id.eq(user.id.as_uuid()),
            app_user::organization_id.eq(user.organization.as_uuid()),
            app_user::email.eq(&user.email),
            app_user::email_folded.eq(fold_email(&user.email)),
            app_user::name.eq(&user.name),
            app_user::created_at.eq(user.created_at),
            app_user::disabled_at.eq(user.disabled_at),
            app_user::role.eq(user.role.as_str()),
        ))
        .on_conflict((app_user::organization_id, app_user::email_folded))
        .do_nothing()
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("app_user_organization_id_fkey", || {
                PortError::NotFound(Resource::Organization)
            })
        })?;
    Ok(stored == 1)
}

async fn update_user(
    connection: &mut Connection,
    organization: OrganizationId,
    id: UserId,
    change: &UserChange,
    now: OffsetDateTime,
) -> Result<User, Fault> {
    let stored: Option<UserWithGroups> = app_user::table
        .find(id.as_uuid())
        .filter(app_user::organization_id.eq(organization.as_uuid()))
        .select(with_groups!())
        // The change is applied to what is stored now, so that two changes of different fields both stand.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let stored = stored.ok_or(PortError::NotFound(Resource::User))?;
    let changed = change.apply(user(stored)?, now);
    diesel::update(app_user::table.find(id.as_uuid()))
        .set((
            app_user::name.eq(&changed.name),
            app_user::disabled_at.eq(changed.disabled_at),
            app_user::role.eq(changed.role.as_str()),
        ))
        .execute(connection)
        .await?;
    Ok(changed)
}

/// No row is ever deleted between the two statements of an `ensure…`.
fn vanished(what: &str) -> Fault {
    PortError::Internal(format!("the {what} vanished while it was created")).into()
}

#[async_trait]
impl TenancyRepository for PgTenancyRepository {
    async fn ensure_organization(
        &self,
        candidate: &Organization,
    ) -> Result<Organization, PortError> {
        Ok(retried!(self.ensure_organization_once(candidate))?)
    }

    async fn ensure_user(&self, candidate: &User) -> Result<User, PortError> {
        let mut connection = self.database.connection().await?;
        let email_folded = fold_email(&candidate.email);
        if let Some(found) = user_of(&mut connection, candidate.organization, &email_folded).await?
        {
            return Ok(found);
        }
        // Without a transaction: an organization gets schemas as well, a user is one row alone.
        insert_user(&mut connection, candidate).await?;
        // Read back, because a racing call may have stored the user with another id.
        let stored = user_of(&mut connection, candidate.organization, &email_folded).await?;
        Ok(stored.ok_or_else(|| vanished("user"))?)
    }

    async fn organizations(&self) -> Result<Vec<Organization>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<OrganizationRow> = organization::table
            .order((organization::created_at, organization::id))
            .select(OrganizationRow::as_select())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(rows.into_iter().map(Organization::from).collect())
    }

    async fn organization(&self, id: OrganizationId) -> Result<Organization, PortError> {
        let mut connection = self.database.of(id).connection().await?;
        let row: Option<OrganizationRow> = organization::table
            .find(id.as_uuid())
            .select(OrganizationRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(Organization::from)
            .ok_or(PortError::NotFound(Resource::Organization))
    }

    async fn add_user(&self, user: &User) -> Result<(), PortError> {
        let mut connection = self.database.of(user.organization).connection().await?;
        if insert_user(&mut connection, user).await? {
            Ok(())
        } else {
            Err(PortError::Conflict(user.email_taken()))
        }
    }

    async fn user(&self, organization: OrganizationId, id: UserId) -> Result<User, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<UserWithGroups> = app_user::table
            .find(id.as_uuid())
            .filter(app_user::organization_id.eq(organization.as_uuid()))
            .select(with_groups!())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        user(row.ok_or(PortError::NotFound(Resource::User))?)
    }

    async fn users(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<User>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let query = app_user::table
            .filter(app_user::organization_id.eq(organization.as_uuid()))
            .select(with_groups!())
            .into_boxed();
        let rows: Vec<UserWithGroups> = page_of!(query, page, app_user::created_at, app_user::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let users: Result<Vec<User>, PortError> = rows.into_iter().map(user).collect();
        Ok(Page::from_overfetched(users?, page.limit, |user| Cursor {
            at: user.created_at,
            id: user.id.as_uuid(),
        }))
    }

    async fn enabled_admins(&self, organization: OrganizationId) -> Result<Vec<UserId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let ids: Vec<Uuid> = app_user::table
            .filter(app_user::organization_id.eq(organization.as_uuid()))
            .filter(app_user::role.eq(Role::Admin.as_str()))
            .filter(app_user::disabled_at.is_null())
            .order(app_user::id)
            .select(app_user::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(ids.into_iter().map(UserId::new).collect())
    }

    async fn enabled_admins_with(
        &self,
        organization: OrganizationId,
        id: UserId,
    ) -> Result<Vec<UserId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Most changes are of other users: these lock only the one, so that they do not wait for each other. Not FOR UPDATE,
        // which would keep others from referencing the user.
        let other = diesel::sql_query(
            "SELECT id FROM labdata.app_user WHERE organization_id = $1 AND id = $2 \
             AND (role <> 'admin' OR disabled_at IS NOT NULL) FOR NO KEY UPDATE",
        );
        let other = other
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<SqlUuid, _>(id.as_uuid());
        if other.execute(&mut connection).await.map_err(port_error)? > 0 {
            return Ok(Vec::new());
        }
        // Racing demotions lock in one order, and the later one sees what the earlier one left.
        let admins = diesel::sql_query(
            "SELECT id FROM labdata.app_user WHERE organization_id = $1 \
             AND role = 'admin' AND disabled_at IS NULL ORDER BY id FOR NO KEY UPDATE",
        );
        let admins: Vec<AdminRow> = admins
            .bind::<SqlUuid, _>(organization.as_uuid())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let mut admins: Vec<UserId> = admins.into_iter().map(|row| UserId::new(row.id)).collect();
        if !admins.contains(&id) {
            admins.clear();
        }
        Ok(admins)
    }

    async fn update_user(
        &self,
        organization: OrganizationId,
        id: UserId,
        change: &UserChange,
        now: OffsetDateTime,
    ) -> Result<User, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update_user(connection, organization, id, change, now)
        )?)
    }

    async fn ensure_secret(
        &self,
        purpose: &str,
        candidate: &[u8; 32],
    ) -> Result<[u8; 32], PortError> {
        let mut connection = self.database.connection().await?;
        diesel::insert_into(server_secret::table)
            .values((
                server_secret::purpose.eq(purpose),
                server_secret::secret.eq(candidate.as_slice()),
            ))
            // Servers that start together each bring a candidate; the first is stored, and all read that one.
            .on_conflict_do_nothing()
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        let secret: Vec<u8> = server_secret::table
            .find(purpose)
            .select(server_secret::secret)
            .first(&mut connection)
            .await
            .map_err(port_error)?;
        secret
            .try_into()
            .map_err(|_| corrupt("server_secret", "secret", purpose))
    }
}
