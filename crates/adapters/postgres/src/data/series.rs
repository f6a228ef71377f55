//! Writes series as chunks: one row per parent and run of points, one typed array per column.

use std::{collections::HashMap, ops::Range};

use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Date, Double, Integer, Jsonb, Nullable, Text, Timestamptz,
        Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, Table},
    data::write::{Order, ResolvedColumn, SeriesStep},
    scalar::{KeyValue, Scalar, Values},
};

use super::{context::WriteContext, failure::Failure};
use crate::catalog::ddl::POINTS_PER_CHUNK;
use crate::database::sql::{
    Statement, bind_scalar, bind_values, gather, ident, key_from_text, key_values, primary_key,
    sql_type, statement,
};

/// Maximum number of parameters of one statement; PostgreSQL's limit is 65,535.
const MAX_PARAMETERS: usize = 30_000;

/// A series whose parent and references are known.
pub(super) struct ReadySeries<'p> {
    pub(super) step: &'p SeriesStep,
    pub(super) parent: KeyValue,
    /// True if this request creates the parent.
    pub(super) is_new: bool,
    /// Columns with a value per point.
    pub(super) columns: Vec<ResolvedColumn<'p>>,
}

#[derive(QueryableByName)]
struct Replaced {
    #[diesel(sql_type = Text)]
    parent: String,
    #[diesel(sql_type = BigInt)]
    points: i64,
}

