//! Marks of changes that are undone.

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{data::restore::RestorePlan, ids::ExecutionId};
use uuid::Uuid;

use crate::{
    data::{context::WriteContext, failure::Failure},
    database::sql::statement,
};

#[derive(QueryableByName)]
struct ExecutionRow {
    #[diesel(sql_type = SqlUuid)]
    execution_id: Uuid,
}

/// Marks the execution's changes as undone. Those that they had undone are valid again, and so on.
pub(super) async fn mark_undone(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    plan: &RestorePlan,
) -> Result<(), Failure> {
    const NOT_LEFT: &str = "NOT EXISTS (SELECT FROM unnest($3::text[], $4::text[]) AS l(name, id) \
         WHERE l.name = table_name AND l.id = row_id)";
    let (tables, ids): (Vec<&str>, Vec<&str>) = plan.left().unzip();
    statement(format!(
        "UPDATE labdata.row_change SET undone_by = $5, is_undone = true \
         WHERE execution_id = $1 AND organization_id = $2 AND NOT is_undone AND {NOT_LEFT}"
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Array<Text>, _>(&tables)
    .bind::<Array<Text>, _>(&ids)
    .bind::<Nullable<SqlUuid>, _>(context.author.execution.map(ExecutionId::as_uuid))
    .execute(connection)
    .await?;
    // Each round turns the mark around, as `mark_reverts` does. Rows that the plan leaves stay out of every round:
    // nothing about them was undone.
    let (mut executions, mut is_undone) = (vec![context.execution.as_uuid()], false);
    while !executions.is_empty() {
        let marked: Vec<ExecutionRow> = statement(format!(
            "WITH marked AS (UPDATE labdata.row_change SET is_undone = $5 \
             WHERE undone_by = ANY($1) AND organization_id = $2 AND is_undone <> $5 AND {NOT_LEFT} \
             RETURNING execution_id) SELECT DISTINCT execution_id FROM marked"
        ))
        .bind::<Array<SqlUuid>, _>(executions)
        .bind::<SqlUuid, _>(context.organization.as_uuid())
        .bind::<Array<Text>, _>(&tables)
        .bind::<Array<Text>, _>(&ids)
        .bind::<Bool, _>(is_undone)
        .load(connection)
        .await?;
        executions = marked.into_iter().map(|row| row.execution_id).collect();
        is_undone = !is_undone;
    }
    Ok(())
}
