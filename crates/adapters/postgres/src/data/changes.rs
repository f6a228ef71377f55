//! Changes of an execution, by its entries in the ledger and the rows that carry its id.

use std::collections::BTreeMap;

use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::Catalog,
    data::{
        changes::{ExecutionChanges, Reverted, RowChange, SHOWN_IDS},
        write::{LedgerAction, RowImage},
    },
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
};
use labdata_ports::data::{ChangedRows, RevertRequest};
use time::OffsetDateTime;
use uuid::Uuid;

use super::row_images::{from_json, rendered_row, row_image};
use crate::database::{
    errors::{Fault, corrupt},
    sql::{Schemas, statement},
};

/// Maximum number of retained changes that are read: a row may have changed several times.
const MAX_KEPT: i64 = 1000;

#[derive(QueryableByName)]
struct TotalRow {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = BigInt)]
    total: i64,
}

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct ImageText {
    #[diesel(sql_type = Text)]
    stored: String,
}

#[derive(QueryableByName)]
struct CreatedRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

#[derive(QueryableByName)]
struct MarkedRow {
    #[diesel(sql_type = SqlUuid)]
    execution_id: Uuid,
}

#[derive(QueryableByName)]
struct RevertedRow {
    #[diesel(sql_type = Timestamptz)]
    reverted_at: OffsetDateTime,
    #[diesel(sql_type = SqlUuid)]
    reverted_by: Uuid,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    api_key_id: Option<Uuid>,
}

/// The condition that an entry `l` of the ledger is of the table of its name: of a dropped one only while no other bears
/// it.
const OF_ITS_NAME: &str = "(l.trash_number IS NULL OR NOT EXISTS (SELECT FROM labdata.catalog_table n \
     WHERE n.organization_id = l.organization_id AND n.name = l.table_name))";

pub(super) async fn changes(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    catalog: &Catalog,
    execution: ExecutionId,
) -> Result<ExecutionChanges, Fault> {
    // Updated rows are counted once each: several requests of an execution may change the same row.
    let totals: Vec<TotalRow> = diesel::sql_query(format!(
        "SELECT l.table_name, l.action, sum(l.row_count)::bigint AS total FROM labdata.write_ledger l \
         WHERE l.execution_id = $1 AND l.organization_id = $2 AND l.action <> 'updated' AND {OF_ITS_NAME} GROUP BY 1, 2 \
         UNION ALL \
         SELECT l.table_name, l.action, count(DISTINCT c.id) FROM labdata.write_ledger l \
         CROSS JOIN LATERAL unnest(l.ids) AS c(id) \
         WHERE l.execution_id = $1 AND l.organization_id = $2 AND l.action = 'updated' AND {OF_ITS_NAME} GROUP BY 1, 2"
    ))
    .bind::<SqlUuid, _>(execution.as_uuid())
    .bind::<SqlUuid, _>(organization.as_uuid())
    .load(connection)
    .await?;
    let mut changes = ExecutionChanges::default();
    for row in totals {
        let action = LedgerAction::from_name(&row.action)
            .ok_or_else(|| corrupt("write_ledger", "action", execution))?;
        let total = u64::try_from(row.total).unwrap_or_default();
        changes.add(&row.table_name, action, total);
    }
    for (table, of_table) in &mut changes.tables {
        for (_, change) in RowChange::ALL {
            if of_table.count(change) == 0 {
                continue;
            }
            let first = ChangedRows {
                execution,
                table: table.clone(),
                change,
                after: None,
                limit: SHOWN_IDS,
            };
            let ids = changed_ids(connection, organization, catalog, &first).await?;
            of_table.ids.insert(change, ids);
        }
    }
    changes.reverted = reverted(connection, organization, execution).await?;
    Ok(changes)
}

