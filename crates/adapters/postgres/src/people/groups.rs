//! Groups of users.

use async_trait::async_trait;
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    conflict::Conflict,
    ids::{GroupId, OrganizationId, UserId},
    people::group::{Group, GroupChange, sorted_members},
    refusal::Resource,
};
use labdata_ports::{PortError, people::groups::GroupRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{
    errors::{Fault, port_error, transacted},
    pool::{Connection, Database},
};

/// Groups in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgGroupRepository {
    database: Database,
}

impl PgGroupRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(QueryableByName)]
struct GroupRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
    #[diesel(sql_type = Array<SqlUuid>)]
    members: Vec<Uuid>,
}

impl GroupRow {
    fn group(self, organization: OrganizationId) -> Group {
        Group {
            id: GroupId::new(self.id),
            organization,
            name: self.name,
            members: self.members.into_iter().map(UserId::new).collect(),
            created_at: self.created_at,
        }
    }
}

#[derive(QueryableByName)]
struct NameRow {
    #[diesel(sql_type = Text)]
    name: String,
}

const SELECT: &str = "SELECT g.id, g.name, g.created_at, \
    ARRAY(SELECT m.user_id FROM labdata.group_member m \
          WHERE m.organization_id = g.organization_id AND m.group_id = g.id ORDER BY m.user_id) AS members \
    FROM labdata.user_group g WHERE g.organization_id = $1";

async fn find(
    connection: &mut Connection,
    organization: OrganizationId,
    id: GroupId,
) -> Result<Group, Fault> {
    let row: Option<GroupRow> = diesel::sql_query(format!("{SELECT} AND g.id = $2"))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(id.as_uuid())
        .get_result(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Group))?;
    Ok(row.group(organization))
}

