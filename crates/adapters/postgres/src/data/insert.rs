//! Creates rows, all of a step with one statement.

use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{catalog::Table, scalar::Values};

use super::{apply::Writing, failure::Failure};
use crate::sql::{bind_values, ident, sql_type, statement};

/// Inserts rows given as columns: indices in the table, with a value per row.
pub(super) async fn insert_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    table: &Table,
    columns: &[(usize, &Values)],
) -> Result<(), Failure> {
    let mut names = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    let mut aliases = Vec::with_capacity(columns.len());
    for (position, (index, _)) in columns.iter().enumerate() {
        let Some(column) = table.columns.get(*index) else {
            continue;
        };
        names.push(ident(&column.sql_name()));
        arrays.push(format!(
            "${}::{}[]",
            position + 1,
            sql_type(column.data_type)
        ));
        aliases.push(format!("c{position}"));
    }
    let (now, execution) = (columns.len() + 1, columns.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, ${now}, ${now}, ${execution} FROM unnest({arrays}) AS u({aliases})",
        table = writing.schemas.table(&table.name),
        names = names.join(", "),
        aliases = aliases.join(", "),
        arrays = arrays.join(", "),
    );
    let mut query = statement(text);
    for (_, values) in columns {
        query = bind_values(query, values);
    }
    query
        .bind::<Timestamptz, _>(writing.now)
        .bind::<SqlUuid, _>(writing.execution.as_uuid())
        .execute(connection)
        .await?;
    Ok(())
}
