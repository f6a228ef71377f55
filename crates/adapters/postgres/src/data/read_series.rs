//! Reads a series from its chunks: whole arrays, never the view's rows.

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::TryStreamExt;
use labdata_domain::{
    catalog::Column,
    data::read::{SeriesColumns, SeriesLimits, SeriesPlan},
    ids::OrganizationId,
    scalar::{Scalar, Values},
};
use labdata_ports::data::ReadSeriesError;

use super::chunk::{Chunk, chunk_columns};
use crate::database::{
    errors::table_error,
    pool::Connection,
    sql::{Schemas, bind_scalar, ident, primary_key, statement},
};

#[derive(QueryableByName)]
struct Parent {
    #[diesel(sql_type = BigInt)]
    points: i64,
}

pub(super) async fn read_series(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &SeriesPlan,
    limits: SeriesLimits,
) -> Result<SeriesColumns, ReadSeriesError> {
    let schemas = Schemas::of(organization);
    let points = count(connection, &schemas, plan)
        .await
        .map_err(table_error)?
        .ok_or(ReadSeriesError::NoParent)?;
    let columns: Vec<(usize, &Column)> = plan.columns().collect();
    limits.check(points, columns.len(), 0)?;
    let mut found: Vec<Values> = columns
        .iter()
        .map(|(_, column)| Values::with_capacity(column.data_type, points))
        .collect();
    let parent = Scalar::from(plan.parent.clone());
    let query = bind_scalar(statement(chunks(&schemas, plan)), &parent);
    connection.begin_rows();
    let mut chunks = query
        .load_stream::<Chunk>(&mut *connection)
        .await
        .map_err(table_error)?;
    let (mut points, mut bytes) = (0_usize, 0_usize);
    while let Some(chunk) = chunks.try_next().await.map_err(table_error)? {
        points = points.saturating_add(chunk.points);
        bytes = bytes.saturating_add(chunk.bytes);
        // Another write may have stored a larger series since it was counted.
        limits.check(points, columns.len(), bytes)?;
        chunk.append_to(&plan.table, plan.columns(), &mut found)?;
    }
    drop(chunks);
    connection.end_rows();
    let names = columns.iter().map(|(_, column)| column.name.clone());
    Ok(SeriesColumns {
        columns: names.zip(found).collect(),
        points,
    })
}

/// Number of the parent's points; `None` if there is no such row.
async fn count(
    connection: &mut AsyncPgConnection,
    schemas: &Schemas,
    plan: &SeriesPlan,
) -> Result<Option<usize>, diesel::result::Error> {
    let parent = Scalar::from(plan.parent.clone());
    let query = statement(format!(
        "SELECT coalesce((SELECT sum(c._points) FROM {chunks} c WHERE c.{column} = p.{key}), 0)::bigint AS points \
         FROM {parents} p WHERE p.{key} = $1",
        chunks = schemas.chunk_table(&plan.table.name),
        column = parent_column(plan),
        parents = schemas.table(&plan.parent_table.name),
        key = primary_key(&plan.parent_table),
    ));
    let found: Vec<Parent> = bind_scalar(query, &parent).load(connection).await?;
    Ok(found
        .into_iter()
        .next()
        .map(|parent| usize::try_from(parent.points).unwrap_or(usize::MAX)))
}

fn parent_column(plan: &SeriesPlan) -> String {
    let column = plan.table.columns.get(plan.parent_column);
    column.map_or_else(String::new, |column| ident(&column.sql_name()))
}

fn chunks(schemas: &Schemas, plan: &SeriesPlan) -> String {
    format!(
        "SELECT {} FROM {} c WHERE c.{} = $1 ORDER BY c._chunk",
        chunk_columns(&plan.table, None, plan.columns()),
        schemas.chunk_table(&plan.table.name),
        parent_column(plan),
    )
}