/// Created rows carry their execution; the ids of the rest are in the ledger.
pub(super) async fn changed_ids(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    catalog: &Catalog,
    rows: &ChangedRows,
) -> Result<Vec<String>, Fault> {
    let source = if rows.change == RowChange::Created {
        // The rows of a table that was dropped since are deleted with it.
        let Some(table) = catalog.keyed_table(&rows.table) else {
            return Ok(Vec::new());
        };
        let names = Schemas::of(organization).names(&table);
        format!(
            // Both sources are bound alike, and PostgreSQL learns a parameter's type from its use.
            "SELECT t.{}::text AS id FROM {} t WHERE t.created_by_execution_id = $1 \
             AND $2::uuid IS NOT NULL AND $3::text IS NOT NULL AND $4::text IS NOT NULL",
            names.key, names.name,
        )
    } else {
        format!(
            "SELECT DISTINCT c.id FROM labdata.write_ledger l CROSS JOIN LATERAL unnest(l.ids) AS c(id) \
             WHERE l.execution_id = $1 AND l.organization_id = $2 AND l.table_name = $3 AND l.action = $4 \
             AND {OF_ITS_NAME}"
        )
    };
    let found: Vec<IdRow> = statement(format!(
        // By bytes, so that pages are the same under every locale.
        "SELECT s.id FROM ({source}) s WHERE $5::text IS NULL OR s.id COLLATE \"C\" > $5 \
         ORDER BY s.id COLLATE \"C\" LIMIT $6"
    ))
    .bind::<SqlUuid, _>(rows.execution.as_uuid())
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&rows.table)
    .bind::<Text, _>(rows.change.action().as_str())
    .bind::<Nullable<Text>, _>(rows.after.as_deref())
    .bind::<BigInt, _>(i64::from(rows.limit))
    .load(connection)
    .await?;
    Ok(found.into_iter().map(|row| row.id).collect())
}

/// The ledger stores values of rows that were updated and deleted; those of created ones are in the table.
pub(super) async fn changed_rows(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    catalog: &Catalog,
    execution: ExecutionId,
    table: &str,
) -> Result<BTreeMap<RowChange, Vec<RowImage>>, Fault> {
    let mut changed: BTreeMap<RowChange, Vec<RowImage>> = BTreeMap::new();
    for change in [RowChange::Updated, RowChange::Deleted] {
        let stored: Vec<ImageText> = diesel::sql_query(
            // Not of a table in the trash: one that bears its name by now has other rows and columns. The oldest
            // first, as `merged` takes the values before the first change.
            "SELECT k.image::text AS stored FROM labdata.write_ledger l \
             CROSS JOIN LATERAL json_array_elements(l.row_images) AS k(image) \
             WHERE l.execution_id = $1 AND l.organization_id = $2 AND l.table_name = $3 AND l.action = $4 \
             AND l.trash_number IS NULL ORDER BY l.id LIMIT $5",
        )
        .bind::<SqlUuid, _>(execution.as_uuid())
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(table)
        .bind::<Text, _>(change.action().as_str())
        .bind::<BigInt, _>(MAX_KEPT)
        .load(connection)
        .await?;
        let rows = stored.iter().map(|row| {
            from_json(&row.stored).ok_or_else(|| corrupt("write_ledger", "row_images", execution))
        });
        let mut rows = RowImage::merged(rows.collect::<Result<Vec<_>, _>>()?);
        rows.truncate(usize::try_from(SHOWN_IDS).unwrap_or(usize::MAX));
        changed.insert(change, rows);
    }
    if let Some(table) = catalog.keyed_table(table) {
        let names = Schemas::of(organization).names(&table);
        let created: Vec<CreatedRow> = statement(format!(
            "SELECT s.id, s.stored FROM (SELECT t.{key}::text AS id, {image} AS stored FROM {table} t \
             WHERE t.created_by_execution_id = $1) s ORDER BY s.id COLLATE \"C\" LIMIT $2",
            key = names.key,
            image = row_image(&table, "t", "1"),
            table = names.name,
        ))
        .bind::<SqlUuid, _>(execution.as_uuid())
        .bind::<BigInt, _>(i64::from(SHOWN_IDS))
        .load(connection)
        .await?;
        let created = created.into_iter().map(|row| RowImage {
            id: row.id,
            before: None,
            after: row.stored.and_then(|text| rendered_row(&table, &text)),
        });
        changed.insert(RowChange::Created, created.collect());
    }
    changed.retain(|_, rows| !rows.is_empty());
    Ok(changed)
}

