//! Queries of the sweeper of uploads.

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{errors::port_error, pool::Database};

#[derive(QueryableByName)]
struct ObjectRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    object_key: Uuid,
}

fn objects(rows: Vec<ObjectRow>) -> Vec<(OrganizationId, ObjectKey)> {
    rows.into_iter()
        .map(|row| {
            (
                OrganizationId::new(row.organization_id),
                ObjectKey::new(row.object_key),
            )
        })
        .collect()
}

/// Removes records whose upload URL expired before a time. Skips locked ones: they are being
/// confirmed.
pub(crate) async fn take_expired(
    database: &Database,
    before: OffsetDateTime,
    limit: u32,
) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
    let mut connection = database.connection().await?;
    // ARRAY makes the planner evaluate the inner query once.
    let rows = diesel::sql_query(
        "DELETE FROM labdata.file WHERE id = ANY (ARRAY( \
             SELECT id FROM labdata.file WHERE upload_expires_at < $1 \
             ORDER BY upload_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)) \
         RETURNING organization_id, object_key",
    )
    .bind::<Timestamptz, _>(before)
    .bind::<BigInt, _>(i64::from(limit))
    .load(&mut connection)
    .await
    .map_err(port_error)?;
    Ok(objects(rows))
}

/// Returns the objects to which no record refers.
pub(crate) async fn unreferenced(
    database: &Database,
    of: &[(OrganizationId, ObjectKey)],
) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
    let mut connection = database.connection().await?;
    let (organizations, keys): (Vec<Uuid>, Vec<Uuid>) = of
        .iter()
        .map(|(organization, key)| (organization.as_uuid(), key.as_uuid()))
        .unzip();
    let rows = diesel::sql_query(
        // A new kind of record with an object has to be added here, or the sweeper deletes its objects.
        "SELECT o.organization_id, o.object_key \
         FROM unnest($1, $2) AS o (organization_id, object_key) \
         WHERE NOT EXISTS (SELECT FROM labdata.file f \
             WHERE f.object_key = o.object_key AND f.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.trash t \
             WHERE t.object_key = o.object_key AND t.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.trashed_annotation a \
             WHERE a.object_key = o.object_key AND a.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.dataset d \
             WHERE d.object_key = o.object_key AND d.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.ml_model_version v \
             WHERE v.artifact_key = o.object_key AND v.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.training_attempt l \
             WHERE l.artifact_key = o.object_key AND l.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.annotation a \
             WHERE a.object_key = o.object_key AND a.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.dataset_mask m \
             WHERE m.id = o.object_key AND m.organization_id = o.organization_id) \
         AND NOT EXISTS (SELECT FROM labdata.agent_chat_file c \
             WHERE c.id = o.object_key AND c.organization_id = o.organization_id)",
    )
    .bind::<Array<SqlUuid>, _>(organizations)
    .bind::<Array<SqlUuid>, _>(keys)
    .load(&mut connection)
    .await
    .map_err(port_error)?;
    Ok(objects(rows))
}
