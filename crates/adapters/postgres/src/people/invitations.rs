//! Invitations.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{GroupId, InvitationId, OrganizationId, UserId},
    people::{ApiKeyHash, invitation::Invitation, role::Role},
    refusal::Resource,
};
use labdata_ports::{PortError, people::invitations::InvitationRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error},
        pool::Database,
    },
    schema::invitation,
};

/// Invitations in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgInvitationRepository {
    database: Database,
}

impl PgInvitationRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = invitation)]
struct InvitationRow {
    id: Uuid,
    organization_id: Uuid,
    email: String,
    role: String,
    groups: Vec<Uuid>,
    token_hash: Vec<u8>,
    created_by: Uuid,
    created_at: OffsetDateTime,
    expires_at: OffsetDateTime,
}

impl TryFrom<InvitationRow> for Invitation {
    type Error = PortError;

    fn try_from(row: InvitationRow) -> Result<Self, PortError> {
        let token: [u8; 32] = row
            .token_hash
            .try_into()
            .map_err(|_| corrupt("invitation", "token_hash", row.id))?;
        let role = Role::from_name(&row.role);
        Ok(Self {
            id: InvitationId::new(row.id),
            organization: OrganizationId::new(row.organization_id),
            email: row.email,
            role: role.ok_or_else(|| corrupt("invitation", "role", row.id))?,
            groups: row.groups.into_iter().map(GroupId::new).collect(),
            token: ApiKeyHash(token),
            created_by: UserId::new(row.created_by),
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

#[async_trait]
impl InvitationRepository for PgInvitationRepository {
    async fn add(&self, new: &Invitation) -> Result<(), PortError> {
        let mut connection = self.database.of(new.organization).connection().await?;
        let groups: Vec<Uuid> = new.groups.iter().map(|id| id.as_uuid()).collect();
        let added = diesel::insert_into(invitation::table)
            .values((
                invitation::id.eq(new.id.as_uuid()),
                invitation::organization_id.eq(new.organization.as_uuid()),
                invitation::email.eq(&new.email),
                invitation::role.eq(new.role.as_str()),
                invitation::groups.eq(groups),
                invitation::token_hash.eq(new.token.0.as_slice()),
                invitation::created_by.eq(new.created_by.as_uuid()),
                invitation::created_at.eq(new.created_at),
                invitation::expires_at.eq(new.expires_at),
            ))
            .execute(&mut connection)
            .await;
        added.map_err(|error| {
            Fault::from(error)
                .of_commit()
                .on_violation("invitation_created_by_fkey", || {
                    PortError::NotFound(Resource::User)
                })
        })?;
        Ok(())
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<Invitation>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let rows: Vec<InvitationRow> = invitation::table
            .filter(invitation::organization_id.eq(organization.as_uuid()))
            .order((invitation::created_at.desc(), invitation::id.desc()))
            .select(InvitationRow::as_select())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        rows.into_iter().map(Invitation::try_from).collect()
    }

    async fn remove(
        &self,
        organization: OrganizationId,
        id: InvitationId,
    ) -> Result<Invitation, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Deleted and read in one statement: of two racing calls one gets the invitation.
        let rows: Vec<InvitationRow> = diesel::delete(invitation::table)
            .filter(invitation::id.eq(id.as_uuid()))
            .filter(invitation::organization_id.eq(organization.as_uuid()))
            .returning(InvitationRow::as_returning())
            // To the end, as the statement commits itself after its row.
            .load(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        let row = rows.into_iter().next();
        row.ok_or(PortError::NotFound(Resource::Invitation))?
            .try_into()
    }

    async fn find(&self, token: ApiKeyHash) -> Result<Option<Invitation>, PortError> {
        let mut connection = self.database.connection().await?;
        // Of all organizations: the link brings a token alone, which tells its organization.
        let row: Option<InvitationRow> = invitation::table
            .filter(invitation::token_hash.eq(token.0.as_slice()))
            .select(InvitationRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(Invitation::try_from).transpose()
    }

    async fn remove_expired(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let removed = diesel::delete(invitation::table)
            .filter(invitation::expires_at.le(now))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }
}