async fn reverted(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    execution: ExecutionId,
) -> Result<Option<Reverted>, Fault> {
    let row: Option<RevertedRow> = diesel::sql_query(
        "SELECT reverted_at, reverted_by, api_key_id FROM labdata.execution_revert \
         WHERE organization_id = $1 AND execution_id = $2 AND NOT is_undone",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(execution.as_uuid())
    .get_result(connection)
    .await
    .optional()?;
    Ok(row.map(|row| Reverted {
        at: row.reverted_at,
        user: UserId::new(row.reverted_by),
        api_key: row.api_key_id.map(ApiKeyId::new),
    }))
}

/// Records who reverted an execution first, or first since an earlier revert was undone, and the execution whose revert
/// undoes this one. The caller has locked the execution.
pub(super) async fn record_revert(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    request: &RevertRequest,
    undo: Option<ExecutionId>,
) -> Result<(), diesel::result::Error> {
    diesel::sql_query(
        // After a second revert, no single execution undoes all that the two did.
        "INSERT INTO labdata.execution_revert AS r \
             (organization_id, execution_id, reverted_at, reverted_by, api_key_id, undo_execution_id) \
         VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (organization_id, execution_id) DO UPDATE SET \
             reverted_at = CASE WHEN r.is_undone THEN excluded.reverted_at ELSE r.reverted_at END, \
             reverted_by = CASE WHEN r.is_undone THEN excluded.reverted_by ELSE r.reverted_by END, \
             api_key_id = CASE WHEN r.is_undone THEN excluded.api_key_id ELSE r.api_key_id END, \
             undo_execution_id = CASE WHEN r.is_undone THEN excluded.undo_execution_id END, \
             is_undone = false \
         WHERE r.is_undone OR excluded.undo_execution_id IS NOT NULL",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(request.execution.as_uuid())
    .bind::<Timestamptz, _>(request.now)
    .bind::<SqlUuid, _>(request.user.as_uuid())
    .bind::<Nullable<SqlUuid>, _>(request.api_key.map(ApiKeyId::as_uuid))
    .bind::<Nullable<SqlUuid>, _>(undo.map(ExecutionId::as_uuid))
    .execute(connection)
    .await?;
    Ok(())
}

/// Marks the reverts that are undone with all changes of the execution, which is reverted itself, and those that hold
/// again by that, and so on.
pub(super) async fn mark_reverts(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    execution: ExecutionId,
) -> Result<(), diesel::result::Error> {
    // Each round turns the mark around: with an undone revert, the revert that it had undone holds again. The
    // rounds end, because an undo is a newer execution than the one that it reverts.
    let (mut executions, mut is_undone) = (vec![execution.as_uuid()], true);
    while !executions.is_empty() {
        let marked: Vec<MarkedRow> = diesel::sql_query(
            // What was reverted can be reverted again, also without its earlier values; what is reverted again cannot.
            "WITH marked AS (UPDATE labdata.execution_revert SET is_undone = $3 \
                 WHERE organization_id = $1 AND undo_execution_id = ANY($2) AND is_undone <> $3 \
                 RETURNING execution_id, reverted_at), \
             taken AS (UPDATE labdata.write_ledger l SET reverted_at = CASE WHEN $3 THEN NULL ELSE m.reverted_at END \
                 FROM marked m WHERE l.organization_id = $1 AND l.execution_id = m.execution_id \
                 AND l.trash_number IS NULL) \
             SELECT execution_id FROM marked",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Array<SqlUuid>, _>(executions)
        .bind::<Bool, _>(is_undone)
        .load(connection)
        .await?;
        executions = marked.into_iter().map(|row| row.execution_id).collect();
        is_undone = !is_undone;
    }
    Ok(())
}
