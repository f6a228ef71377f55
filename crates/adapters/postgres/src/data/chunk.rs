//! Chunks of raw tables: whole arrays, never the view's rows.

use std::collections::VecDeque;

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
use labdata_domain::{
    catalog::{ColumnRef, Table},
    for_each_values,
    scalar::{KeyValue, Scalar, Values},
};
use labdata_ports::PortError;

use crate::database::names::column_name;

/// Typical ratio of a JSON value's size in memory to its stored size.
const JSON_GROWS: usize = 8;

/// A chunk: its number of points, the source of its places, and its columns.
pub(super) struct Chunk {
    pub(super) points: usize,
    start: i64,
    order: Option<Vec<Option<i64>>>,
    columns: VecDeque<Stored>,
    pub(super) bytes: usize,
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
            columns: VecDeque::with_capacity(row.field_count()),
            bytes: 0,
        };
        // The first three are read by name above; the rest depends on the table.
        for index in 3..row.field_count() {
            let field = Row::get(row, index).ok_or("a column is missing")?;
            chunk.columns.push_back(match field.value() {
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
        // Single values are references, which have a type of keys: text, integer or UUID.
        oid::TEXT => Stored::One(Scalar::Text(FromSql::<Text, Pg>::from_sql(value)?)),
        oid::INTEGER => Stored::One(Scalar::Integer(FromSql::<BigInt, Pg>::from_sql(value)?)),
        oid::UUID => Stored::One(Scalar::Uuid(FromSql::<SqlUuid, Pg>::from_sql(value)?)),
        oid::TEXTS => {
            let texts: Vec<Option<String>> = each::<Text, _>(value)?;
            let texts = texts.into_iter().map(|text| text.map(Into::into));
            Stored::Each(Values::Text(texts.collect()))
        }
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

/// Columns of a raw table that are read from its chunks.
pub(super) struct ChunkColumns<'t> {
    table: &'t Table,
    columns: Vec<&'t ColumnRef>,
}

impl<'t> ChunkColumns<'t> {
    pub(super) fn of(table: &'t Table, columns: impl IntoIterator<Item = &'t ColumnRef>) -> Self {
        let columns = columns.into_iter().collect();
        Self { table, columns }
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    fn is_order(&self, column: &ColumnRef) -> bool {
        self.table.order_column() == Some(column)
    }

    /// The select list of chunks `c`: their points, the source of their places, the value of
    /// `parent` if one is given, and the columns.
    pub(super) fn select_list(&self, parent: Option<&str>) -> String {
        let parent = parent.map(|parent| format!("{parent} AS _parent"));
        // The order is not stored as a column: it is made of `_start` or `_order`.
        let columns = self.columns.iter().filter(|column| !self.is_order(column));
        let columns = columns.map(|column| format!("c.{}", column_name(column)));
        [
            "coalesce(c._points, 0) AS _points",
            "coalesce(c._start, 0) AS _start",
            "c._order",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(parent)
        .chain(columns)
        .collect::<Vec<_>>()
        .join(", ")
    }

    /// Empty columns for that many points.
    pub(super) fn with_capacity(&self, points: usize) -> Vec<Values> {
        let columns = self.columns.iter();
        columns
            .map(|column| Values::with_capacity(column.data_type, points))
            .collect()
    }

    /// Appends the points of a chunk, which was selected with these columns.
    ///
    /// # Errors
    /// [`PortError::Internal`] if the chunk does not hold what the table says.
    pub(super) fn append(&self, mut chunk: Chunk, found: &mut [Values]) -> Result<(), PortError> {
        for (column, values) in self.columns.iter().zip(found) {
            let appended = if self.is_order(column) {
                append_places(values, chunk.points, chunk.start, chunk.order.as_deref())
            } else {
                let stored = chunk.columns.pop_front();
                stored.is_some_and(|stored| append(values, stored, chunk.points))
            };
            if !appended {
                let cause = format!(
                    "a chunk of {} does not hold what its table says",
                    self.table.name
                );
                return Err(PortError::Internal(cause));
            }
        }
        Ok(())
    }
}

impl Chunk {
    /// Takes the value of `parent` that the chunk was selected with.
    pub(super) fn take_parent(&mut self) -> Option<KeyValue> {
        match self.columns.pop_front()? {
            Stored::One(key) => key.into_key(),
            _ => None,
        }
    }
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
            (Values::Text(all), Scalar::Text(one)) => all.resize(before + points, Some(one.into())),
            (Values::Integer(all), Scalar::Integer(one)) => all.resize(before + points, Some(one)),
            (Values::Uuid(all), Scalar::Uuid(one)) => all.resize(before + points, Some(one)),
            _ => return false,
        },
        Stored::Each(each) => {
            if !values.append(each) {
                return false;
            }
        }
    }
    values.len() == before + points
}
