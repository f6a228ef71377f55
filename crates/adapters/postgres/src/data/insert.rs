//! Statements that create rows, all of a step at once.

use diesel::sql_types::{Array, Timestamptz, Uuid as SqlUuid};
use labdata_domain::{catalog::Table, scalar::Values};
use time::OffsetDateTime;
use uuid::Uuid;

use super::context::WriteContext;
use crate::database::sql::{Schemas, Statement, bind_values, ident, sql_type, statement};

/// Parts of an insert from one array per column.
struct Fragments<'f> {
    values: Vec<&'f Values>,
    names: Vec<String>,
    arrays: Vec<String>,
    aliases: Vec<String>,
}

impl<'f> Fragments<'f> {
    /// Parts for columns, given by their indices in the table with a value per row. Their parameters
    /// follow `others` other parameters.
    fn of(
        table: &Table,
        columns: impl IntoIterator<Item = (usize, &'f Values)>,
        others: usize,
    ) -> Self {
        let mut chunks = Self {
            values: Vec::new(),
            names: Vec::new(),
            arrays: Vec::new(),
            aliases: Vec::new(),
        };
        for (index, values) in columns {
            let Some(column) = table.columns.get(index) else {
                continue;
            };
            chunks.values.push(values);
            let place = chunks.values.len();
            chunks.names.push(ident(&column.sql_name()));
            let sql_type = sql_type(column.data_type);
            chunks
                .arrays
                .push(format!("${}::{sql_type}[]", others + place));
            chunks.aliases.push(format!("c{place}"));
        }
        chunks
    }

    fn bind(self, statement: Statement<'f>) -> Statement<'f> {
        self.values.into_iter().fold(statement, bind_values)
    }
}

/// The statement that inserts rows of one execution.
pub(super) fn insertion<'f>(
    context: &WriteContext<'_>,
    table: &Table,
    columns: impl IntoIterator<Item = (usize, &'f Values)>,
) -> Statement<'f> {
    let chunks = Fragments::of(table, columns, 0);
    let (now, execution) = (chunks.values.len() + 1, chunks.values.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, ${now}, ${now}, ${execution} FROM unnest({arrays}) AS u({aliases})",
        table = context.schemas.table(&table.name),
        names = chunks.names.join(", "),
        aliases = chunks.aliases.join(", "),
        arrays = chunks.arrays.join(", "),
    );
    chunks
        .bind(statement(text))
        .bind::<Timestamptz, _>(context.now)
        .bind::<SqlUuid, _>(context.execution.as_uuid())
}

/// An insert of rows of several executions, for use within a statement.
pub(super) struct Insertion<'f> {
    pub(super) text: String,
    chunks: Fragments<'f>,
    executions: &'f [Uuid],
    times: &'f [OffsetDateTime],
}

impl<'f> Insertion<'f> {
    /// An insert with an execution and its time for each row. Its parameters follow `others` other
    /// parameters.
    pub(super) fn of(
        schemas: &Schemas,
        table: &Table,
        columns: impl IntoIterator<Item = (usize, &'f Values)>,
        (executions, times): (&'f [Uuid], &'f [OffsetDateTime]),
        others: usize,
    ) -> Self {
        let chunks = Fragments::of(table, columns, others);
        let execution = others + chunks.values.len() + 1;
        let text = format!(
            "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
             SELECT {aliases}, time, time, execution \
             FROM unnest({arrays}, ${execution}::uuid[], ${time}::timestamptz[]) AS u({aliases}, execution, time)",
            table = schemas.table(&table.name),
            names = chunks.names.join(", "),
            aliases = chunks.aliases.join(", "),
            arrays = chunks.arrays.join(", "),
            time = execution + 1,
        );
        Self {
            text,
            chunks,
            executions,
            times,
        }
    }

    /// Binds its parameters after the previous ones.
    pub(super) fn bind(self, statement: Statement<'f>) -> Statement<'f> {
        self.chunks
            .bind(statement)
            .bind::<Array<SqlUuid>, _>(self.executions)
            .bind::<Array<Timestamptz>, _>(self.times)
    }
}
