//! Logs of runs: chunks in the order in which they were written, those between the first and the
//! last dropped.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Bytea, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::ids::{ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    runs::{
        RunClaim,
        logs::{MAX_APPEND, RunLogStore, StoredLog},
        runner::LOG_KEPT,
    },
};

use crate::database::{
    errors::{Fault, port_error, retried},
    pool::Database,
};

/// Number of chunks per read.
const CHUNKS: i64 = 64;

/// Logs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgRunLogStore {
    database: Database,
}

impl PgRunLogStore {
    /// The store over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn append_once(
        &self,
        claim: RunClaim,
        skipped: i64,
        bytes: &[u8],
    ) -> Result<bool, Fault> {
        let mut connection = self.database.connection().await?;
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let grown = diesel::sql_query(
            "WITH log AS ( \
                 INSERT INTO labdata.run_log AS l (execution_id, organization_id, length) \
                 SELECT id, organization_id, $4 + $5 FROM labdata.job_execution \
                 WHERE id = $1 AND organization_id = $2 AND attempt = $3 \
                 ON CONFLICT (execution_id) DO UPDATE SET length = l.length + excluded.length \
                 RETURNING length), \
             chunk AS ( \
                 INSERT INTO labdata.run_log_chunk (execution_id, organization_id, start, bytes) \
                 SELECT $1, $2, length - $5, $6 FROM log WHERE $5 > 0), \
             dropped AS ( \
                 DELETE FROM labdata.run_log_chunk c USING log \
                 WHERE c.organization_id = $2 AND c.execution_id = $1 \
                 AND c.start >= $7 AND c.start < log.length - $7 \
                 AND c.start + octet_length(c.bytes) <= log.length - $7) \
             SELECT length FROM log",
        )
        .bind::<SqlUuid, _>(claim.execution.as_uuid())
        .bind::<SqlUuid, _>(claim.organization.as_uuid())
        .bind::<BigInt, _>(i64::from(claim.attempt))
        .bind::<BigInt, _>(skipped)
        .bind::<BigInt, _>(length)
        .bind::<Binary, _>(bytes)
        .bind::<BigInt, _>(i64::try_from(LOG_KEPT).unwrap_or(i64::MAX))
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

#[async_trait]
impl RunLogStore for PgRunLogStore {
    async fn append(&self, claim: RunClaim, skipped: u64, bytes: &[u8]) -> Result<bool, PortError> {
        if bytes.len() > MAX_APPEND {
            let text = format!("{} bytes of a log at once", bytes.len());
            return Err(PortError::Internal(text));
        }
        let skipped = i64::try_from(skipped).unwrap_or(i64::MAX);
        Ok(retried!(self.append_once(claim, skipped, bytes))?)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        offset: u64,
    ) -> Result<StoredLog, PortError> {
        let mut connection = self.database.connection().await?;
        // From the chunk on that the offset lies in, or the first one behind it.
        let rows: Vec<ChunkRow> = diesel::sql_query(
            "SELECT start, bytes FROM labdata.run_log_chunk \
             WHERE organization_id = $1 AND execution_id = $2 AND start >= coalesce( \
                 (SELECT max(start) FROM labdata.run_log_chunk \
                  WHERE organization_id = $1 AND execution_id = $2 AND start <= $3), 0) \
             AND start + octet_length(bytes) > $3 \
             ORDER BY start LIMIT $4",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(execution.as_uuid())
        .bind::<BigInt, _>(i64::try_from(offset).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(CHUNKS)
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(joined(offset, rows))
    }
}

/// The chunks up to the first gap, without what lies before the offset.
fn joined(offset: u64, rows: Vec<ChunkRow>) -> StoredLog {
    let mut piece = StoredLog {
        offset,
        bytes: Bytes::new(),
    };
    let mut bytes = BytesMut::new();
    let mut next = None;
    for row in rows {
        let start = u64::try_from(row.start).unwrap_or_default();
        let end = start + u64::try_from(row.bytes.len()).unwrap_or_default();
        match next {
            None => {
                let before = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
                piece.offset = offset.max(start);
                bytes.extend_from_slice(row.bytes.get(before..).unwrap_or_default());
            }
            Some(next) if next == start => bytes.extend_from_slice(&row.bytes),
            Some(_) => break,
        }
        next = Some(end);
    }
    piece.bytes = bytes.freeze();
    piece
}
