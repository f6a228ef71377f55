//! Files in the trash: their rows.

use diesel::{
    QueryableByName,
    sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    events::LoggedEventKind,
    files::File,
    ids::{FileId, OrganizationId},
    trash::{Deletion, RestoreRefusal, TrashKind},
};
use labdata_ports::{PortError, trash::RestoreError};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use super::HeldRow;
use crate::{
    database::{
        errors::{Fault, port_error},
        pool::Connection,
    },
    events::record::record,
    files::locked,
};

pub(super) async fn delete(
    connection: &mut Connection,
    organization: OrganizationId,
    id: FileId,
    deletion: &Deletion,
) -> Result<File, Fault> {
    // A concurrent confirmation waits, and finds no file.
    let file = locked(connection, organization, id).await?;
    if file.place().is_some() {
        diesel::sql_query(
            "INSERT INTO labdata.trash (id, organization_id, kind, name, deleted_at, deleted_by, api_key_id, \
                 purge_at, size_bytes, object_key, crc32c, content) \
             SELECT $3, organization_id, 'file', original_path, $4, $5, $6, $7, size_bytes, object_key, crc32c, \
                 jsonb_build_object('file', to_jsonb(f)) \
             FROM labdata.file f WHERE organization_id = $1 AND id = $2",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(id.as_uuid())
        .bind::<SqlUuid, _>(deletion.id.as_uuid())
        .bind::<Timestamptz, _>(deletion.at)
        .bind::<SqlUuid, _>(deletion.user.as_uuid())
        .bind::<Nullable<SqlUuid>, _>(Some(deletion.api_key.as_uuid()))
        .bind::<Timestamptz, _>(deletion.purge_at)
        .execute(connection)
        .await?;
        hold_annotations(connection, organization, id, deletion).await?;
    }
    crate::files::delete(connection, organization, id, deletion.at).await
}

/// Copies the annotations of a file, which go with its row.
async fn hold_annotations(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: FileId,
    deletion: &Deletion,
) -> Result<(), Fault> {
    diesel::sql_query(
        // Locked: an annotation that a revert is deleting is waited for, and left out.
        "INSERT INTO labdata.trashed_annotation \
             (organization_id, trash_id, object_key, job_execution_id, size_bytes, content) \
         SELECT organization_id, $3, object_key, job_execution_id, size_bytes, to_jsonb(a) FROM ( \
             SELECT * FROM labdata.annotation WHERE organization_id = $1 AND file_id = $2 FOR UPDATE) a",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(id.as_uuid())
    .bind::<SqlUuid, _>(deletion.id.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

async fn restore_annotations(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
) -> Result<(), PortError> {
    for statement in [
        // A revert locks its execution before it deletes annotations: one that has begun is waited for.
        "SELECT FROM labdata.job_execution e WHERE e.organization_id = $1 AND e.id IN ( \
             SELECT job_execution_id FROM labdata.trashed_annotation WHERE organization_id = $1 AND trash_id = $2) \
         ORDER BY e.id FOR KEY SHARE",
        "INSERT INTO labdata.annotation \
         SELECT it.* FROM labdata.trashed_annotation a, jsonb_populate_record(NULL::labdata.annotation, a.content) it \
         WHERE a.organization_id = $1 AND a.trash_id = $2",
    ] {
        diesel::sql_query(statement)
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<SqlUuid, _>(held.id)
            .execute(connection)
            .await
            .map_err(port_error)?;
    }
    Ok(())
}

#[derive(QueryableByName)]
struct IsThere {
    #[diesel(sql_type = Bool)]
    found: bool,
}

pub(super) async fn restore(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    now: OffsetDateTime,
) -> Result<(), RestoreError> {
    let instrument: IsThere = diesel::sql_query(
        // Locked, so that the instrument is not deleted before the file refers to it.
        "WITH it AS (SELECT FROM labdata.instrument i JOIN labdata.trash t ON t.id = $2 \
             WHERE i.organization_id = $1 AND i.id = (t.content -> 'file' ->> 'instrument_id')::uuid \
             FOR KEY SHARE OF i) \
         SELECT EXISTS (SELECT FROM it) OR content -> 'file' ->> 'instrument_id' IS NULL AS found \
         FROM labdata.trash WHERE id = $2",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(held.id)
    .get_result(connection)
    .await
    .map_err(port_error)?;
    if !instrument.found {
        return Err(RestoreRefusal::InstrumentGone.into());
    }
    let stored = diesel::sql_query(
        "INSERT INTO labdata.file SELECT (jsonb_populate_record(NULL::labdata.file, content -> 'file')).* \
         FROM labdata.trash WHERE id = $1 \
         ON CONFLICT (instrument_id, path_hash) WHERE instrument_id IS NOT NULL DO NOTHING",
    )
    .bind::<SqlUuid, _>(held.id)
    .execute(connection)
    .await
    .map_err(port_error)?;
    if stored == 0 {
        let refusal = RestoreRefusal::NameTaken {
            kind: TrashKind::File,
            name: held.name.clone(),
        };
        return Err(refusal.into());
    }
    restore_annotations(connection, organization, held).await?;
    let id = held.content.pointer("/file/id").and_then(Value::as_str);
    let id = id.and_then(|id| id.parse::<Uuid>().ok());
    let id =
        id.ok_or_else(|| PortError::Corrupt(format!("labdata.trash.content of {}", held.id)))?;
    // For followers only: triggers ran for the file when it was confirmed.
    let confirmed = LoggedEventKind::FileConfirmed(FileId::new(id));
    record(connection, organization, now, &[confirmed])
        .await
        .map_err(port_error)?;
    Ok(())
}
