//! Reads tables in parts, each with one statement, which sees one moment.

use diesel::{
    QueryableByName,
    deserialize::Result as Read,
    pg::Pg,
    row::{Field, NamedRow, Row},
};
use diesel_async::RunQueryDsl;
use futures::TryStreamExt;
use labdata_domain::{
    catalog::Column,
    data::read::{ExportPlan, ManySeriesPlan, SeriesParents, TablePart},
    ids::OrganizationId,
    scalar::{DataType, Scalar, Values},
};
use labdata_ports::{
    PortError,
    data::parts::{PartSink, StreamError},
};

use super::{
    chunk::{Chunk, chunk_columns},
    conditions::{Bound, Query, conditions, filter},
    read_row::scalar,
};
use crate::database::{
    errors::table_error,
    pool::{Connection, Database},
    sql::{Schemas, ident, key_values, primary_key, primary_key_type, sql_type},
    transaction,
};

/// A read lasts as long as its receiver takes, which the caller limits.
const BEGIN: &str =
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0";

/// Maximum number of rows of a part.
const PART_ROWS: usize = 8192;

/// Stored size in bytes at which a part of rows ends.
const PART_BYTES: usize = 1 << 20;

/// A row, its values in the order of the select list.
struct Cells {
    cells: Vec<Option<Scalar>>,
    bytes: usize,
}

impl QueryableByName<Pg> for Cells {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> Read<Self> {
        let mut cells = Vec::with_capacity(row.field_count());
        let mut bytes = 0;
        for index in 0..row.field_count() {
            let field = Row::get(row, index).ok_or("a column is missing")?;
            let value = field.value();
            bytes += value.as_ref().map_or(0, |value| value.as_bytes().len());
            cells.push(value.map(scalar).transpose()?);
        }
        Ok(Self { cells, bytes })
    }
}

pub(super) async fn stream_series(
    database: &Database,
    organization: OrganizationId,
    plan: &ManySeriesPlan,
    mut sink: Box<dyn PartSink>,
) -> Result<(), StreamError> {
    let mut connection = begin(database, organization).await?;
    if let Some(missing) = missing_parent(&mut connection, organization, plan).await? {
        transaction::rollback(&mut connection).await;
        return Err(missing);
    }
    let query = series_query(organization, plan);
    connection.begin_rows();
    let mut chunks = query
        .prepared(organization)
        .load_stream::<Chunk>(&mut *connection)
        .await
        .map_err(table_error)?;
    while let Some(mut chunk) = chunks.try_next().await.map_err(table_error)? {
        let parent = chunk.take_parent();
        let (rows, bytes) = (chunk.points, chunk.bytes);
        let mut columns = values(
            plan.series_columns().map(|(_, column)| column.data_type),
            rows,
        );
        chunk.append_to(&plan.table, plan.series_columns(), &mut columns)?;
        let part = TablePart {
            parent,
            columns,
            rows,
            bytes,
        };
        sink.part(part).await?;
    }
    drop(chunks);
    finish(connection).await?;
    Ok(sink.end().await?)
}

pub(super) async fn export(
    database: &Database,
    organization: OrganizationId,
    plan: &ExportPlan,
    mut sink: Box<dyn PartSink>,
) -> Result<(), StreamError> {
    let mut connection = begin(database, organization).await?;
    connection.begin_rows();
    if plan.table.is_raw() {
        send_points(&mut connection, organization, plan, sink.as_mut()).await?;
    } else {
        send_rows(&mut connection, organization, plan, sink.as_mut()).await?;
    }
    finish(connection).await?;
    Ok(sink.end().await?)
}

async fn begin(database: &Database, organization: OrganizationId) -> Result<Connection, PortError> {
    let mut connection = database.of(organization).connection().await?;
    transaction::begin_with(&mut connection, BEGIN)
        .await
        .map_err(table_error)?;
    Ok(connection)
}

/// All rows were read. The connection is free before the receiver takes the end.
async fn finish(mut connection: Connection) -> Result<(), PortError> {
    connection.end_rows();
    transaction::commit(&mut connection)
        .await
        .map_err(table_error)
}

fn values(types: impl Iterator<Item = DataType>, rows: usize) -> Vec<Values> {
    types.map(|it| Values::with_capacity(it, rows)).collect()
}

async fn send_points(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &ExportPlan,
    sink: &mut dyn PartSink,
) -> Result<(), StreamError> {
    let table = &plan.table;
    let columns = || table.columns.iter().enumerate();
    let text = format!(
        "SELECT {} FROM {} c ORDER BY c._chunk",
        chunk_columns(table, None, columns()),
        Schemas::of(organization).chunk_table(&table.name),
    );
    let query = Query::of(text);
    let mut chunks = query
        .prepared(organization)
        .load_stream::<Chunk>(&mut **connection)
        .await
        .map_err(table_error)?;
    while let Some(chunk) = chunks.try_next().await.map_err(table_error)? {
        let (rows, bytes) = (chunk.points, chunk.bytes);
        let mut found = values(columns().map(|(_, column)| column.data_type), rows);
        chunk.append_to(table, columns(), &mut found)?;
        sink.part(part_of(found, rows, bytes)).await?;
    }
    Ok(())
}

