//! Records of models.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::{
        ActivateError, ModelArchived, ModelVersion, NameTaken, NewModel, NewVersion,
        TrainingQueueFull, TrainingResult, check_pending_trainings,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    models::{
        ActivateModelError, AddVersionError, CancelTrainingError, CreateModelError, ModelFilter,
        ModelRepository, RestoreModelError,
    },
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    models::{
        training_ends::{cancel, cancel_in_flight},
        version_rows::{self, VersionRow, load, load_newest, lock_model, set_active},
    },
    schema::{ml_model, ml_model_version},
};

/// Records of models in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgModelRepository {
    database: Database,
}

impl PgModelRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn load_one(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: Option<u32>,
    ) -> Result<Option<ModelVersion>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        Ok(load(&mut connection, organization, model, number).await?)
    }
}

#[derive(QueryableByName)]
struct PendingRow {
    #[diesel(sql_type = BigInt)]
    pending: i64,
}

/// Checks that the organization may queue another training. Makes its other trainings wait for the end
/// of the transaction, so that the number of pending ones does not grow. MUST come before any row is
/// locked.
async fn check_queue(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Result<(), TrainingQueueFull>, Fault> {
    diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
        .bind::<Text, _>(format!("labdata.ml_model_version pending {organization}"))
        .execute(connection)
        .await?;
    // A separate statement, so that it sees what was committed while it waited for the lock.
    let row: PendingRow = diesel::sql_query(
        "SELECT count(*) AS pending FROM labdata.work \
         WHERE kind = 'training' AND organization_id = $1 AND state = 'queued'",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .get_result(connection)
    .await?;
    let pending = u64::try_from(row.pending)
        .map_err(|_| PortError::Internal("less than no trainings".to_owned()))?;
    Ok(check_pending_trainings(pending))
}

async fn create(
    connection: &mut Connection,
    organization: OrganizationId,
    model: &NewModel,
    version: &NewVersion,
) -> Result<Result<ModelVersion, CreateRefusal>, Fault> {
    if let Err(refusal) = check_queue(connection, organization).await? {
        return Ok(Err(CreateRefusal::QueueFull(refusal)));
    }
    let inserted = diesel::insert_into(ml_model::table)
        .values((
            ml_model::id.eq(model.id.as_uuid()),
            ml_model::organization_id.eq(organization.as_uuid()),
            ml_model::name.eq(&model.name),
            ml_model::version_number.eq(1),
            ml_model::created_at.eq(version.requested_at),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if inserted == 0 {
        return Ok(Err(CreateRefusal::NameTaken(NameTaken(model.name.clone()))));
    }
    let queued = ModelVersion::queue(model, 1, version);
    version_rows::insert(connection, organization, &queued).await?;
    Ok(Ok(queued))
}

async fn add_version(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ModelId,
    version: &NewVersion,
) -> Result<Result<ModelVersion, AddRefusal>, Fault> {
    if let Err(refusal) = check_queue(connection, organization).await? {
        return Ok(Err(AddRefusal::QueueFull(refusal)));
    }
    // Under the lock, so that two requests never take the same number.
    let model = lock_model(connection, organization, id).await?;
    if model.archived {
        return Ok(Err(AddRefusal::Archived));
    }
    let next = model.version_number.saturating_add(1);
    let number = u32::try_from(next).map_err(|_| corrupt("ml_model", "version_number", id))?;
    let named = NewModel {
        id,
        name: model.name,
    };
    let queued = ModelVersion::queue(&named, number, version);
    diesel::update(ml_model::table.find(id.as_uuid()))
        .set(ml_model::version_number.eq(next))
        .execute(connection)
        .await?;
    version_rows::insert(connection, organization, &queued).await?;
    Ok(Ok(queued))
}

/// Why a model is not created.
enum CreateRefusal {
    NameTaken(NameTaken),
    QueueFull(TrainingQueueFull),
}

/// Why a model gets no further version.
enum AddRefusal {
    Archived,
    QueueFull(TrainingQueueFull),
}

/// Why a locked model refuses an activation.
enum Refusal {
    Version(ActivateError),
    Archived,
}

async fn activate(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ModelId,
    number: u32,
) -> Result<Result<ModelVersion, Refusal>, Fault> {
    // Under the lock: a training that ends at the same time also sets the active version.
    if lock_model(connection, organization, id).await?.archived {
        return Ok(Err(Refusal::Archived));
    }
    let Some(version) = load(connection, organization, id, Some(number)).await? else {
        return Ok(Err(Refusal::Version(ActivateError::Unknown(number))));
    };
    if let Err(refusal) = version.check_activation() {
        return Ok(Err(Refusal::Version(refusal)));
    }
    set_active(connection, id, number).await?;
    Ok(Ok(ModelVersion {
        is_active: true,
        ..version
    }))
}

async fn archive(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ModelId,
    now: OffsetDateTime,
) -> Result<ModelVersion, Fault> {
    if !lock_model(connection, organization, id).await?.archived {
        // Trainings first: one that became ready later would activate a version of an archived model.
        cancel_in_flight(connection, organization, id, now).await?;
        diesel::update(ml_model::table.find(id.as_uuid()))
            .set(ml_model::archived.eq(true))
            .execute(connection)
            .await?;
    }
    load_newest(connection, organization, id).await
}

async fn restore(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ModelId,
) -> Result<ModelVersion, Fault> {
    if lock_model(connection, organization, id).await?.archived {
        diesel::update(ml_model::table.find(id.as_uuid()))
            .set(ml_model::archived.eq(false))
            .execute(connection)
            .await?;
    }
    load_newest(connection, organization, id).await
}

#[async_trait]
impl ModelRepository for PgModelRepository {
    async fn create(
        &self,
        organization: OrganizationId,
        model: &NewModel,
        version: &NewVersion,
    ) -> Result<ModelVersion, CreateModelError> {
        let created = transacted!(self.database.of(organization), connection => create(connection, organization, model, version));
        created
            .map_err(PortError::from)?
            .map_err(|refusal| match refusal {
                CreateRefusal::NameTaken(refusal) => refusal.into(),
                CreateRefusal::QueueFull(refusal) => refusal.into(),
            })
    }

    async fn add_version(
        &self,
        organization: OrganizationId,
        model: ModelId,
        version: &NewVersion,
    ) -> Result<ModelVersion, AddVersionError> {
        let added = transacted!(self.database.of(organization), connection => add_version(connection, organization, model, version));
        added
            .map_err(PortError::from)?
            .map_err(|refusal| match refusal {
                AddRefusal::Archived => ModelArchived.into(),
                AddRefusal::QueueFull(refusal) => refusal.into(),
            })
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: ModelFilter,
        page: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let mut query = ml_model_version::table
            .inner_join(ml_model::table)
            .filter(ml_model::organization_id.eq(organization.as_uuid()))
            .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
            // The newest version represents its model, so that a list needs no second query.
            .filter(ml_model_version::version_number.eq(ml_model::version_number))
            .select((ml_model::created_at, VersionRow::as_select()))
            .into_boxed();
        if !filter.include_archived {
            query = query.filter(ml_model::archived.eq(false));
        }
        let rows: Vec<(OffsetDateTime, VersionRow)> =
            page_of!(query, page, ml_model::created_at, ml_model::id)
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        let listed = rows.into_iter().map(|(created_at, row)| {
            let version = ModelVersion::try_from(row)?;
            Ok::<_, PortError>((created_at, version))
        });
        let listed = listed.collect::<Result<Vec<_>, _>>()?;
        let listed = Page::from_overfetched(listed, page.limit, |(created_at, version)| Cursor {
            at: *created_at,
            id: version.model.as_uuid(),
        });
        Ok(Page {
            items: listed.items.into_iter().map(|(_, it)| it).collect(),
            next: listed.next,
        })
    }

    async fn get(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: Option<u32>,
    ) -> Result<ModelVersion, PortError> {
        let found = self.load_one(organization, model, number).await?;
        found.ok_or(PortError::NotFound(match number {
            None => Resource::Model,
            Some(_) => Resource::ModelVersion,
        }))
    }

    async fn versions(
        &self,
        organization: OrganizationId,
        model: ModelId,
        page: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // An unknown model is not found, where the list alone would be empty.
        load_newest(&mut connection, organization, model).await?;
        let query = ml_model_version::table
            .inner_join(ml_model::table)
            .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
            .filter(ml_model_version::model_id.eq(model.as_uuid()))
            .select(VersionRow::as_select())
            .into_boxed();
        let rows = page_of!(
            query,
            page,
            ml_model_version::created_at,
            ml_model_version::id
        )
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        let versions = version_rows::versions(rows)?;
        Ok(Page::from_overfetched(versions, page.limit, |version| {
            Cursor {
                at: version.requested_at,
                id: version.version.as_uuid(),
            }
        }))
    }

    async fn find_by_name(
        &self,
        organization: OrganizationId,
        name: &str,
    ) -> Result<Option<ModelVersion>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<VersionRow> = ml_model_version::table
            .inner_join(ml_model::table)
            .filter(ml_model::organization_id.eq(organization.as_uuid()))
            .filter(ml_model::archived.eq(false))
            .filter(ml_model::name.eq(name))
            .filter(ml_model_version::version_number.eq(ml_model::version_number))
            .select(VersionRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(ModelVersion::try_from).transpose()
    }

    async fn active(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<Option<ModelVersion>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement, so that a change of the active version is never seen halfway.
        let row: Option<Option<VersionRow>> = ml_model::table
            .left_join(
                ml_model_version::table.on(ml_model_version::model_id
                    .eq(ml_model::id)
                    .and(ml_model_version::organization_id.eq(ml_model::organization_id))
                    .and(
                        ml_model_version::version_number
                            .nullable()
                            .eq(ml_model::active_version_number),
                    )),
            )
            .filter(ml_model::id.eq(model.as_uuid()))
            .filter(ml_model::organization_id.eq(organization.as_uuid()))
            .select(Option::<VersionRow>::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let row = row.ok_or(PortError::NotFound(Resource::Model))?;
        row.map(ModelVersion::try_from).transpose()
    }

    async fn result(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<Option<TrainingResult>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let stored: Option<Option<Value>> = ml_model_version::table
            .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
            .filter(ml_model_version::model_id.eq(model.as_uuid()))
            .filter(ml_model_version::version_number.eq(i64::from(number)))
            .select(ml_model_version::result)
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let stored = stored.ok_or(PortError::NotFound(Resource::ModelVersion))?;
        stored
            .map(serde_json::from_value)
            .transpose()
            .map_err(|_| corrupt("ml_model_version", "result", model))
    }

    async fn activate(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<ModelVersion, ActivateModelError> {
        let activated = transacted!(self.database.of(organization), connection => activate(connection, organization, model, number));
        activated
            .map_err(PortError::from)?
            .map_err(|refusal| match refusal {
                Refusal::Version(refusal) => refusal.into(),
                Refusal::Archived => ModelArchived.into(),
            })
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError> {
        let cancelled = transacted!(self.database.of(organization), connection => cancel(connection, organization, model, now));
        Ok(cancelled.map_err(PortError::from)??)
    }

    async fn archive(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, PortError> {
        let archived = transacted!(self.database.of(organization), connection => archive(connection, organization, model, now));
        Ok(archived?)
    }

    async fn restore(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<ModelVersion, RestoreModelError> {
        let restored = transacted!(self.database.of(organization), connection => restore(connection, organization, model));
        match restored {
            // The refused statement has ended the transaction, so the name for the message is read in another one.
            Err(fault) if fault.violates("ml_model_name_key") => {
                let newest = self.load_one(organization, model, None).await?;
                let newest = newest.ok_or(PortError::NotFound(Resource::Model))?;
                Err(NameTaken(newest.name).into())
            }
            restored => Ok(restored.map_err(PortError::from)?),
        }
    }
}
