//! Sessions of writes.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    agent::{EndedSession, WriteSessions},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::port_error, pool::Database},
    schema::agent_write_session as session,
};

/// Sessions of writes in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgWriteSessions {
    database: Database,
}

impl PgWriteSessions {
    /// The sessions over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// A session that has ended.
#[derive(Debug, QueryableByName)]
struct EndedRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    execution_id: Uuid,
}

#[async_trait]
impl WriteSessions for PgWriteSessions {
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        now: OffsetDateTime,
    ) -> Result<Option<ExecutionId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement: no sweep can end the session between the look and the use.
        let execution: Option<Uuid> = diesel::update(session::table)
            .filter(session::api_key_id.eq(key.as_uuid()))
            .filter(session::organization_id.eq(organization.as_uuid()))
            .set(session::last_used_at.eq(now))
            .returning(session::execution_id)
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(execution.map(ExecutionId::new))
    }

    async fn begin(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<ExecutionId, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let execution: Uuid = diesel::insert_into(session::table)
            .values((
                session::api_key_id.eq(key.as_uuid()),
                session::organization_id.eq(organization.as_uuid()),
                session::execution_id.eq(execution.as_uuid()),
                session::last_used_at.eq(now),
            ))
            .on_conflict((session::organization_id, session::api_key_id))
            // DO NOTHING would return no row: the loser of a race takes over the winner's execution.
            .do_update()
            .set(session::last_used_at.eq(now))
            .returning(session::execution_id)
            .get_result(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(ExecutionId::new(execution))
    }

    async fn end(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::delete(session::table)
            .filter(session::api_key_id.eq(key.as_uuid()))
            .filter(session::organization_id.eq(organization.as_uuid()))
            // Another session may have begun under the key since.
            .filter(session::execution_id.eq(execution.as_uuid()))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(())
    }

    async fn end_idle(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<EndedSession>, PortError> {
        let mut connection = self.database.connection().await?;
        let ended: Vec<EndedRow> = diesel::sql_query(
            // SKIP LOCKED leaves out a session that is in use at this moment.
            "DELETE FROM labdata.agent_write_session WHERE (organization_id, api_key_id) IN \
                 (SELECT organization_id, api_key_id FROM labdata.agent_write_session \
                  WHERE last_used_at < $1 \
                  ORDER BY last_used_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
             RETURNING organization_id, execution_id",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(i64::from(limit))
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        let ended = ended.into_iter().map(|row| EndedSession {
            organization: OrganizationId::new(row.organization_id),
            execution: ExecutionId::new(row.execution_id),
        });
        Ok(ended.collect())
    }
}
