//! What stands in the way of a restore: references and unique values of rows that stay as they are.

use diesel::sql_types::{Array, BigInt, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::KeyedTable,
    data::restore::{Obstacle, Reason, RestorePlan},
};

use super::{KeyRow, SELECTED, Source};
use crate::{
    data::{context::WriteContext, failure::Failure},
    database::{
        names::column_name,
        sql::{Statement, bind_values, literal, sql_type, statement},
    },
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
            let referenced = referenced(connection, context, keyed, source, plan).await?;
            add(Reason::Referenced, referenced);
        }
        let mut values = plan.values(&source.table.name, true);
        values.extend(plan.values(&source.table.name, false));
        if values.is_empty() {
            continue;
        }
        let values = Returning { source, values };
        add(
            Reason::ReferenceMissing,
            values.without_targets(connection, context, plan).await?,
        );
        if source.keyed.is_some() {
            add(
                Reason::ValueTaken,
                values.taken(connection, context, plan).await?,
            );
        } else {
            add(
                Reason::SeriesReplaced,
                values.replaced(connection, context, plan).await?,
            );
        }
    }
    Ok(found)
}

/// Rows to delete that rows reference that stay as they are.
async fn referenced(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &KeyedTable,
    source: &Source<'_>,
    plan: &RestorePlan,
) -> Result<Vec<KeyRow>, Failure> {
    let keys = source.keys(&plan.deleted(&table.name));
    let mut found = Vec::new();
    if keys.is_empty() {
        return Ok(found);
    }
    for (other, column) in context.catalog.row_references(&table.name) {
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
        let query = bind_values(query, &keys).bind::<Array<Text>, _>(planned);
        found.extend(query.load::<KeyRow>(connection).await?);
    }
    Ok(found)
}

/// The condition that a key is none of a parameter's. As a join: PostgreSQL compares each key with each element of an
/// array that is no constant of the plan.
fn none_of(parameter: &str, key: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM unnest({parameter}::text[]) AS n(id) WHERE n.id = {key}::text)"
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

    /// Those whose references would point at no row, or at another one than then.
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
                 AND ((x.{key} IS NULL OR s.target::text = ANY($3)) AND s.target::text <> ALL($4) OR s.target::text = ANY($5))",
                column = literal(&column.sql_name()),
                data_type = sql_type(column.data_type),
                name = other.name,
                key = other.key,
            );
            let query = self
                .bind(text, context)
                .bind::<Array<Text>, _>(plan.deleted(target))
                .bind::<Array<Text>, _>(plan.restored(target))
                .bind::<Array<Text>, _>(plan.lost(target));
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
            let equal: Vec<String> = columns
                .map(|column| {
                    format!(
                        "x.{} = (c.before ->> {})::{}",
                        column_name(column),
                        literal(&column.sql_name()),
                        sql_type(column.data_type)
                    )
                })
                .collect();
            let text = format!(
                "SELECT DISTINCT c.row_id AS key FROM labdata.row_change c JOIN {name} x ON {equal} \
                 WHERE {SELECTED} AND {other}",
                equal = equal.join(" AND "),
                other = none_of("$3", &format!("x.{key}")),
            );
            let query = self.bind(text, context).bind::<Array<Text>, _>(&planned);
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
