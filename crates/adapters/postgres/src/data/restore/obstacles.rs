//! Obstacles to a restore: references and unique values of rows that stay as they are.

use diesel::sql_types::{Array, BigInt, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, KeyedTable},
    data::restore::{Obstacle, Reason, RestorePlan},
    people::rights::TableRight,
    scalar::Values,
};

use super::{KeyRow, SELECTED, Source};
use crate::{
    data::{context::WriteContext, failure::Failure},
    database::{
        names::column_name,
        sql::{Statement, bind_values, literal, sql_type, statement},
    },
    trash::column_schemas,
};

pub(super) async fn obstacles(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    sources: &[Source<'_>],
    plan: &RestorePlan,
) -> Result<Vec<Obstacle>, Failure> {
    let mut found = Vec::new();
    for source in sources {
        let mut add = |reason, rows: Vec<KeyRow>| {
            found.extend(rows.into_iter().map(|row| Obstacle {
                table: source.table.name.clone(),
                id: row.key,
                reason,
            }));
        };
        if let Some(keyed) = &source.keyed {
            let deleted = Deleted {
                table: keyed,
                keys: source.keys(&plan.deleted(&keyed.name)),
            };
            add(
                Reason::Referenced,
                deleted.referenced(connection, context, plan).await?,
            );
            add(
                Reason::Protected,
                deleted.with_protected_points(connection, context).await?,
            );
        }
        let mut values = plan.values(&source.table.name, true);
        values.extend(plan.values(&source.table.name, false));
        if values.is_empty() {
            continue;
        }
        let values = Returning { source, values };
        for (reason, rows) in values.obstacles(connection, context, plan).await? {
            add(reason, rows);
        }
    }
    Ok(found)
}

/// Rows to delete.
struct Deleted<'s> {
    table: &'s KeyedTable,
    keys: Values,
}

impl Deleted<'_> {
    /// Those that rows reference that stay as they are.
    async fn referenced(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut found = Vec::new();
        if self.keys.is_empty() {
            return Ok(found);
        }
        for (other, column) in context.catalog.row_references(&self.table.name) {
            let names = context.names(&other);
            let planned: Vec<&str> = plan.of(&other.name).map(|(id, _)| id).collect();
            let query = statement(format!(
                "SELECT DISTINCT t.{column}::text AS key FROM {name} t \
                 WHERE t.{column} = ANY($1::{data_type}[]) AND {other}",
                column = column_name(column),
                name = names.name,
                data_type = sql_type(column.data_type),
                other = none_of("$2", &format!("t.{}", names.key)),
            ));
            let query = bind_values(query, &self.keys).bind::<Array<Text>, _>(planned);
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Those that own points of tables that the caller may not write.
    async fn with_protected_points(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut found = Vec::new();
        if self.keys.is_empty() {
            return Ok(found);
        }
        let points = context.catalog.referencing(&self.table.name);
        let points = points.filter(|(raw, _)| raw.is_raw());
        for (raw, column) in points.filter(|(raw, _)| context.rights.on(raw) != TableRight::Write) {
            let query = statement(format!(
                "SELECT DISTINCT c.{column}::text AS key FROM {chunks} c WHERE c.{column} = ANY($1::{data_type}[])",
                column = column_name(column),
                chunks = context.schemas.chunk_table(&raw.name),
                data_type = sql_type(column.data_type),
            ));
            let query = bind_values(query, &self.keys);
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }
}

/// The condition that a key is none of a parameter's. As a join: PostgreSQL compares each key with each element of an
/// array that is no constant of the plan.
fn none_of(parameter: &str, key: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM unnest({parameter}::text[]) AS n(id) WHERE n.id = {key}::text)"
    )
}

/// A value of a recorded change `c`.
fn former_value(column: &Column) -> String {
    format!(
        "(c.before ->> {})::{}",
        literal(&column.sql_name()),
        sql_type(column.data_type)
    )
}

/// Stored values of rows or chunks that are to return.
struct Returning<'s, 'c> {
    source: &'s Source<'c>,
    /// Numbers of the recorded changes before which they were stored.
    values: Vec<i64>,
}

impl Returning<'_, '_> {
    fn bind<'f>(&'f self, text: String, context: &WriteContext<'_>) -> Statement<'f> {
        statement(text)
            .bind::<SqlUuid, _>(context.execution.as_uuid())
            .bind::<Array<BigInt>, _>(&self.values)
    }

