//! Creates rows, all of a step with one statement.

use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use labdata_domain::{catalog::Table, scalar::Values};

use super::apply::Writing;
use crate::sql::{Statement, bind_values, ident, sql_type, statement};

/// The statement that inserts rows given as columns: indices in the table, with a value per row.
pub(super) fn insertion<'f>(
    writing: &Writing<'_>,
    table: &Table,
    columns: impl IntoIterator<Item = (usize, &'f Values)>,
) -> Statement<'f> {
    let mut names = Vec::new();
    let mut arrays = Vec::new();
    let mut aliases = Vec::new();
    let mut bound = Vec::new();
    for (index, values) in columns {
        let Some(column) = table.columns.get(index) else {
            continue;
        };
        bound.push(values);
        names.push(ident(&column.sql_name()));
        arrays.push(format!(
            "${}::{}[]",
            bound.len(),
            sql_type(column.data_type)
        ));
        aliases.push(format!("c{}", bound.len()));
    }
    let (now, execution) = (bound.len() + 1, bound.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, ${now}, ${now}, ${execution} FROM unnest({arrays}) AS u({aliases})",
        table = writing.schemas.table(&table.name),
        names = names.join(", "),
        aliases = aliases.join(", "),
        arrays = arrays.join(", "),
    );
    bound
        .into_iter()
        .fold(statement(text), bind_values)
        .bind::<Timestamptz, _>(writing.now)
        .bind::<SqlUuid, _>(writing.execution.as_uuid())
}
