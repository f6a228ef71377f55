//! Logs of work.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Bytea, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::OrganizationId,
    work::{LogAppend, LogChunk, LogRead, RETAINED_LOG_BYTES, WorkId},
};
use labdata_ports::{
    PortError,
    work::{WorkClaim, logs::WorkLogStore},
};

use time::OffsetDateTime;

use crate::{
    database::{
        errors::{Fault, port_error, retried},
        listen::Channel,
        pool::Database,
    },
    schema::work_log,
};

/// Number of chunks per read.
const CHUNKS: i64 = 64;

/// Size in bytes at which a read ends with fewer chunks.
const BYTES: i64 = 256 << 10;

/// Logs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgWorkLogStore {
    database: Database,
}

impl PgWorkLogStore {
    /// The store over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn append_once(&self, claim: WorkClaim, append: LogAppend<'_>) -> Result<bool, Fault> {
        let mut connection = self.database.connection().await?;
        // One statement, so that racing appends see each other's length. Its deletion is
        // `LogChunk::is_retained`, as the contract's clause about long logs verifies.
        let grown = diesel::sql_query(
            // The attempt is the fence: a worker that lost its work appends nothing. Claims store it here,
            // because the last holder may append after the end.
            "WITH log AS ( \
                 UPDATE labdata.work_log SET length = length + $4 \
                 WHERE work_id = $1 AND organization_id = $2 AND attempt = $3 \
                 RETURNING length), \
             chunk AS ( \
                 INSERT INTO labdata.work_log_chunk (work_id, organization_id, start, bytes) \
                 SELECT $1, $2, length - octet_length($5), $5 FROM log), \
             dropped AS ( \
                 DELETE FROM labdata.work_log_chunk c USING log \
                 WHERE c.organization_id = $2 AND c.work_id = $1 \
                 AND c.start >= $6 AND c.start < log.length - $6 \
                 AND c.start + octet_length(c.bytes) <= log.length - $6) \
             SELECT pg_notify($7, $1::text) FROM log",
        )
        .bind::<SqlUuid, _>(claim.work.as_uuid())
        .bind::<SqlUuid, _>(claim.organization.as_uuid())
        .bind::<BigInt, _>(i64::from(claim.attempt))
        .bind::<BigInt, _>(i64::try_from(append.growth()).unwrap_or(i64::MAX))
        .bind::<Binary, _>(append.bytes())
        .bind::<BigInt, _>(i64::try_from(RETAINED_LOG_BYTES).unwrap_or(i64::MAX))
        .bind::<Text, _>(Channel::WorkChanged.name())
        .execute(&mut connection)
        .await?;
        Ok(grown == 1)
    }
}

#[derive(QueryableByName)]
struct ChunkRow {
    #[diesel(sql_type = BigInt)]
    start: i64,
    #[diesel(sql_type = Bytea)]
    bytes: Vec<u8>,
}

impl From<ChunkRow> for LogChunk {
    fn from(row: ChunkRow) -> Self {
        Self {
            start: u64::try_from(row.start).unwrap_or_default(),
            bytes: row.bytes,
        }
    }
}

#[async_trait]
impl WorkLogStore for PgWorkLogStore {
    async fn append(&self, claim: WorkClaim, append: LogAppend<'_>) -> Result<bool, PortError> {
        Ok(retried!(self.append_once(claim, append))?)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        work: WorkId,
        offset: u64,
    ) -> Result<LogRead, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Starts with the chunk that contains the offset, or else with the next one.
        let rows: Vec<ChunkRow> = diesel::sql_query(
            "SELECT start, bytes FROM ( \
                 SELECT start, bytes, \
                     sum(octet_length(bytes)) OVER (ORDER BY start) - octet_length(bytes) AS before \
                 FROM (SELECT start, bytes FROM labdata.work_log_chunk \
                 WHERE organization_id = $1 AND work_id = $2 AND start >= coalesce( \
                     (SELECT max(start) FROM labdata.work_log_chunk \
                      WHERE organization_id = $1 AND work_id = $2 AND start <= $3), 0) \
                 AND start + octet_length(bytes) > $3 \
                 ORDER BY start LIMIT $4) next) chunk \
             WHERE before < $5 ORDER BY start",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(work.as_uuid())
        .bind::<BigInt, _>(i64::try_from(offset).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(CHUNKS)
        .bind::<BigInt, _>(BYTES)
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(LogRead::join(offset, rows.into_iter().map(LogChunk::from)))
    }

    async fn delete_ended(
        &self,
        ended_before: OffsetDateTime,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let deleted = diesel::sql_query(
            // The record of the log stays and says when it was deleted: a reader distinguishes that from a script
            // that wrote nothing.
            "WITH due AS ( \
                 SELECT l.organization_id, l.work_id FROM labdata.work_log l \
                 LEFT JOIN labdata.job_execution e \
                     ON e.organization_id = l.organization_id AND e.id = l.work_id \
                 LEFT JOIN labdata.ml_model_version v \
                     ON v.organization_id = l.organization_id AND v.id = l.work_id \
                 WHERE l.deleted_at IS NULL AND coalesce(e.completed_at, v.completed_at) < $1 \
                 LIMIT $3 FOR UPDATE OF l SKIP LOCKED), \
             chunks AS ( \
                 DELETE FROM labdata.work_log_chunk c USING due \
                 WHERE c.organization_id = due.organization_id AND c.work_id = due.work_id) \
             UPDATE labdata.work_log l SET deleted_at = $2 FROM due \
             WHERE l.organization_id = due.organization_id AND l.work_id = due.work_id",
        )
        .bind::<Timestamptz, _>(ended_before)
        .bind::<Timestamptz, _>(now)
        .bind::<BigInt, _>(i64::from(limit))
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
    }

    async fn deleted_at(
        &self,
        organization: OrganizationId,
        work: WorkId,
    ) -> Result<Option<OffsetDateTime>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let found = work_log::table
            .find((organization.as_uuid(), work.as_uuid()))
            .select(work_log::deleted_at)
            .first::<Option<OffsetDateTime>>(&mut connection)
            .await
            .optional();
        Ok(found.map_err(port_error)?.flatten())
    }
}