    async fn obstacles(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<(Reason, Vec<KeyRow>)>, Failure> {
        let without_targets = self.without_targets(connection, context, plan).await?;
        let in_trash = self.with_columns_in_trash(connection, context).await?;
        let mut found = vec![
            (Reason::ReferenceMissing, without_targets),
            (Reason::ColumnInTrash, in_trash),
        ];
        if self.source.keyed.is_some() {
            let without_values = self.without_values(connection, context).await?;
            found.push((Reason::ValueMissing, without_values));
            let taken = self.taken(connection, context, plan).await?;
            found.push((Reason::ValueTaken, taken));
        } else {
            let replaced = self.replaced(connection, context, plan).await?;
            found.push((Reason::SeriesReplaced, replaced));
        }
        Ok(found)
    }

    /// Those whose references would point at no row.
    async fn without_targets(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut found = Vec::new();
        for (column, target) in self.source.table.references() {
            let Some(other) = Source::of(context, target) else {
                continue;
            };
            let text = format!(
                "SELECT c.row_id AS key FROM labdata.row_change c \
                 CROSS JOIN LATERAL (SELECT (c.before ->> {column})::{data_type} AS target) s \
                 LEFT JOIN {name} x ON x.{key} = s.target WHERE {SELECTED} AND s.target IS NOT NULL \
                 AND (x.{key} IS NULL OR s.target::text = ANY($3)) AND s.target::text <> ALL($4)",
                column = literal(&column.sql_name()),
                data_type = sql_type(column.data_type),
                name = other.name,
                key = other.key,
            );
            let query = self
                .bind(text, context)
                .bind::<Array<Text>, _>(plan.deleted(target))
                .bind::<Array<Text>, _>(plan.restored(target));
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Rows with values that must be unique and that a row has that stays as it is.
    async fn taken(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let Source {
            table, name, key, ..
        } = self.source;
        let alone = table.columns.iter();
        let alone = alone.filter(|column| column.is_unique && !column.is_primary_key);
        let alone = alone.map(|column| vec![column.name.clone()]);
        let planned: Vec<&str> = plan.of(&table.name).map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for group in alone.chain(table.unique_together.iter().cloned()) {
            let columns = group.iter().filter_map(|name| table.column(name));
            let columns: Vec<_> = columns.collect();
            let former: Vec<String> = columns.iter().map(|column| former_value(column)).collect();
            let equal = columns.iter().zip(&former);
            let equal: Vec<String> = equal
                .map(|(column, value)| format!("x.{} = {value}", column_name(column)))
                .collect();
            let text = format!(
                "SELECT DISTINCT c.row_id AS key FROM labdata.row_change c JOIN {name} x ON {equal} \
                 WHERE {SELECTED} AND {other}",
                equal = equal.join(" AND "),
                other = none_of("$3", &format!("x.{key}")),
            );
            let query = self.bind(text, context).bind::<Array<Text>, _>(&planned);
            found.extend(query.load::<KeyRow>(connection).await?);
            // Values that need not be unique when the rows had them.
            let text = format!(
                "SELECT key FROM (SELECT c.row_id AS key, count(*) OVER (PARTITION BY {values}) AS count \
                     FROM labdata.row_change c WHERE {SELECTED} AND NOT ({nulls})) u WHERE count > 1",
                values = former.join(", "),
                nulls = former
                    .iter()
                    .map(|value| format!("{value} IS NULL"))
                    .collect::<Vec<_>>()
                    .join(" OR "),
            );
            let query = self.bind(text, context);
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Rows without a value in a column that needs one.
    async fn without_values(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
    ) -> Result<Vec<KeyRow>, Failure> {
        let columns = self.source.table.columns.iter();
        let needed = columns.filter(|column| !column.is_nullable && !column.is_primary_key);
        let missing: Vec<String> = needed
            .map(|column| format!("c.before ->> {} IS NULL", literal(&column.sql_name())))
            .collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT c.row_id AS key FROM labdata.row_change c WHERE {SELECTED} AND ({})",
            missing.join(" OR ")
        );
        Ok(self.bind(text, context).load(connection).await?)
    }

    /// Rows or chunks that had another value in a column that is in the trash, which holds their last one.
    async fn with_columns_in_trash(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut found = Vec::new();
        let Some(id) = self.source.table.id else {
            return Ok(found);
        };
        for schema in column_schemas(connection, context.organization, id).await? {
            let text = format!(
                "SELECT h.row_id AS key FROM {schema}._history h \
                 LEFT JOIN {schema}._values v ON v._key::text = h.row_id \
                 LEFT JOIN (SELECT DISTINCT ON (row_id) row_id, value FROM {schema}._history \
                     ORDER BY row_id, id DESC) l ON l.row_id = h.row_id \
                 WHERE h.id = ANY($1) AND coalesce(h.value, 'null') IS DISTINCT FROM coalesce( \
                     CASE WHEN v._key IS NULL THEN l.value ELSE to_jsonb(v._value) END, 'null')"
            );
            let query = statement(text).bind::<Array<BigInt>, _>(&self.values);
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Chunks of series in whose place other points are.
    async fn replaced(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let Source { table, name, .. } = self.source;
        let references: Vec<_> = table.references().collect();
        let mut found = Vec::new();
        for (column, _) in &references {
            let sql_name = literal(&column.sql_name());
            // Of a series that was deleted with its parent the reference is not recorded.
            let only = if references.len() == 1 {
                " OR c.owner_column IS NULL"
            } else {
                ""
            };
            let text = format!(
                "SELECT DISTINCT c.row_id AS key FROM labdata.row_change c \
                 JOIN {name} x ON x.{column} = (c.before ->> {sql_name})::{data_type} \
                 WHERE {SELECTED} AND (c.owner_column = {sql_name}{only}) AND {other}",
                other = none_of("$3", "x._chunk"),
                column = column_name(column),
                data_type = sql_type(column.data_type),
            );
            let query = self
                .bind(text, context)
                .bind::<Array<Text>, _>(plan.deleted(&table.name));
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }
}
