//! Recording of changes, by the statements that make them, and their reading.

use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Column, Table},
    data::history::{ChangeAction, RecordedChange},
    ids::{ExecutionId, OrganizationId},
    refusal::Resource,
    scalar::KeyValue,
};
use labdata_ports::{PortError, data::RowHistory};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{chunk_images, context::WriteContext, row_images::rendered};
use crate::{
    catalog::row_images::forget_images,
    database::{
        errors::{Fault, table_error},
        names::TableNames,
        sql::{Statement, bind_values, literal, statement},
    },
};

/// Author that changes are recorded with, and the kind of operation that made them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    /// `None` for a revert without restore.
    pub(super) execution: Option<ExecutionId>,
    /// True for a revert with restore.
    pub(super) is_undo: bool,
    /// True for a write that gives rows values of an earlier version back.
    pub(super) restores: bool,
}

impl Author {
    /// The kind of change that an update is recorded as.
    pub(super) const fn update(self) -> ChangeAction {
        if self.restores {
            ChangeAction::Restored
        } else {
            ChangeAction::Updated
        }
    }
}

/// The columns of [`Recording::row`] where there was no row.
pub(super) const NO_ROW: &str = "NULL::json AS before, NULL::labdata.named_array[] AS _arrays, \
     NULL::timestamptz AS existed_since";

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

    /// The columns `before` and `existed_since` of a source, and `_arrays` of chunks: a row as it is stored; null where
    /// nothing is recorded.
    pub(super) fn row(&self, alias: &str) -> String {
        if !self.table.history {
            return NO_ROW.to_owned();
        }
        if self.table.is_raw() {
            let image = chunk_images::image(self.table, alias);
            return format!("{image}, {alias}._written_at AS existed_since");
        }
        format!("row_to_json({alias}.*) AS before, {alias}.created_at AS existed_since")
    }

    /// A part of WITH that records each row of `source`, which has columns `key`, `at` and those of
    /// [`Self::row`]. Its parameters follow `before` others.
    pub(super) fn part(&self, action: ChangeAction, source: &str, before: usize) -> String {
        if !self.table.history {
            return String::new();
        }
        let [organization, table, execution, is_undo, owner]: [String; 5] =
            std::array::from_fn(|index| format!("${}", before + index + 1));
        let (arrays, values) = if self.table.is_raw() {
            (", arrays", ", _arrays")
        } else {
            ("", "")
        };
        format!(
            ", recorded AS (INSERT INTO labdata.row_change \
             (organization_id, table_name, row_id, action, execution_id, at, before, existed_since, is_undo, owner_column{arrays}) \
             SELECT {organization}, {table}, key, '{action}', {execution}, at, before, existed_since, {is_undo}, {owner}{values} \
             FROM {source})",
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
    /// Number of versions that the row has lost.
    #[diesel(sql_type = BigInt)]
    deleted: i64,
}

#[derive(QueryableByName)]
struct DeletedRow {
    #[diesel(sql_type = BigInt)]
    deleted: i64,
}

#[derive(QueryableByName)]
struct SinceRow {
    #[diesel(sql_type = Timestamptz)]
    since: OffsetDateTime,
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
        "SELECT c.action, c.at, c.execution_id, c.before::text AS before, \
         coalesce((SELECT d.versions FROM labdata.deleted_version d \
             WHERE d.organization_id = $1 AND d.table_name = $2 AND d.row_id = $3), 0) AS deleted FROM ( \
         SELECT id, action, at, execution_id, before FROM labdata.row_change \
         WHERE organization_id = $1 AND table_name = $2 AND row_id = $3 \
         UNION ALL SELECT 9223372036854775807, '', t.updated_at, NULL, row_to_json(t.*) FROM {name} t \
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
        history.deleted = u64::try_from(row.deleted).unwrap_or_default();
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

/// Counts the versions that rows lose with `deleted`, their oldest changes, and moves the beginning of their tables'
/// histories to `since`, an expression over them. Chunks of series have no versions.
fn deletion(deleted: &str, since: &str) -> String {
    format!(
        "WITH {deleted}, \
         numbered AS (SELECT d.*, lag(action) OVER (PARTITION BY organization_id, table_name, row_id ORDER BY at, id) AS previous \
             FROM deleted d), \
         counted AS (SELECT organization_id, table_name, row_id, \
             count(*) + count(*) FILTER (WHERE existed AND (previous IS NULL OR previous = 'deleted')) \
             - CASE (array_agg(action ORDER BY at DESC, id DESC))[1] WHEN 'deleted' THEN 0 ELSE 1 END AS versions \
             FROM numbered WHERE NOT is_chunk GROUP BY organization_id, table_name, row_id), \
         remembered AS (INSERT INTO labdata.deleted_version AS v (organization_id, table_name, row_id, versions) \
             SELECT organization_id, table_name, row_id, versions FROM counted WHERE versions > 0 \
             ON CONFLICT ON CONSTRAINT deleted_version_pkey DO UPDATE SET versions = v.versions + excluded.versions), \
         begun AS (SELECT organization_id, table_name, {since} AS since FROM deleted GROUP BY organization_id, table_name), \
         tables AS (UPDATE labdata.catalog_table t SET history_since = b.since FROM begun b \
             WHERE t.organization_id = b.organization_id AND t.name = b.table_name AND t.history_since < b.since), \
         organizations AS (UPDATE labdata.organization o SET history_since = b.since \
             FROM (SELECT organization_id, max(since) AS since FROM begun WHERE table_name = ANY($3) GROUP BY organization_id) b \
             WHERE o.id = b.organization_id AND o.history_since < b.since) \
         SELECT count(*) AS deleted FROM deleted"
    )
}

/// The columns of deleted changes that [`deletion`] needs.
const DELETED: &str = "c.organization_id, c.table_name, c.row_id, c.id, c.at, c.action, c.before IS NOT NULL AS existed, \
     EXISTS (SELECT FROM labdata.catalog_table t WHERE t.organization_id = c.organization_id AND t.name = c.table_name \
         AND t.semantic_category = 'raw') AS is_chunk";

/// The names of core tables.
fn core_tables() -> Vec<String> {
    let tables = Catalog::new(CatalogVersion(0), Vec::new());
    let names = tables.tables().iter().map(|table| table.name.clone());
    names.collect()
}

/// The condition that a recorded change `c` is one of a series whose parent has the key of that parameter, by that
/// reference.
pub(crate) fn is_series_of(reference: &Column, key: &str) -> String {
    format!(
        // Of a series that was deleted with its parent the reference is not recorded.
        "c.before ->> {name} = {key} AND coalesce(c.owner_column = {name}, true)",
        name = literal(&reference.sql_name()),
    )
}

/// Deletes the recorded changes of a row and of its series, and its values in the ledger. Returns whether the row exists or
/// anything of it was stored.
pub(super) async fn forget(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    catalog: &Catalog,
    names: &TableNames<'_>,
    key: &KeyValue,
) -> Result<bool, Fault> {
    let table = names.table;
    let had_images = forget_images(connection, organization, table, key).await?;
    let mut conditions = vec!["table_name = $2 AND row_id = $4".to_owned()];
    let referencing = catalog.referencing(&table.name);
    conditions.extend(
        referencing
            .filter(|(other, _)| other.is_raw())
            .map(|(other, reference)| {
                format!(
                    "table_name = {} AND {}",
                    literal(&other.name),
                    is_series_of(reference, "$4")
                )
            }),
    );
    let deleted = format!(
        "deleted AS (DELETE FROM labdata.row_change c WHERE organization_id = $1 AND (({})) RETURNING {DELETED})",
        conditions.join(") OR (")
    );
    let deleted: DeletedRow = statement(deletion(&deleted, "max(at)"))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(&table.name)
        .bind::<Array<Text>, _>(core_tables())
        .bind::<Text, _>(key.to_string())
        .get_result(connection)
        .await?;
    let keys = names.key_values([key]);
    let query = statement(format!(
        "SELECT count(*) AS deleted FROM {} t WHERE t.{} = ANY($1::{}[])",
        names.name, names.key, names.key_type
    ));
    let current: DeletedRow = bind_values(query, &keys).get_result(connection).await?;
    Ok(had_images || deleted.deleted > 0 || current.deleted > 0)
}

/// Deletes recorded changes that are older, of the rows of up to that many; returns their number.
pub(super) async fn sweep(
    connection: &mut AsyncPgConnection,
    before: OffsetDateTime,
    limit: u32,
) -> Result<u64, diesel::result::Error> {
    // All old changes of a row at once: versions are counted from the oldest on.
    let deleted = format!(
        "old AS (SELECT organization_id, table_name, row_id FROM labdata.row_change \
             WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED), \
         deleted AS (DELETE FROM labdata.row_change c USING (SELECT DISTINCT * FROM old) o \
             WHERE c.organization_id = o.organization_id AND c.table_name = o.table_name AND c.row_id = o.row_id \
             AND c.at < $1 RETURNING {DELETED})"
    );
    let row: DeletedRow = statement(deletion(&deleted, "$1"))
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(i64::from(limit))
        .bind::<Array<Text>, _>(core_tables())
        .get_result(connection)
        .await?;
    Ok(u64::try_from(row.deleted).unwrap_or(u64::MAX))
}

/// The first moment since which a table is known as it stood.
pub(super) async fn since(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
) -> Result<OffsetDateTime, PortError> {
    let found: Option<SinceRow> = diesel::sql_query(
        "SELECT coalesce(t.history_since, o.history_since) AS since FROM labdata.organization o \
         LEFT JOIN labdata.catalog_table t ON t.organization_id = o.id AND t.name = $2 \
         WHERE o.id = $1 AND (t.id IS NOT NULL OR $2 = ANY($3))",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(table)
    .bind::<Array<Text>, _>(core_tables())
    .get_result(connection)
    .await
    .optional()
    .map_err(table_error)?;
    let found = found.ok_or(PortError::NotFound(Resource::Table))?;
    Ok(found.since)
}
