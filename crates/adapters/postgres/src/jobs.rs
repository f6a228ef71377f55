//! Jobs.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    job::Job,
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    jobs::{JobFilter, JobRepository},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    errors::{Fault, port_error},
    paging::page_of,
    pool::{Connection, Database},
    schema::job,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = job)]
struct JobRow {
    id: Uuid,
    name: String,
    archived: bool,
    description: Option<String>,
    created_at: OffsetDateTime,
}

impl From<JobRow> for Job {
    fn from(row: JobRow) -> Self {
        Self {
            id: JobId::new(row.id),
            name: row.name,
            archived: row.archived,
            description: row.description,
            created_at: row.created_at,
        }
    }
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

async fn job_named(
    connection: &mut Connection,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<Job>, PortError> {
    let row = job::table
        .filter(job::organization_id.eq(organization.as_uuid()))
        .filter(job::name.eq(name))
        .select(JobRow::as_select())
        .first(connection)
        .await
        .optional()
        .map_err(port_error)?;
    Ok(row.map(Job::from))
}

#[async_trait]
impl JobRepository for PgJobRepository {
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &JobFilter,
        page: PageRequest,
    ) -> Result<Page<Job>, PortError> {
        let mut connection = self.database.connection().await?;
        let mut query = job::table
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
        let jobs = rows.into_iter().map(Job::from).collect();
        Ok(Page::from_overfetched(jobs, page.limit, |job| Cursor {
            at: job.created_at,
            id: job.id.as_uuid(),
        }))
    }

    async fn get(&self, organization: OrganizationId, id: JobId) -> Result<Job, PortError> {
        let mut connection = self.database.connection().await?;
        let row = job::table
            .find(id.as_uuid())
            .filter(job::organization_id.eq(organization.as_uuid()))
            .select(JobRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(Job::from).ok_or(PortError::NotFound("job"))
    }

    async fn ensure(
        &self,
        organization: OrganizationId,
        candidate: &Job,
    ) -> Result<Job, PortError> {
        let mut connection = self.database.connection().await?;
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
                    PortError::NotFound("organization")
                })
            })?;
        job_named(&mut connection, organization, &candidate.name)
            .await?
            .ok_or_else(|| PortError::Internal("a job vanished while it was created".to_owned()))
    }
}
