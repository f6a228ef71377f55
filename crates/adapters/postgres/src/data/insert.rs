//! Statements that create rows, many of a step at once.

use std::{borrow::Cow, ops::Range};

use diesel::{
    QueryResult,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, ColumnRef},
    scalar::Values,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::context::WriteContext;
use crate::database::{
    names::{ArrayParameter, Unnested, column_name},
    sql::{CachedStatement, Statement, statement},
};

/// An insert from one array per column.
pub(super) struct Insertion<'v> {
    names: Vec<String>,
    /// Selected expression for each name.
    selected: Vec<String>,
    rows: Unnested<'v>,
}

impl<'v> Insertion<'v> {
    /// An insert whose parameters follow `before` other parameters.
    pub(super) const fn after(before: usize) -> Self {
        Self {
            names: Vec::new(),
            selected: Vec::new(),
            rows: Unnested::after(before),
        }
    }

    /// An insert of rows with these keys and, in the other columns, a value per row.
    pub(super) fn of<'c>(
        key: &ColumnRef,
        keys: &'v Values,
        others: impl Iterator<Item = (&'c ColumnRef, &'v Values)>,
    ) -> Self {
        let mut insertion = Self::after(0);
        insertion.add(key, Cow::Borrowed(keys));
        for (column, values) in others {
            insertion.add(column, Cow::Borrowed(values));
        }
        insertion
    }

    pub(super) fn add(&mut self, column: &Column, values: Cow<'v, Values>) {
        self.names.push(column_name(column));
        self.selected.push(self.rows.add_values(column, values));
    }

    /// Inserts the rows under the execution of the write, in as many statements as their size needs. A
    /// statement of few different texts stays prepared.
    pub(super) async fn run(
        &self,
        mut connection: &AsyncPgConnection,
        context: &WriteContext<'_>,
        table: &str,
        stays_prepared: bool,
    ) -> QueryResult<()> {
        for rows in self.rows.row_ranges() {
            let query = self.statement(context, table, rows);
            if stays_prepared {
                CachedStatement(query).execute(&mut connection).await?;
            } else {
                query.execute(&mut connection).await?;
            }
        }
        Ok(())
    }

    fn statement<'f>(
        &'f self,
        context: &WriteContext<'_>,
        table: &str,
        rows: Range<usize>,
    ) -> Statement<'f> {
        let now = self.rows.next_parameter();
        let text = self.text(table, &format!("${now}"), &format!("${}", now + 1));
        self.rows
            .bind_rows(statement(text), rows)
            .bind::<Timestamptz, _>(context.now)
            .bind::<SqlUuid, _>(context.execution.as_uuid())
    }

    /// The text of an insert with an execution and its time for each row.
    pub(super) fn text_per_row(
        &mut self,
        table: &str,
        executions: &'v [Uuid],
        times: &'v [OffsetDateTime],
    ) -> String {
        let execution = self.rows.add("uuid", ArrayParameter::Ids(executions));
        let time = self.rows.add("timestamptz", ArrayParameter::Times(times));
        self.text(table, &format!("u.{time}"), &format!("u.{execution}"))
    }

    /// Binds its parameters after the previous ones.
    pub(super) fn bind<'f>(&'f self, statement: Statement<'f>) -> Statement<'f> {
        self.rows.bind(statement)
    }

    fn text(&self, table: &str, time: &str, execution: &str) -> String {
        format!(
            // Arrays, so that neither the text nor the number of parameters depends on the number of rows.
            "INSERT INTO {table} ({names}, created_at, updated_at, created_by_execution_id, updated_by_execution_id) \
             SELECT {selected}, {time}, {time}, {execution}, {execution} FROM {rows} AS u({columns})",
            names = self.names.join(", "),
            selected = self.selected.join(", "),
            rows = self.rows.call(),
            columns = self.rows.columns(),
        )
    }
}
