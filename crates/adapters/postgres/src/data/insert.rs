//! Creates rows, all of a step with one statement.

use diesel::sql_types::{Array, Timestamptz, Uuid as SqlUuid};
use labdata_domain::{catalog::Table, scalar::Values};
use time::OffsetDateTime;
use uuid::Uuid;

use super::apply::Writing;
use crate::sql::{Schemas, Statement, bind_values, ident, sql_type, statement};

/// The pieces of an insert from one array per column.
struct Pieces<'f> {
    values: Vec<&'f Values>,
    names: Vec<String>,
    arrays: Vec<String>,
    aliases: Vec<String>,
}

impl<'f> Pieces<'f> {
    /// Of columns given by their indices in the table, with a value per row.
    fn of(table: &Table, columns: impl IntoIterator<Item = (usize, &'f Values)>) -> Self {
        let mut pieces = Self {
            values: Vec::new(),
            names: Vec::new(),
            arrays: Vec::new(),
            aliases: Vec::new(),
        };
        for (index, values) in columns {
            let Some(column) = table.columns.get(index) else {
                continue;
            };
            pieces.values.push(values);
            let place = pieces.values.len();
            pieces.names.push(ident(&column.sql_name()));
            let sql_type = sql_type(column.data_type);
            pieces.arrays.push(format!("${place}::{sql_type}[]"));
            pieces.aliases.push(format!("c{place}"));
        }
        pieces
    }

    fn bind(self, text: String) -> Statement<'f> {
        self.values.into_iter().fold(statement(text), bind_values)
    }
}

/// The statement that inserts rows of one execution.
pub(super) fn insertion<'f>(
    writing: &Writing<'_>,
    table: &Table,
    columns: impl IntoIterator<Item = (usize, &'f Values)>,
) -> Statement<'f> {
    let pieces = Pieces::of(table, columns);
    let (now, execution) = (pieces.values.len() + 1, pieces.values.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, ${now}, ${now}, ${execution} FROM unnest({arrays}) AS u({aliases})",
        table = writing.schemas.table(&table.name),
        names = pieces.names.join(", "),
        aliases = pieces.aliases.join(", "),
        arrays = pieces.arrays.join(", "),
    );
    pieces
        .bind(text)
        .bind::<Timestamptz, _>(writing.now)
        .bind::<SqlUuid, _>(writing.execution.as_uuid())
}

/// The statement that inserts rows of several executions: an execution and its time for each row.
pub(super) fn combined_insertion<'f>(
    schemas: &Schemas,
    table: &Table,
    columns: impl IntoIterator<Item = (usize, &'f Values)>,
    executions: &'f [Uuid],
    times: &'f [OffsetDateTime],
) -> Statement<'f> {
    let pieces = Pieces::of(table, columns);
    let (execution, time) = (pieces.values.len() + 1, pieces.values.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, time, time, execution \
         FROM unnest({arrays}, ${execution}::uuid[], ${time}::timestamptz[]) AS u({aliases}, execution, time)",
        table = schemas.table(&table.name),
        names = pieces.names.join(", "),
        aliases = pieces.aliases.join(", "),
        arrays = pieces.arrays.join(", "),
    );
    pieces
        .bind(text)
        .bind::<Array<SqlUuid>, _>(executions)
        .bind::<Array<Timestamptz>, _>(times)
}
