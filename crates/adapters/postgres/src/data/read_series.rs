//! Reads a series from its chunks: whole arrays, never the view's rows.

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::TryStreamExt;
use labdata_domain::{
    data::read::{SeriesColumns, SeriesLimits, SeriesPlan},
    ids::OrganizationId,
    scalar::Scalar,
};
use labdata_ports::data::ReadSeriesError;

use super::chunk::{Chunk, ChunkColumns};
use crate::database::{
    errors::table_error,
    names::ChunkNames,
    pool::Connection,
    sql::{Schemas, bind_scalar, statement},
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
    let names = schemas.chunk_names(&plan.owner);
    let points = count(connection, &names, plan)
        .await
        .map_err(table_error)?
        .ok_or(ReadSeriesError::NoParent)?;
    let columns = ChunkColumns::of(&plan.owner.table, plan.columns());
    // Before the chunks are read: a series beyond the limit costs no more than its count.
    limits.check(points, columns.len(), 0)?;
    let mut found = columns.with_capacity(points);
    let parent = Scalar::from(plan.parent.clone());
    let query = statement(format!(
        "SELECT {columns} FROM {chunks} c WHERE c.{owner} = $1 ORDER BY c._chunk",
        columns = columns.select_list(None),
        chunks = names.name,
        owner = names.owner,
    ));
    let query = bind_scalar(query, &parent);
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
        columns.append(chunk, &mut found)?;
    }
    // The stream borrows the connection.
    drop(chunks);
    connection.end_rows();
    let names = plan.columns().map(|column| column.name.clone());
    Ok(SeriesColumns {
        columns: names.zip(found).collect(),
        points,
    })
}

/// Number of the parent's points; `None` if there is no such row.
async fn count(
    connection: &mut AsyncPgConnection,
    names: &ChunkNames<'_>,
    plan: &SeriesPlan,
) -> Result<Option<usize>, diesel::result::Error> {
    let parent = Scalar::from(plan.parent.clone());
    // From the parents: without chunks a parent has a series of no points, and no row only where it is missing.
    let query = statement(format!(
        "SELECT coalesce((SELECT sum(c._points) FROM {chunks} c WHERE c.{column} = p.{key}), 0)::bigint AS points \
         FROM {parents} p WHERE p.{key} = $1",
        chunks = names.name,
        column = names.owner,
        parents = names.parents.name,
        key = names.parents.key,
    ));
    let found: Vec<Parent> = bind_scalar(query, &parent).load(connection).await?;
    Ok(found
        .into_iter()
        .next()
        .map(|parent| usize::try_from(parent.points).unwrap_or(usize::MAX)))
}
