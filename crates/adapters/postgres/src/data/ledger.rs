//! The record of what each execution did, one line per table and kind of change and request.

use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::{apply::Writing, failure::Failure};
use crate::database::sql::{Kept, statement};

/// Kinds of change. Created rows carry their execution themselves
/// (`created_by_execution_id`), so their line only counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerAction {
    Created,
    Updated,
    Deleted,
    SeriesWritten,
    SeriesReplaced,
    PointsDeleted,
}

impl LedgerAction {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::SeriesWritten => "series_written",
            Self::SeriesReplaced => "series_replaced",
            Self::PointsDeleted => "points_deleted",
        }
    }
}

/// A line.
#[derive(Debug)]
pub(crate) struct Entry {
    table: String,
    action: LedgerAction,
    count: u64,
    ids: Option<Vec<String>>,
}

impl Entry {
    pub(crate) fn created(table: &str, count: u64) -> Self {
        Self {
            table: table.to_owned(),
            action: LedgerAction::Created,
            count,
            ids: None,
        }
    }

    pub(crate) fn of(table: &str, action: LedgerAction, ids: Vec<String>) -> Self {
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        Self {
            table: table.to_owned(),
            action,
            count,
            ids: Some(ids),
        }
    }

    pub(crate) fn points(
        table: &str,
        action: LedgerAction,
        count: u64,
        parents: Vec<String>,
    ) -> Self {
        Self {
            table: table.to_owned(),
            action,
            count,
            ids: Some(parents),
        }
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }
}

/// The most lines of one statement: four parameters each, of PostgreSQL's 65,535.
const MAX_LINES: usize = 10_000;

/// Writes the lines of one request.
pub(super) async fn record(
    connection: &AsyncPgConnection,
    writing: &Writing<'_>,
    entries: &[Entry],
) -> Result<(), Failure> {
    let entries: Vec<&Entry> = entries.iter().filter(|entry| entry.count > 0).collect();
    for lines in entries.chunks(MAX_LINES) {
        let rows: Vec<String> = (0..lines.len())
            .map(|line| {
                let first = 4 * line + 4;
                format!(
                    "($1, $2, $3, ${first}, ${}, ${}, ${})",
                    first + 1,
                    first + 2,
                    first + 3
                )
            })
            .collect();
        let mut query = statement(format!(
            "INSERT INTO labdata.write_ledger \
             (organization_id, execution_id, created_at, table_name, action, row_count, ids) VALUES {}",
            rows.join(", ")
        ))
        .bind::<SqlUuid, _>(writing.organization.as_uuid())
        .bind::<SqlUuid, _>(writing.execution.as_uuid())
        .bind::<Timestamptz, _>(writing.now);
        for entry in lines {
            query = query
                .bind::<Text, _>(&entry.table)
                .bind::<Text, _>(entry.action.as_str())
                .bind::<BigInt, _>(i64::try_from(entry.count).unwrap_or(i64::MAX))
                .bind::<Nullable<Array<Text>>, _>(&entry.ids);
        }
        let mut connection = connection;
        if lines.len() == 1 {
            Kept(query).execute(&mut connection).await?;
        } else {
            query.execute(&mut connection).await?;
        }
    }
    Ok(())
}
