//! Bytes of an organization's files, datasets and figures of chats.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::OrganizationId,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::PortError;

use crate::database::{errors::Fault, pool::Connection};

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

/// Sums the sizes of the organization's files, datasets and figures of chats.
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

/// Makes other confirmations and new datasets of the organization wait for the end of the transaction, so that usage
/// stays as it is read. MUST come before any row is locked: a confirmation that waits here holds none.
pub(crate) async fn lock_usage(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    // Without it two uploads could each see room for itself, and exceed the quota together.
    diesel::sql_query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
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
