//! Statements that create rows, all of a step at once.

use diesel::sql_types::{Array, Timestamptz, Uuid as SqlUuid};
use labdata_domain::{catalog::Table, scalar::Values};
use time::OffsetDateTime;
use uuid::Uuid;

use super::context::WriteContext;
use crate::database::sql::{Schemas, Statement, bind_values, ident, sql_type, statement};

/// Parts of an insert from one array per column.
struct Pieces<'f> {
    values: Vec<&'f Values>,
    names: Vec<String>,
    arrays: Vec<String>,
    aliases: Vec<String>,
}

impl<'f> Pieces<'f> {
    /// Parts for columns, given by their indices in the table with a value per row. Their parameters
    /// follow `others` other parameters.
    fn of(
        table: &Table,
        columns: impl IntoIterator<Item = (usize, &'f Values)>,
        others: usize,
    ) -> Self {
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
            pieces
                .arrays
                .push(format!("${}::{sql_type}[]", others + place));
            pieces.aliases.push(format!("c{place}"));
        }
        pieces
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
    let pieces = Pieces::of(table, columns, 0);
    let (now, execution) = (pieces.values.len() + 1, pieces.values.len() + 2);
    let text = format!(
        "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
         SELECT {aliases}, ${now}, ${now}, ${execution} FROM unnest({arrays}) AS u({aliases})",
        table = context.schemas.table(&table.name),
        names = pieces.names.join(", "),
        aliases = pieces.aliases.join(", "),
        arrays = pieces.arrays.join(", "),
    );
    pieces
        .bind(statement(text))
        .bind::<Timestamptz, _>(context.now)
        .bind::<SqlUuid, _>(context.execution.as_uuid())
}

/// An insert of rows of several executions, for use within a statement.
pub(super) struct Insertion<'f> {
    pub(super) text: String,
    pieces: Pieces<'f>,
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
        let pieces = Pieces::of(table, columns, others);
        let execution = others + pieces.values.len() + 1;
        let text = format!(
            "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id) \
             SELECT {aliases}, time, time, execution \
             FROM unnest({arrays}, ${execution}::uuid[], ${time}::timestamptz[]) AS u({aliases}, execution, time)",
            table = schemas.table(&table.name),
            names = pieces.names.join(", "),
            aliases = pieces.aliases.join(", "),
            arrays = pieces.arrays.join(", "),
            time = execution + 1,
        );
        Self {
            text,
            pieces,
            executions,
            times,
        }
    }

    /// Binds its parameters after the previous ones.
    pub(super) fn bind(self, statement: Statement<'f>) -> Statement<'f> {
        self.pieces
            .bind(statement)
            .bind::<Array<SqlUuid>, _>(self.executions)
            .bind::<Array<Timestamptz>, _>(self.times)
    }
}
