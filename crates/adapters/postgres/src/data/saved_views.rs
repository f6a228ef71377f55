//! Saved views.

use async_trait::async_trait;
use diesel::{
    OptionalExtension, QueryableByName,
    result::Error as DieselError,
    sql_types::{Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    conflict::Conflict,
    data::saved_view::{SavedView, SavedViewChange},
    ids::{OrganizationId, SavedViewId, UserId},
    refusal::Resource,
};
use labdata_ports::{PortError, data::saved_views::SavedViewRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{
    errors::{Fault, port_error},
    pool::Database,
};

/// Saved views in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgSavedViewRepository {
    database: Database,
}

impl PgSavedViewRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(QueryableByName)]
struct SavedViewRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    address: String,
    #[diesel(sql_type = Bool)]
    is_pinned: bool,
    #[diesel(sql_type = SqlUuid)]
    created_by: Uuid,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
}

impl SavedViewRow {
    fn view(self, organization: OrganizationId) -> SavedView {
        SavedView {
            id: SavedViewId::new(self.id),
            organization,
            name: self.name,
            address: self.address,
            is_pinned: self.is_pinned,
            created_by: UserId::new(self.created_by),
            created_at: self.created_at,
        }
    }
}

const SELECT: &str = "SELECT id, name, address, is_pinned, created_by, created_at FROM labdata.saved_view \
    WHERE organization_id = $1";

fn refusal(error: DieselError, name: &str) -> PortError {
    Fault::from(error)
        .on_violation("saved_view_name_key", || {
            PortError::Conflict(Conflict::SavedViewName(name.to_owned()))
        })
        .on_violation("saved_view_created_by_fkey", || {
            PortError::NotFound(Resource::User)
        })
        .into()
}

#[async_trait]
impl SavedViewRepository for PgSavedViewRepository {
    async fn add(&self, view: &SavedView) -> Result<(), PortError> {
        let mut connection = self.database.of(view.organization).connection().await?;
        diesel::sql_query(
            "INSERT INTO labdata.saved_view \
                 (id, organization_id, name, address, is_pinned, created_by, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind::<SqlUuid, _>(view.id.as_uuid())
        .bind::<SqlUuid, _>(view.organization.as_uuid())
        .bind::<Text, _>(&view.name)
        .bind::<Text, _>(&view.address)
        .bind::<Bool, _>(view.is_pinned)
        .bind::<SqlUuid, _>(view.created_by.as_uuid())
        .bind::<Timestamptz, _>(view.created_at)
        .execute(&mut connection)
        .await
        .map_err(|error| refusal(error, &view.name))?;
        Ok(())
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
    ) -> Result<SavedView, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<SavedViewRow> = diesel::sql_query(format!("{SELECT} AND id = $2"))
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<SqlUuid, _>(id.as_uuid())
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let row = row.ok_or(PortError::NotFound(Resource::SavedView))?;
        Ok(row.view(organization))
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<SavedView>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let rows: Vec<SavedViewRow> =
            diesel::sql_query(format!("{SELECT} ORDER BY name COLLATE \"C\""))
                .bind::<SqlUuid, _>(organization.as_uuid())
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        Ok(rows.into_iter().map(|row| row.view(organization)).collect())
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
        change: &SavedViewChange,
    ) -> Result<SavedView, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement, so that racing changes of other fields are not written back.
        let row: Option<SavedViewRow> = diesel::sql_query(
            "UPDATE labdata.saved_view SET name = coalesce($3, name), address = coalesce($4, address), \
                 is_pinned = coalesce($5, is_pinned) \
             WHERE organization_id = $1 AND id = $2 \
             RETURNING id, name, address, is_pinned, created_by, created_at",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(id.as_uuid())
        .bind::<Nullable<Text>, _>(&change.name)
        .bind::<Nullable<Text>, _>(&change.address)
        .bind::<Nullable<Bool>, _>(change.is_pinned)
        .get_result(&mut connection)
        .await
        .optional()
        .map_err(|error| refusal(error, change.name.as_deref().unwrap_or_default()))?;
        let row = row.ok_or(PortError::NotFound(Resource::SavedView))?;
        Ok(row.view(organization))
    }

    async fn remove(&self, organization: OrganizationId, id: SavedViewId) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let removed = diesel::sql_query(
            "DELETE FROM labdata.saved_view WHERE organization_id = $1 AND id = $2",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(id.as_uuid())
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        if removed == 0 {
            return Err(PortError::NotFound(Resource::SavedView));
        }
        Ok(())
    }
}
