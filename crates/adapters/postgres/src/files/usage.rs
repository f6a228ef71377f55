//! Bytes that an organization stores.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::OrganizationId,
    storage::{BytesByKind, InsufficientStorage, StorageQuota, StoredKind},
};
use labdata_ports::PortError;

use crate::database::{
    errors::{Fault, port_error},
    pool::Connection,
};

/// Files that count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    /// Confirmed ones.
    Confirmed,
    /// Also those whose bytes the platform received and that are not confirmed.
    Received,
}

#[derive(QueryableByName)]
struct UsageRow {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

/// Sums the sizes of the organization's files, datasets, models, masks and figures of chats, and of its trash.
pub(crate) async fn used_bytes(
    connection: &mut Connection,
    organization: OrganizationId,
    counted: Counted,
) -> Result<u64, Fault> {
    let confirmed = match counted {
        Counted::Confirmed => " AND uploaded_at IS NOT NULL",
        Counted::Received => "",
    };
    // Summed, because a counter would be a row that all uploads of the organization lock.
    let query = format!(
        "SELECT (coalesce((SELECT sum(size_bytes) FROM labdata.file \
             WHERE organization_id = $1 AND size_bytes IS NOT NULL{confirmed}), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.dataset \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(artifact_size) FROM labdata.ml_model_version \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.trash \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.trashed_annotation \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.dataset_mask \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.annotation \
             WHERE organization_id = $1), 0) \
         + coalesce((SELECT sum(size_bytes) FROM labdata.agent_chat_file \
             WHERE organization_id = $1), 0))::bigint AS bytes"
    );
    let row: UsageRow = diesel::sql_query(query)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .get_result(connection)
        .await?;
    u64::try_from(row.bytes)
        .map_err(|_| PortError::Internal("files of less than no bytes".to_owned()).into())
}

#[derive(QueryableByName)]
struct KindRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

/// Sums the sizes of everything that the organization stores, by kind. Lengths of values that are stored
/// out of line are read without the values.
pub(crate) async fn bytes_by_kind(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<BytesByKind, PortError> {
    let rows: Vec<KindRow> = diesel::sql_query(
        "SELECT kind, coalesce(sum(size), 0)::bigint AS bytes FROM ( \
             SELECT 'files' AS kind, size_bytes AS size FROM labdata.file \
                 WHERE organization_id = $1 AND size_bytes IS NOT NULL \
             UNION ALL SELECT 'files', size_bytes FROM labdata.agent_chat_file WHERE organization_id = $1 \
             UNION ALL SELECT 'trash', size_bytes FROM labdata.trash WHERE organization_id = $1 \
             UNION ALL SELECT 'trash', size_bytes FROM labdata.trashed_annotation WHERE organization_id = $1 \
             UNION ALL SELECT 'datasets', size_bytes FROM labdata.dataset WHERE organization_id = $1 \
             UNION ALL SELECT 'datasets', size_bytes FROM labdata.dataset_mask WHERE organization_id = $1 \
             UNION ALL SELECT 'annotations', size_bytes FROM labdata.annotation WHERE organization_id = $1 \
             UNION ALL SELECT 'models', artifact_size FROM labdata.ml_model_version \
                 WHERE organization_id = $1 \
             UNION ALL SELECT 'logs', octet_length(bytes) FROM labdata.work_log_chunk \
                 WHERE organization_id = $1 \
             UNION ALL SELECT 'responses', octet_length(response) FROM labdata.idempotency_key \
                 WHERE organization_id = $1 \
             UNION ALL SELECT 'history', pg_column_size(row_images) FROM labdata.write_ledger \
                 WHERE organization_id = $1 AND row_images IS NOT NULL \
             UNION ALL SELECT 'history', pg_column_size(before) + coalesce(pg_column_size(arrays), 0) FROM labdata.row_change \
                 WHERE organization_id = $1 AND before IS NOT NULL) stored GROUP BY kind",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .load(connection)
    .await
    .map_err(port_error)?;
    let bytes = |kind: StoredKind| {
        let row = rows.iter().find(|row| row.kind == kind.as_str());
        let bytes = row.map_or(0, |row| row.bytes);
        (kind, u64::try_from(bytes).unwrap_or_default())
    };
    Ok(BytesByKind::of(StoredKind::ALL.map(bytes)))
}

/// Makes other confirmations and new datasets of the organization wait for the end of the transaction, so that usage
/// stays as it is read. MUST come before any row is locked: a confirmation that waits here holds none.
pub(crate) async fn lock_usage(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    // Without it two uploads could each see room for itself, and exceed the quota together.
    diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
        .bind::<Text, _>(format!("labdata.file usage {organization}"))
        .execute(connection)
        .await?;
    Ok(())
}

/// Checks that a file of that size may be confirmed, or a dataset added. The caller has locked the usage.
pub(crate) async fn check_quota(
    connection: &mut Connection,
    organization: OrganizationId,
    quota: StorageQuota,
    size: u64,
) -> Result<Result<(), InsufficientStorage>, Fault> {
    // The sum reads an entry per file, so it is spared where nothing depends on it.
    if !quota.is_limited() {
        return Ok(Ok(()));
    }
    let used = used_bytes(connection, organization, Counted::Confirmed).await?;
    Ok(quota.check(used, size))
}