async fn send_rows(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &ExportPlan,
    sink: &mut dyn PartSink,
) -> Result<(), StreamError> {
    let columns = plan.columns();
    let names = columns.iter().map(|column| ident(&column.field.sql_name));
    let text = format!(
        "SELECT {} FROM {}",
        names.collect::<Vec<_>>().join(", "),
        Schemas::of(organization).table(&plan.table.name),
    );
    let query = Query::of(text);
    let mut found = query
        .prepared(organization)
        .load_stream::<Cells>(&mut **connection)
        .await
        .map_err(table_error)?;
    let types = || columns.iter().map(|column| column.field.data_type);
    let (mut part, mut rows, mut bytes) = (values(types(), 0), 0, 0);
    while let Some(row) = found.try_next().await.map_err(table_error)? {
        for (values, cell) in part.iter_mut().zip(row.cells) {
            values.push_or_null(cell);
        }
        rows += 1;
        bytes += row.bytes;
        if rows >= PART_ROWS || bytes >= PART_BYTES {
            let full = std::mem::replace(&mut part, values(types(), rows));
            sink.part(part_of(full, rows, bytes)).await?;
            (rows, bytes) = (0, 0);
        }
    }
    if rows > 0 {
        sink.part(part_of(part, rows, bytes)).await?;
    }
    Ok(())
}

fn part_of(columns: Vec<Values>, rows: usize, bytes: usize) -> TablePart {
    TablePart {
        parent: None,
        columns,
        rows,
        bytes,
    }
}

/// The first parent without a row.
async fn missing_parent(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &ManySeriesPlan,
) -> Result<Option<StreamError>, PortError> {
    let SeriesParents::Keys(_) = &plan.parents else {
        return Ok(None);
    };
    let mut query = Query::default();
    let keys = wanted_keys(&mut query, plan);
    query.text = format!(
        "SELECT w.key FROM {keys} LEFT JOIN {parents} t ON t.{key} = w.key WHERE t.{key} IS NULL \
         ORDER BY w.n LIMIT 1",
        parents = Schemas::of(organization).table(&plan.parent_table.name),
        key = primary_key(&plan.parent_table),
    );
    let found: Vec<Cells> = query
        .prepared(organization)
        .load(&mut **connection)
        .await
        .map_err(table_error)?;
    let missing = found.into_iter().next();
    let missing = missing.and_then(|row| row.cells.into_iter().next()??.into_key());
    Ok(missing.map(StreamError::NoParent))
}

/// The keys of the plan as a table `w` of `key` and place `n`.
fn wanted_keys(query: &mut Query, plan: &ManySeriesPlan) -> String {
    let SeriesParents::Keys(keys) = &plan.parents else {
        return String::new();
    };
    let key_type = primary_key_type(&plan.parent_table);
    let keys = key_values(keys.iter().cloned(), key_type);
    let parameter = query.parameter(Bound::Values(keys));
    format!(
        "unnest({parameter}::{}[]) WITH ORDINALITY AS w(key, n)",
        sql_type(key_type)
    )
}

fn series_query(organization: OrganizationId, plan: &ManySeriesPlan) -> Query {
    let schemas = Schemas::of(organization);
    let mut query = Query::default();
    let key = format!("t.{}", primary_key(&plan.parent_table));
    let (parent, from, filter, place) = match &plan.parents {
        SeriesParents::Keys(_) => {
            let keys = wanted_keys(&mut query, plan);
            ("w.key", keys, String::new(), "w.n")
        }
        SeriesParents::Matching(matching) => {
            let column = |sql_name: &str| format!("t.{}", ident(sql_name));
            let conditions = conditions(&mut query, &schemas, matching, column);
            let parents = format!("{} t", schemas.table(&plan.parent_table.name));
            (key.as_str(), parents, filter(&conditions), key.as_str())
        }
    };
    query.text = format!(
        "SELECT {columns} FROM {from} LEFT JOIN {chunks} c ON c.{column} = {parent}{filter} ORDER BY {place}, c._chunk",
        columns = chunk_columns(&plan.table, Some(parent), plan.series_columns()),
        chunks = schemas.chunk_table(&plan.table.name),
        column = plan
            .parent()
            .map_or_else(String::new, |it: &Column| ident(&it.sql_name())),
    );
    query
}