/// The group, which no other transaction changes until the end of this one.
async fn locked(
    connection: &mut Connection,
    organization: OrganizationId,
    id: GroupId,
) -> Result<Group, Fault> {
    diesel::sql_query(
        "SELECT 1 FROM labdata.user_group WHERE organization_id = $1 AND id = $2 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(id.as_uuid())
    .execute(connection)
    .await?;
    // A second statement: the snapshot of one that waits for a lock has the members of before.
    find(connection, organization, id).await
}

fn refusal(error: diesel::result::Error, group: &Group) -> Fault {
    Fault::from(error)
        .on_violation("user_group_name_key", || {
            PortError::Conflict(Conflict::GroupName(group.name.clone()))
        })
        .on_violation("user_group_organization_id_fkey", || {
            PortError::NotFound(Resource::Organization)
        })
        .on_violation("group_member_user_id_fkey", || {
            PortError::NotFound(Resource::User)
        })
        .on_violation("table_access_group_id_fkey", || {
            PortError::Conflict(Conflict::GroupInUse(group.name.clone()))
        })
}

async fn add_members(connection: &mut Connection, group: &Group) -> Result<(), Fault> {
    // One array: the number of statements does not grow with that of members.
    let members: Vec<Uuid> = group.members.iter().map(|id| id.as_uuid()).collect();
    diesel::sql_query(
        "INSERT INTO labdata.group_member (organization_id, group_id, user_id) SELECT $1, $2, unnest($3)",
    )
    .bind::<SqlUuid, _>(group.organization.as_uuid())
    .bind::<SqlUuid, _>(group.id.as_uuid())
    .bind::<Array<SqlUuid>, _>(members)
    .execute(connection)
    .await
    .map_err(|error| refusal(error, group))?;
    Ok(())
}

/// Makes servers load the catalog again, which names the groups.
async fn rename_in_catalog(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    diesel::sql_query(
        "UPDATE labdata.organization SET catalog_version = catalog_version + 1 WHERE id = $1",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

/// Refuses a name of which another group has a twin. Groups that were twins before are left as they are. MUST come after
/// [`rename_in_catalog`], whose lock lets no other group take the name.
async fn check_name(connection: &mut Connection, group: &Group) -> Result<(), Fault> {
    let others: Vec<NameRow> = diesel::sql_query(
        "SELECT name FROM labdata.user_group WHERE organization_id = $1 AND id <> $2",
    )
    .bind::<SqlUuid, _>(group.organization.as_uuid())
    .bind::<SqlUuid, _>(group.id.as_uuid())
    .load(connection)
    .await?;
    match group.name_taken(others.iter().map(|other| other.name.as_str())) {
        Some(taken) => Err(PortError::Conflict(taken).into()),
        None => Ok(()),
    }
}

async fn add(connection: &mut Connection, group: &Group) -> Result<(), Fault> {
    // First: definitions take the same lock before they look at groups.
    rename_in_catalog(connection, group.organization).await?;
    check_name(connection, group).await?;
    diesel::sql_query(
        "INSERT INTO labdata.user_group (id, organization_id, name, created_at) VALUES ($1, $2, $3, $4)",
    )
    .bind::<SqlUuid, _>(group.id.as_uuid())
    .bind::<SqlUuid, _>(group.organization.as_uuid())
    .bind::<Text, _>(&group.name)
    .bind::<Timestamptz, _>(group.created_at)
    .execute(connection)
    .await
    .map_err(|error| refusal(error, group))?;
    add_members(connection, group).await
}

async fn update(
    connection: &mut Connection,
    organization: OrganizationId,
    id: GroupId,
    change: &GroupChange,
) -> Result<Group, Fault> {
    // Access of tables is by names in the catalog, so a new name makes cached catalogs stale; members do not.
    if change.name.is_some() {
        rename_in_catalog(connection, organization).await?;
    }
    let mut group = locked(connection, organization, id).await?;
    if let Some(name) = &change.name {
        if group.name != *name {
            group.name.clone_from(name);
            check_name(connection, &group).await?;
        }
        diesel::sql_query("UPDATE labdata.user_group SET name = $2 WHERE id = $1")
            .bind::<SqlUuid, _>(id.as_uuid())
            .bind::<Text, _>(name)
            .execute(connection)
            .await
            .map_err(|error| refusal(error, &group))?;
    }
    if let Some(members) = &change.members {
        group.members = sorted_members(members.clone());
        // Replaced as a whole under the row's lock: two changes of members cannot mix.
        diesel::sql_query("DELETE FROM labdata.group_member WHERE group_id = $1")
            .bind::<SqlUuid, _>(id.as_uuid())
            .execute(connection)
            .await?;
        add_members(connection, &group).await?;
    }
    Ok(group)
}

async fn add_member(
    connection: &mut Connection,
    organization: OrganizationId,
    id: GroupId,
    user: UserId,
) -> Result<Option<Group>, Fault> {
    let group = locked(connection, organization, id).await?;
    if group.members.contains(&user) {
        return Ok(None);
    }
    let joining = Group {
        members: vec![user],
        ..group.clone()
    };
    add_members(connection, &joining).await?;
    let mut members = group.members;
    members.push(user);
    Ok(Some(Group {
        members: sorted_members(members),
        ..joining
    }))
}

async fn remove(
    connection: &mut Connection,
    organization: OrganizationId,
    id: GroupId,
) -> Result<(), Fault> {
    // First, as in `add`: a definition that names the group waits, and finds it deleted.
    rename_in_catalog(connection, organization).await?;
    let group = locked(connection, organization, id).await?;
    diesel::sql_query("DELETE FROM labdata.user_group WHERE id = $1")
        .bind::<SqlUuid, _>(id.as_uuid())
        .execute(connection)
        .await
        .map_err(|error| refusal(error, &group))?;
    Ok(())
}

#[async_trait]
impl GroupRepository for PgGroupRepository {
    async fn add(&self, group: &Group) -> Result<(), PortError> {
        Ok(transacted!(
            self.database.of(group.organization),
            connection => add(connection, group)
        )?)
    }

    async fn get(&self, organization: OrganizationId, id: GroupId) -> Result<Group, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        Ok(find(&mut connection, organization, id).await?)
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<Group>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let rows: Vec<GroupRow> =
            // By bytes, as the memory adapter sorts; the collation of the database differs between machines.
            diesel::sql_query(format!("{SELECT} ORDER BY g.name COLLATE \"C\""))
                .bind::<SqlUuid, _>(organization.as_uuid())
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        let groups = rows.into_iter();
        Ok(groups.map(|row| row.group(organization)).collect())
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: GroupId,
        change: &GroupChange,
    ) -> Result<Group, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update(connection, organization, id, change)
        )?)
    }

    async fn add_member(
        &self,
        organization: OrganizationId,
        id: GroupId,
        user: UserId,
    ) -> Result<Option<Group>, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => add_member(connection, organization, id, user)
        )?)
    }

    async fn remove(&self, organization: OrganizationId, id: GroupId) -> Result<(), PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => remove(connection, organization, id)
        )?)
    }
}
