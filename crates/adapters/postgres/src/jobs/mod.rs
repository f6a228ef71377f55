//! Jobs.

pub(crate) mod rows;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{JobId, OrganizationId, UserId},
    jobs::{Job, ScriptVersion, VersionSummary},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    jobs::{JobFilter, JobRepository},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        paging::{overfetched, page_of},
        pool::{Connection, Database},
    },
    jobs::rows::JobRow,
    schema::{job, job_trigger, job_version},
    triggers::rows as triggers,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = job_version)]
struct VersionRow {
    version_number: i64,
    code: String,
    created_by: Uuid,
    created_at: OffsetDateTime,
}

/// Jobs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgJobRepository {
    database: Database,
}

impl PgJobRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Maps the violation of a job's constraint.
fn refusal(error: diesel::result::Error, job: &Job) -> Fault {
    Fault::from(error)
        .on_violation("job_name_key", || PortError::Conflict(job.name_taken()))
        .on_violation("job_organization_id_fkey", || {
            PortError::NotFound(Resource::Organization)
        })
}

async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    job: &Job,
    script: &ScriptVersion,
) -> Result<(), Fault> {
    diesel::insert_into(job::table)
        .values((
            job::id.eq(job.id.as_uuid()),
            job::organization_id.eq(organization.as_uuid()),
            job::name.eq(&job.name),
            job::description.eq(&job.description),
            job::archived.eq(job.archived),
            job::created_at.eq(job.created_at),
            job::version_number.eq(job.version_number.map(i64::from)),
            job::revision.eq(number(job.revision)?),
            job::parameter_definitions.eq(parameters(job)?),
            job::publish_status.eq(job.publish_status.as_str()),
            job::published_version.eq(job.published_version.map(i64::from)),
        ))
        .execute(connection)
        .await
        .map_err(|error| refusal(error, job))?;
    // After the job, to which it refers.
    add_version(connection, organization, job.id, script).await?;
    triggers::store(connection, organization, job, None).await
}