/// Replaces the parents' series; returns the number of points that each replaced. Series of one
/// form are written together, so the number of statements does not grow with that of series.
pub(super) async fn replace_series(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    series: &[ReadySeries<'_>],
) -> Result<Vec<u64>, Failure> {
    let mut forms: Vec<Vec<usize>> = Vec::new();
    let mut form_of: HashMap<(&str, usize, Vec<usize>), usize> = HashMap::new();
    for (index, ready) in series.iter().enumerate() {
        let columns = ready.columns.iter().map(|given| given.column).collect();
        let key = (
            ready.step.table.name.as_str(),
            ready.step.parent_column,
            columns,
        );
        let form = *form_of.entry(key).or_insert_with(|| {
            forms.push(Vec::new());
            forms.len() - 1
        });
        if let Some(members) = forms.get_mut(form) {
            members.push(index);
        }
    }
    let mut replaced = vec![0; series.len()];
    for members in forms {
        let members: Vec<(usize, &ReadySeries<'_>)> = members
            .into_iter()
            .filter_map(|index| series.get(index).map(|ready| (index, ready)))
            .collect();
        let [(_, first), ..] = members.as_slice() else {
            continue;
        };
        let deleted = remove(connection, context, first.step, &members).await?;
        for (index, ready) in &members {
            if let (Some(slot), Some(points)) =
                (replaced.get_mut(*index), deleted.get(&ready.parent))
            {
                *slot = *points;
            }
        }
        insert(connection, context, first, &members).await?;
    }
    Ok(replaced)
}

async fn remove(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &SeriesStep,
    members: &[(usize, &ReadySeries<'_>)],
) -> Result<HashMap<KeyValue, u64>, Failure> {
    let Some(column) = step.table.columns.get(step.parent_column) else {
        return Ok(HashMap::new());
    };
    let parents = key_values(
        members.iter().map(|(_, ready)| ready.parent.clone()),
        column.data_type,
    );
    lock_parents(connection, context, column, members).await?;
    let name = ident(&column.sql_name());
    let query = statement(format!(
        "WITH deleted AS (DELETE FROM {} WHERE {name} = ANY($1::{}[]) RETURNING {name}, _points) \
         SELECT {name}::text AS parent, sum(_points)::bigint AS points FROM deleted GROUP BY {name}",
        context.schemas.chunk_table(&step.table.name),
        sql_type(column.data_type),
    ));
    let deleted: Vec<Replaced> = bind_values(query, &parents).load(connection).await?;
    Ok(deleted
        .into_iter()
        .map(|row| {
            (
                key_from_text(row.parent, column.data_type),
                u64::try_from(row.points).unwrap_or_default(),
            )
        })
        .collect())
}

/// Locks parents, so that writers of one parent's series wait for each other and never mix their
/// points. Other writers cannot see the parents that this request creates.
async fn lock_parents(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    column: &Column,
    members: &[(usize, &ReadySeries<'_>)],
) -> Result<(), Failure> {
    let parents = members
        .iter()
        .filter(|(_, ready)| !ready.is_new)
        .map(|(_, ready)| ready.parent.clone());
    let parents = key_values(parents.collect::<Vec<_>>(), column.data_type);
    let table = column
        .references
        .as_deref()
        .and_then(|name| context.catalog.table(name));
    let Some(table) = table.filter(|_| !parents.is_empty()) else {
        return Ok(());
    };
    let key = primary_key(table);
    let query = statement(format!(
        "SELECT 1 FROM {} t WHERE t.{key} = ANY($1::{}[]) ORDER BY t.{key} FOR NO KEY UPDATE",
        context.schemas.table(&table.name),
        sql_type(column.data_type),
    ));
    bind_values(query, &parents).execute(connection).await?;
    Ok(())
}

/// A chunk to be written.
struct Chunk<'s> {
    parent: Scalar,
    columns: &'s [ResolvedColumn<'s>],
    /// The one value in this chunk of each column that is a reference.
    references: Vec<Option<Values>>,
    points: Range<usize>,
    start: i64,
    order: Option<Vec<i64>>,
}

async fn insert(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    first: &ReadySeries<'_>,
    members: &[(usize, &ReadySeries<'_>)],
) -> Result<(), Failure> {
    let table = &first.step.table;
    let mut chunks = Vec::new();
    for (_, ready) in members {
        for points in cut(ready) {
            chunks.push(chunk(table, ready, points));
        }
    }
    let per_chunk = 4 + first.columns.len();
    for part in chunks.chunks((MAX_PARAMETERS / per_chunk).max(1)) {
        insert_chunks(connection, context, first, part).await?;
    }
    Ok(())
}

fn chunk<'s>(table: &Table, ready: &'s ReadySeries<'_>, points: Range<usize>) -> Chunk<'s> {
    let references = ready
        .columns
        .iter()
        .map(|given| is_reference(table, given).then(|| gather(&given.values, &[points.start])))
        .collect();
    let (start, order) = places(&ready.step.order, &points);
    Chunk {
        parent: ready.parent.clone().into(),
        columns: &ready.columns,
        references,
        points,
        start,
        order,
    }
}

fn is_reference(table: &Table, given: &ResolvedColumn<'_>) -> bool {
    let column = table.columns.get(given.column);
    column.is_some_and(|column| column.references.is_some())
}

/// The points of each chunk: at most 4,096, with one value of each reference.
fn cut(ready: &ReadySeries<'_>) -> Vec<Range<usize>> {
    let step = ready.step;
    let references: Vec<&Values> = ready
        .columns
        .iter()
        .filter(|given| is_reference(&step.table, given))
        .map(|given| &*given.values)
        .collect();
    let mut ranges = Vec::new();
    let mut from = 0;
    while from < step.points {
        let full = (from + usize::from(POINTS_PER_CHUNK)).min(step.points);
        let changed = (from + 1..full).find(|point| {
            references
                .iter()
                .any(|values| values.get(*point) != values.get(*point - 1))
        });
        let to = changed.unwrap_or(full);
        ranges.push(from..to);
        from = to;
    }
    ranges
}

/// The first place of a chunk, and all of them if they are not consecutive.
fn places(order: &Order, points: &Range<usize>) -> (i64, Option<Vec<i64>>) {
    match order {
        Order::Positions => (i64::try_from(points.start).unwrap_or(i64::MAX), None),
        Order::Given(places) => {
            let places = places.get(points.clone()).unwrap_or_default();
            let start = places.first().copied().unwrap_or_default();
            let consecutive = places
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
            (start, (!consecutive).then(|| places.to_vec()))
        }
    }
}

async fn insert_chunks(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    first: &ReadySeries<'_>,
    chunks: &[Chunk<'_>],
) -> Result<(), Failure> {
    let table = &first.step.table;
    let Some(parent_column) = table.columns.get(first.step.parent_column) else {
        return Ok(());
    };
    let columns: Vec<&Column> = first
        .columns
        .iter()
        .filter_map(|given| table.columns.get(given.column))
        .collect();
    let mut names = vec![ident(&parent_column.sql_name())];
    names.extend(columns.iter().map(|column| ident(&column.sql_name())));
    let mut rows = Vec::with_capacity(chunks.len());
    let mut parameter = 1;
    for _ in chunks {
        let mut next = || {
            parameter += 1;
            parameter
        };
        let mut row = vec![
            "$1".to_owned(),
            format!("${}::integer", next()),
            format!("${}::bigint", next()),
            format!("${}::bigint[]", next()),
            format!("${}::{}", next(), sql_type(parent_column.data_type)),
        ];
        row.extend(columns.iter().map(|column| {
            let data_type = sql_type(column.data_type);
            match column.references {
                Some(_) => format!("(${}::{data_type}[])[1]", next()),
                None => format!("${}::{data_type}[]", next()),
            }
        }));
        rows.push(format!("({})", row.join(",")));
    }
    let mut query = statement(format!(
        "INSERT INTO {} (_execution, _points, _start, _order, {}) VALUES {}",
        context.schemas.chunk_table(&table.name),
        names.join(", "),
        rows.join(", ")
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid());
    for chunk in chunks {
        query = query
            .bind::<Integer, _>(i32::try_from(chunk.points.len()).unwrap_or(i32::MAX))
            .bind::<BigInt, _>(chunk.start)
            .bind::<Nullable<Array<BigInt>>, _>(&chunk.order);
        query = bind_scalar(query, &chunk.parent);
        for (given, reference) in chunk.columns.iter().zip(&chunk.references) {
            query = match reference {
                Some(value) => bind_values(query, value),
                None => bind_slice(query, &given.values, chunk.points.clone()),
            };
        }
    }
    query.execute(connection).await?;
    Ok(())
}

/// Binds a part of a column as an array.
fn bind_slice<'f>(
    statement: Statement<'f>,
    values: &'f Values,
    points: Range<usize>,
) -> Statement<'f> {
    match values {
        Values::Text(v) => {
            statement.bind::<Array<Nullable<Text>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Integer(v) => {
            statement.bind::<Array<Nullable<BigInt>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Float(v) => {
            statement.bind::<Array<Nullable<Double>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Boolean(v) => {
            statement.bind::<Array<Nullable<Bool>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Datetime(v) => {
            statement.bind::<Array<Nullable<Timestamptz>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Date(v) => {
            statement.bind::<Array<Nullable<Date>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Uuid(v) => {
            statement.bind::<Array<Nullable<SqlUuid>>, _>(v.get(points).unwrap_or_default())
        }
        Values::Json(v) => {
            statement.bind::<Array<Nullable<Jsonb>>, _>(v.get(points).unwrap_or_default())
        }
    }
}
