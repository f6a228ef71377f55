//! Sessions of writes.

use async_trait::async_trait;
use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Double, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    agent::{IdleSession, WriteSessions},
};
use time::Duration;
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

/// Start of the expression of the time before which a session of a pause was used last. A time of the database, as
/// those of servers differ.
const PAUSED: &str = "clock_timestamp() - make_interval(secs => ";

#[async_trait]
impl WriteSessions for PgWriteSessions {
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
    ) -> Result<Option<ExecutionId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement: no sweep can end the session between the look and the use.
        let execution: Option<Uuid> = diesel::update(session::table)
            .filter(session::api_key_id.eq(key.as_uuid()))
            .filter(session::organization_id.eq(organization.as_uuid()))
            .set(session::last_used_at.eq(sql::<Timestamptz>("clock_timestamp()")))
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
    ) -> Result<ExecutionId, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let execution: Uuid = diesel::insert_into(session::table)
            .values((
                session::api_key_id.eq(key.as_uuid()),
                session::organization_id.eq(organization.as_uuid()),
                session::execution_id.eq(execution.as_uuid()),
                session::last_used_at.eq(sql::<Timestamptz>("clock_timestamp()")),
            ))
            .on_conflict((session::organization_id, session::api_key_id))
            // DO NOTHING would return no row: the loser of a race takes over the winner's execution.
            .do_update()
            .set(session::last_used_at.eq(sql::<Timestamptz>("clock_timestamp()")))
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

    async fn idle(&self, pause: Duration, limit: u32) -> Result<Vec<IdleSession>, PortError> {
        let mut connection = self.database.connection().await?;
        let sessions: Vec<(Uuid, Uuid)> = session::table
            .filter(
                session::last_used_at.le(sql::<Timestamptz>(PAUSED)
                    .bind::<Double, _>(pause.as_seconds_f64())
                    .sql(")")),
            )
            .order(session::last_used_at)
            .limit(i64::from(limit))
            .select((session::organization_id, session::api_key_id))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let sessions = sessions.into_iter().map(|(organization, key)| IdleSession {
            organization: OrganizationId::new(organization),
            key: ApiKeyId::new(key),
        });
        Ok(sessions.collect())
    }

    async fn end_idle(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        pause: Duration,
    ) -> Result<Option<ExecutionId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement: a session that is used at this moment is seen as used.
        let execution: Option<Uuid> = diesel::delete(session::table)
            .filter(session::api_key_id.eq(key.as_uuid()))
            .filter(session::organization_id.eq(organization.as_uuid()))
            .filter(
                session::last_used_at.le(sql::<Timestamptz>(PAUSED)
                    .bind::<Double, _>(pause.as_seconds_f64())
                    .sql(")")),
            )
            .returning(session::execution_id)
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(execution.map(ExecutionId::new))
    }
}
