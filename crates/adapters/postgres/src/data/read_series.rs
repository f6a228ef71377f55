//! Reads a series from its chunks: whole arrays, never the view's rows.

use diesel::{
    QueryableByName,
    deserialize::{FromSql, Result as Read},
    pg::{Pg, PgValue},
    row::{Field, NamedRow, Row},
    sql_types::{
        Array, BigInt, Bool, Date, Double, Integer, Jsonb, Nullable, Text, Timestamptz,
        Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::TryStreamExt;
use labdata_domain::{
    catalog::Column,
    data::read::{SeriesColumns, SeriesLimits, SeriesPlan},
    for_each_values,
    ids::OrganizationId,
    scalar::{Scalar, Values},
};
use labdata_ports::{PortError, data::ReadSeriesError};

use crate::database::{
    errors::port_error,
    pool::Connection,
    sql::{Schemas, bind_scalar, ident, primary_key, statement},
};

/// Typical ratio of a JSON value's size in memory to its stored size.
const JSON_GROWS: usize = 8;

#[derive(QueryableByName)]
struct Parent {
    #[diesel(sql_type = BigInt)]
    points: i64,
}

/// A chunk: its number of points, the source of its places, and its columns.
struct Chunk {
    points: usize,
    start: i64,
    order: Option<Vec<Option<i64>>>,
    columns: Vec<Stored>,
    bytes: usize,
}

/// Content of a column in a chunk.
enum Stored {
    /// Null: the column was not written, or is newer than the chunk.
    Null,
    /// A reference's one value.
    One(Scalar),
    /// A value per point.
    Each(Values),
}

/// Type oids of chunks' columns, which `pg_type.dat` fixes for all servers.
mod oid {
    pub(super) const TEXT: u32 = 25;
    pub(super) const INTEGER: u32 = 20;
    pub(super) const UUID: u32 = 2950;
    pub(super) const TEXTS: u32 = 1009;
    pub(super) const INTEGERS: u32 = 1016;
    pub(super) const FLOATS: u32 = 1022;
    pub(super) const BOOLEANS: u32 = 1000;
    pub(super) const DATETIMES: u32 = 1185;
    pub(super) const DATES: u32 = 1182;
    pub(super) const UUIDS: u32 = 2951;
    pub(super) const JSONS: u32 = 3807;
}

impl QueryableByName<Pg> for Chunk {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> Read<Self> {
        let points: i32 = NamedRow::get::<Integer, _>(row, "_points")?;
        let mut chunk = Self {
            points: usize::try_from(points)?,
            start: NamedRow::get::<BigInt, _>(row, "_start")?,
            order: NamedRow::get::<Nullable<Array<Nullable<BigInt>>>, _>(row, "_order")?,
            columns: Vec::with_capacity(row.field_count()),
            bytes: 0,
        };
        for index in 3..row.field_count() {
            let field = Row::get(row, index).ok_or("a column is missing")?;
            chunk.columns.push(match field.value() {
                Some(value) => {
                    let json = value.get_oid().get() == oid::JSONS;
                    let grows = if json { JSON_GROWS } else { 1 };
                    chunk.bytes += value.as_bytes().len().saturating_mul(grows);
                    stored(value)?
                }
                None => Stored::Null,
            });
        }
        Ok(chunk)
    }
}

fn stored(value: PgValue<'_>) -> Read<Stored> {
    fn each<S, T>(value: PgValue<'_>) -> Read<Vec<Option<T>>>
    where
        Vec<Option<T>>: FromSql<Array<Nullable<S>>, Pg>,
        S: diesel::sql_types::SqlType<IsNull = diesel::sql_types::is_nullable::NotNull>,
    {
        FromSql::<Array<Nullable<S>>, Pg>::from_sql(value)
    }
    Ok(match value.get_oid().get() {
        oid::TEXT => Stored::One(Scalar::Text(FromSql::<Text, Pg>::from_sql(value)?)),
        oid::INTEGER => Stored::One(Scalar::Integer(FromSql::<BigInt, Pg>::from_sql(value)?)),
        oid::UUID => Stored::One(Scalar::Uuid(FromSql::<SqlUuid, Pg>::from_sql(value)?)),
        oid::TEXTS => Stored::Each(Values::Text(each::<Text, _>(value)?)),
        oid::INTEGERS => Stored::Each(Values::Integer(each::<BigInt, _>(value)?)),
        oid::FLOATS => Stored::Each(Values::Float(each::<Double, _>(value)?)),
        oid::BOOLEANS => Stored::Each(Values::Boolean(each::<Bool, _>(value)?)),
        oid::DATETIMES => Stored::Each(Values::Datetime(each::<Timestamptz, _>(value)?)),
        oid::DATES => Stored::Each(Values::Date(each::<Date, _>(value)?)),
        oid::UUIDS => Stored::Each(Values::Uuid(each::<SqlUuid, _>(value)?)),
        oid::JSONS => Stored::Each(Values::Json(each::<Jsonb, _>(value)?)),
        other => return Err(format!("a chunk holds the type {other}").into()),
    })
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
        .map_err(port_error)?
        .ok_or(ReadSeriesError::NoParent)?;
    let columns: Vec<(usize, &Column)> = plan.columns().collect();
    limits.check(points, columns.len(), 0)?;
    let order = plan.table.order_column().map(|(index, _)| index);
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
        .map_err(port_error)?;
    let (mut points, mut bytes) = (0_usize, 0_usize);
    while let Some(chunk) = chunks.try_next().await.map_err(port_error)? {
        points = points.saturating_add(chunk.points);
        bytes = bytes.saturating_add(chunk.bytes);
        // Another write may have stored a larger series since it was counted.
        limits.check(points, columns.len(), bytes)?;
        let mut stored = chunk.columns.into_iter();
        for ((index, _), values) in columns.iter().zip(&mut found) {
            let appended = if Some(*index) == order {
                append_places(values, chunk.points, chunk.start, chunk.order.as_deref())
            } else {
                append(values, stored.next().unwrap_or(Stored::Null), chunk.points)
            };
            if !appended {
                let name = &plan.table.name;
                let cause = format!("a chunk of {name} does not hold what its table says");
                return Err(PortError::Internal(cause).into());
            }
        }
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
    let order = plan.table.order_column().map(|(index, _)| index);
    let columns: Vec<String> = ["c._points", "c._start", "c._order"]
        .map(str::to_owned)
        .into_iter()
        .chain(
            plan.columns()
                .filter(|(index, _)| Some(*index) != order)
                .map(|(_, column)| format!("c.{}", ident(&column.sql_name()))),
        )
        .collect();
    format!(
        "SELECT {} FROM {} c WHERE c.{} = $1 ORDER BY c._chunk",
        columns.join(", "),
        schemas.chunk_table(&plan.table.name),
        parent_column(plan),
    )
}

/// Appends the places of a chunk's points; returns whether there is one per point.
fn append_places(
    values: &mut Values,
    points: usize,
    start: i64,
    order: Option<&[Option<i64>]>,
) -> bool {
    let Values::Integer(places) = values else {
        return false;
    };
    let before = places.len();
    match order {
        Some(order) => places.extend_from_slice(order),
        None => places.extend((start..).take(points).map(Some)),
    }
    places.len() == before + points
}

/// Appends a chunk's values; returns whether they have the column's type and one is there per point.
fn append(values: &mut Values, stored: Stored, points: usize) -> bool {
    let before = values.len();
    match stored {
        Stored::Null => {
            for_each_values!(&mut *values, vector => vector.resize(before + points, None));
        }
        Stored::One(scalar) => match (&mut *values, scalar) {
            (Values::Text(all), Scalar::Text(one)) => all.resize(before + points, Some(one)),
            (Values::Integer(all), Scalar::Integer(one)) => all.resize(before + points, Some(one)),
            (Values::Uuid(all), Scalar::Uuid(one)) => all.resize(before + points, Some(one)),
            _ => return false,
        },
        Stored::Each(each) => match (&mut *values, each) {
            (Values::Text(all), Values::Text(mut more)) => all.append(&mut more),
            (Values::Integer(all), Values::Integer(mut more)) => all.append(&mut more),
            (Values::Float(all), Values::Float(mut more)) => all.append(&mut more),
            (Values::Boolean(all), Values::Boolean(mut more)) => all.append(&mut more),
            (Values::Datetime(all), Values::Datetime(mut more)) => all.append(&mut more),
            (Values::Date(all), Values::Date(mut more)) => all.append(&mut more),
            (Values::Uuid(all), Values::Uuid(mut more)) => all.append(&mut more),
            (Values::Json(all), Values::Json(mut more)) => all.append(&mut more),
            _ => return false,
        },
    }
    values.len() == before + points
}
