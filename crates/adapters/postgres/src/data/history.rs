//! Recording of changes, by the statements that make them, and their reading.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::Table,
    data::history::{ChangeAction, RecordedChange},
    ids::{ExecutionId, OrganizationId},
    scalar::KeyValue,
};
use labdata_ports::data::RowHistory;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{context::WriteContext, row_images::rendered};
use crate::database::{
    names::TableNames,
    sql::{Statement, bind_values, statement},
};

/// What changes are recorded under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    /// `None` for a revert without restore.
    pub(super) execution: Option<ExecutionId>,
    /// True for a revert with restore.
    pub(super) is_undo: bool,
}

/// Records the changes of a table, if earlier versions of its rows are stored.
pub(super) struct Recording<'r> {
    organization: OrganizationId,
    author: Author,
    table: &'r Table,
    owner: Option<String>,
}

impl WriteContext<'_> {
    /// Records changes of that table.
    pub(super) const fn recording<'r>(&self, table: &'r Table) -> Recording<'r> {
        Recording {
            organization: self.organization,
            author: self.author,
            table,
            owner: None,
        }
    }
}

impl Recording<'_> {
    /// The same for series of a parent, by SQL name of the reference.
    pub(super) fn of_owner(self, column: &str) -> Self {
        Self {
            owner: Some(column.to_owned()),
            ..self
        }
    }

    /// An expression of a row as it is stored, for the column `before` of a source; null where nothing is
    /// recorded.
    pub(super) fn row(&self, alias: &str) -> String {
        if self.table.history {
            format!("row_to_json({alias})")
        } else {
            "NULL::json".to_owned()
        }
    }

    /// A part of WITH that records each row of `source`, which has columns `key`, `at` and `before`. Its
    /// parameters follow `before` others.
    pub(super) fn part(&self, action: ChangeAction, source: &str, before: usize) -> String {
        if !self.table.history {
            return String::new();
        }
        let [organization, table, execution, is_undo, owner]: [String; 5] =
            std::array::from_fn(|index| format!("${}", before + index + 1));
        format!(
            ", recorded AS (INSERT INTO labdata.row_change \
             (organization_id, table_name, row_id, action, execution_id, at, before, is_undo, owner_column) \
             SELECT {organization}, {table}, key, '{action}', {execution}, at, before, {is_undo}, {owner} FROM {source})",
            action = action.as_str(),
        )
    }

    /// Binds the parameters after those before them.
    pub(super) fn bind<'f>(&'f self, statement: Statement<'f>) -> Statement<'f> {
        if !self.table.history {
            return statement;
        }
        statement
            .bind::<SqlUuid, _>(self.organization.as_uuid())
            .bind::<Text, _>(&self.table.name)
            .bind::<Nullable<SqlUuid>, _>(self.author.execution.map(ExecutionId::as_uuid))
            .bind::<Bool, _>(self.author.is_undo)
            .bind::<Nullable<Text>, _>(self.owner.as_deref())
    }
}

#[derive(QueryableByName)]
struct ChangeRow {
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = Timestamptz)]
    at: OffsetDateTime,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    execution_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    before: Option<String>,
}

/// The recorded changes of a row, and its values now.
pub(super) async fn history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    names: &TableNames<'_>,
    key: &KeyValue,
) -> Result<RowHistory, diesel::result::Error> {
    let keys = names.key_values([key]);
    // One statement reads both, so that no change comes between them.
    let query = statement(format!(
        "SELECT c.action, c.at, c.execution_id, c.before::text AS before FROM ( \
         SELECT id, action, at, execution_id, before FROM labdata.row_change \
         WHERE organization_id = $1 AND table_name = $2 AND row_id = $3 \
         UNION ALL SELECT 9223372036854775807, '', t.updated_at, NULL, row_to_json(t) FROM {name} t \
         WHERE t.{key} = ANY($4::{key_type}[])) c ORDER BY c.id",
        name = names.name,
        key = names.key,
        key_type = names.key_type,
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&names.table.name)
    .bind::<Text, _>(key.to_string());
    let rows: Vec<ChangeRow> = bind_values(query, &keys).load(connection).await?;
    let mut history = RowHistory::default();
    for row in rows {
        let before = row.before.and_then(|text| rendered(names.table, &text));
        match ChangeAction::from_name(&row.action) {
            Some(action) => history.changes.push(RecordedChange {
                action,
                at: row.at,
                execution: row.execution_id.map(ExecutionId::new),
                before,
            }),
            None => history.current = before,
        }
    }
    Ok(history)
}

/// Deletes the recorded changes of a row.
pub(super) async fn forget(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    key: &KeyValue,
) -> Result<(), diesel::result::Error> {
    diesel::sql_query(
        "DELETE FROM labdata.row_change WHERE organization_id = $1 AND table_name = $2 AND row_id = $3",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Text, _>(key.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes recorded changes that are older; returns their number.
pub(super) async fn sweep(
    connection: &mut AsyncPgConnection,
    before: OffsetDateTime,
    limit: u32,
) -> Result<u64, diesel::result::Error> {
    let deleted = diesel::sql_query(
        "DELETE FROM labdata.row_change it USING ( \
             SELECT organization_id, table_name, row_id, id FROM labdata.row_change \
             WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) old \
         WHERE it.organization_id = old.organization_id AND it.table_name = old.table_name \
         AND it.row_id = old.row_id AND it.id = old.id",
    )
    .bind::<Timestamptz, _>(before)
    .bind::<BigInt, _>(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
}