async fn add_version(
    connection: &mut Connection,
    organization: OrganizationId,
    job: JobId,
    script: &ScriptVersion,
) -> Result<(), Fault> {
    diesel::insert_into(job_version::table)
        .values((
            job_version::job_id.eq(job.as_uuid()),
            job_version::organization_id.eq(organization.as_uuid()),
            job_version::version_number.eq(i64::from(script.number)),
            job_version::code.eq(&script.code),
            job_version::created_by.eq(script.created_by.as_uuid()),
            job_version::created_at.eq(script.created_at),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("job_version_created_by_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    Ok(())
}

async fn update(
    connection: &mut Connection,
    organization: OrganizationId,
    revision: u64,
    job: &Job,
    script: Option<&ScriptVersion>,
) -> Result<bool, Fault> {
    let changed = diesel::update(job::table)
        .filter(job::id.eq(job.id.as_uuid()))
        .filter(job::organization_id.eq(organization.as_uuid()))
        // The fence against lost updates: a change based on an older revision finds no row.
        .filter(job::revision.eq(number(revision)?))
        .set((
            job::name.eq(&job.name),
            job::description.eq(&job.description),
            job::archived.eq(job.archived),
            job::version_number.eq(job.version_number.map(i64::from)),
            // By the database: the number of the request is only what it was compared with.
            job::revision.eq(job::revision + 1),
            job::parameter_definitions.eq(parameters(job)?),
            job::publish_status.eq(job.publish_status.as_str()),
            job::published_version.eq(job.published_version.map(i64::from)),
        ))
        .execute(connection)
        .await
        .map_err(|error| refusal(error, job))?;
    if changed == 0 {
        // No row has two causes: another revision, or no such job of the organization.
        require(connection, organization, job.id).await?;
        return Ok(false);
    }
    if let Some(script) = script {
        add_version(connection, organization, job.id, script).await?;
    }
    // Only changes of the job change its trigger, and the job's row is locked.
    let before = triggers::load(connection, organization, job.id).await?;
    triggers::store(connection, organization, job, before.as_ref()).await?;
    Ok(true)
}

/// Refuses an id that is no job of the organization's.
async fn require(
    connection: &mut Connection,
    organization: OrganizationId,
    id: JobId,
) -> Result<(), PortError> {
    let found: Option<Uuid> = job::table
        .find(id.as_uuid())
        .filter(job::organization_id.eq(organization.as_uuid()))
        .select(job::id)
        .first(connection)
        .await
        .optional()
        .map_err(port_error)?;
    found.map(drop).ok_or(PortError::NotFound(Resource::Job))
}

/// Definitions of parameters as the database retains them.
fn parameters(job: &Job) -> Result<Value, PortError> {
    serde_json::to_value(&job.parameters).map_err(|error| PortError::Internal(error.to_string()))
}

/// A count as the database retains it.
fn number(count: u64) -> Result<i64, PortError> {
    i64::try_from(count).map_err(|error| PortError::Internal(error.to_string()))
}

/// A version's number as the program retains it.
fn version_number(job: JobId, number: i64) -> Result<u32, PortError> {
    u32::try_from(number).map_err(|_| corrupt("job_version", "version_number", job))
}

async fn job_named(
    connection: &mut Connection,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<Job>, PortError> {
    let row = job::table
        .left_join(job_trigger::table)
        .filter(job::organization_id.eq(organization.as_uuid()))
        .filter(job::name.eq(name))
        .select(JobRow::as_select())
        .first(connection)
        .await
        .optional()
        .map_err(port_error)?;
    row.map(Job::try_from).transpose()
}

#[async_trait]
impl JobRepository for PgJobRepository {
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &JobFilter,
        page: PageRequest,
    ) -> Result<Page<Job>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let mut query = job::table
            .left_join(job_trigger::table)
            .filter(job::organization_id.eq(organization.as_uuid()))
            .select(JobRow::as_select())
            .into_boxed();
        if let Some(name) = &filter.name {
            query = query.filter(job::name.eq(name));
        }
        if !filter.include_archived {
            query = query.filter(job::archived.eq(false));
        }
        let rows: Vec<JobRow> = page_of!(query, page, job::created_at, job::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let jobs = rows.into_iter().map(Job::try_from);
        let jobs = jobs.collect::<Result<_, _>>()?;
        Ok(Page::from_overfetched(jobs, page.limit, |job: &Job| {
            Cursor {
                at: job.created_at,
                id: job.id.as_uuid(),
            }
        }))
    }

    async fn get(&self, organization: OrganizationId, id: JobId) -> Result<Job, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row = job::table
            .left_join(job_trigger::table)
            .filter(job::id.eq(id.as_uuid()))
            .filter(job::organization_id.eq(organization.as_uuid()))
            .select(JobRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound(Resource::Job))?.try_into()
    }

    async fn ensure(
        &self,
        organization: OrganizationId,
        candidate: &Job,
    ) -> Result<Job, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Usually it exists: a read spares the insertion's lock and the dead row of a conflict.
        if let Some(found) = job_named(&mut connection, organization, &candidate.name).await? {
            return Ok(found);
        }
        // Waits for a racing insertion to end, and leaves it standing.
        diesel::insert_into(job::table)
            .values((
                job::id.eq(candidate.id.as_uuid()),
                job::organization_id.eq(organization.as_uuid()),
                job::name.eq(&candidate.name),
                job::description.eq(&candidate.description),
                job::archived.eq(candidate.archived),
                job::created_at.eq(candidate.created_at),
            ))
            .on_conflict((job::organization_id, job::name))
            .do_nothing()
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error).on_violation("job_organization_id_fkey", || {
                    PortError::NotFound(Resource::Organization)
                })
            })?;
        job_named(&mut connection, organization, &candidate.name)
            .await?
            .ok_or_else(|| PortError::Internal("a job vanished while it was created".to_owned()))
    }

    async fn add(
        &self,
        organization: OrganizationId,
        job: &Job,
        script: &ScriptVersion,
    ) -> Result<(), PortError> {
        Ok(
            transacted!(self.database.of(organization), connection => add(connection, organization, job, script))?,
        )
    }

    async fn update(
        &self,
        organization: OrganizationId,
        revision: u64,
        job: &Job,
        script: Option<&ScriptVersion>,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update(connection, organization, revision, job, script)
        )?)
    }

    async fn versions(
        &self,
        organization: OrganizationId,
        id: JobId,
        page: PageRequest,
    ) -> Result<Page<VersionSummary>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // A job without versions has an empty page; one of another organization is not found.
        require(&mut connection, organization, id).await?;
        let mut query = job_version::table
            .inner_join(job::table)
            .filter(job_version::organization_id.eq(organization.as_uuid()))
            .filter(job_version::job_id.eq(id.as_uuid()))
            .select((
                job_version::version_number,
                job_version::created_at,
                job_version::created_by,
                job::version_number,
            ))
            .into_boxed();
        if let Some(place) = page.after {
            let number = i64::from(VersionSummary::number_at(place));
            // Numbers are unique within a job, so one condition replaces the pair of time and id.
            query = query.filter(job_version::version_number.lt(number));
        }
        let rows: Vec<(i64, OffsetDateTime, Uuid, Option<i64>)> = query
            .order(job_version::version_number.desc())
            .limit(overfetched(page))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let versions = rows
            .into_iter()
            .map(|(number, created_at, created_by, current)| {
                let current = current.map(|current| version_number(id, current));
                Ok(VersionSummary::new(
                    version_number(id, number)?,
                    created_at,
                    UserId::new(created_by),
                    current.transpose()?,
                ))
            })
            .collect::<Result<_, PortError>>()?;
        Ok(Page::from_overfetched(
            versions,
            page.limit,
            VersionSummary::place,
        ))
    }

    async fn version(
        &self,
        organization: OrganizationId,
        id: JobId,
        number: u32,
    ) -> Result<ScriptVersion, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // First, so that the refusal tells a wrong job from a wrong number.
        require(&mut connection, organization, id).await?;
        let row: Option<VersionRow> = job_version::table
            .filter(job_version::organization_id.eq(organization.as_uuid()))
            .filter(job_version::job_id.eq(id.as_uuid()))
            .filter(job_version::version_number.eq(i64::from(number)))
            .select(VersionRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let row = row.ok_or(PortError::NotFound(Resource::ScriptVersion))?;
        Ok(ScriptVersion {
            number: version_number(id, row.version_number)?,
            code: row.code,
            created_at: row.created_at,
            created_by: UserId::new(row.created_by),
        })
    }
}
