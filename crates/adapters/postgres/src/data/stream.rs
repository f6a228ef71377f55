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
    catalog::{KeyedTable, Table},
    data::read::{ExportPlan, ManySeriesPlan, SeriesParents, TablePart},
    ids::OrganizationId,
    scalar::{DataType, KeyValue, Scalar, Values},
};
use labdata_ports::{
    PortError,
    data::parts::{PartSink, StreamError},
};

use super::{
    as_of::{AsOf, rows_of},
    chunk::{Chunk, ChunkColumns},
    conditions::{Bound, Query, conditions, filter},
    read_row::scalar,
};
use crate::database::{
    errors::{Fault, NO_ANSWER, table_error},
    names::TableNames,
    pool::{Connection, Database},
    sql::{Schemas, ident},
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
    // In the transaction of the read, whose snapshot is taken here: a parent that is found cannot
    // be missing below.
    if let Some(missing) = missing_parent(&mut connection, organization, plan).await? {
        transaction::rollback(&mut connection).await;
        return Err(missing);
    }
    let chunk_columns = ChunkColumns::of(&plan.owner.table, &plan.columns);
    let query = series_query(organization, plan, &chunk_columns);
    // Until the last row is read the connection cannot be used again: one that is dropped in
    // between is closed, not returned to the pool.
    connection.begin_rows();
    let mut chunks = query
        .prepared(organization)
        .load_stream::<Chunk>(&mut *connection)
        .await
        .map_err(table_error)?;
    while let Some(mut chunk) = chunks.try_next().await.map_err(table_error)? {
        // A chunk is one part: memory holds no more than one chunk of a series of any length.
        let parent = chunk.take_parent();
        let (rows, bytes) = (chunk.points, chunk.bytes);
        let mut columns = chunk_columns.with_capacity(rows);
        chunk_columns.append(chunk, &mut columns)?;
        let part = TablePart {
            parent,
            columns,
            rows,
            bytes,
        };
        sink.part(part).await?;
    }
    drop(chunks);
    // The receiver may take its time for the end; the connection is free before.
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
    match transaction::commit(&mut connection).await {
        Ok(()) => Ok(()),
        Err(Fault::Database(error)) => Err(table_error(error)),
        // Nothing was changed that could be unknown.
        Err(Fault::Port(_)) => Err(PortError::Unavailable(NO_ANSWER.to_owned())),
    }
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
    let columns = ChunkColumns::of(table, &table.columns);
    let (mut query, schemas) = (Query::default(), Schemas::of(organization));
    let as_of = plan.as_of.map(|at| AsOf::bind(&mut query, at));
    query.text = format!(
        // By chunk: the order of writing, and the index that a scan of whole chunks reads along.
        "SELECT {} FROM {} c ORDER BY c._chunk",
        columns.select_list(None),
        chunks_of(as_of.as_ref(), &schemas, table),
    );
    let mut chunks = query
        .prepared(organization)
        .load_stream::<Chunk>(&mut **connection)
        .await
        .map_err(table_error)?;
    while let Some(chunk) = chunks.try_next().await.map_err(table_error)? {
        let (rows, bytes) = (chunk.points, chunk.bytes);
        let mut found = columns.with_capacity(rows);
        columns.append(chunk, &mut found)?;
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
    let (mut query, schemas) = (Query::default(), Schemas::of(organization));
    let as_of = plan.as_of.map(|at| AsOf::bind(&mut query, at));
    let rows = match KeyedTable::of(&plan.table) {
        Some(table) => rows_of(as_of.as_ref(), &schemas, &table),
        None => schemas.table(&plan.table.name),
    };
    query.text = format!(
        "SELECT {} FROM {rows} t",
        names.collect::<Vec<_>>().join(", "),
    );
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
        // By size as well as by number: a row may hold a whole document.
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
    // Parents that meet conditions exist.
    let SeriesParents::Keys(keys) = &plan.parents else {
        return Ok(None);
    };
    let mut query = Query::default();
    let schemas = Schemas::of(organization);
    let parents = schemas.names(&plan.owner.parent);
    let as_of = plan.as_of.map(|at| AsOf::bind(&mut query, at));
    let keys = wanted_keys(&mut query, &parents, keys);
    let owner = &plan.owner;
    // Whether a row of a hidden table exists shows only by its points.
    let (known, key) = if owner.is_parent_hidden {
        let chunks = chunks_of(as_of.as_ref(), &schemas, &owner.table);
        (chunks, schemas.chunk_names(owner).owner)
    } else {
        let rows = rows_of(as_of.as_ref(), &schemas, &owner.parent);
        (rows, parents.key.clone())
    };
    query.text = format!(
        "SELECT w.key FROM {keys} WHERE NOT EXISTS (SELECT FROM {known} t WHERE t.{key} = w.key) \
         ORDER BY w.n LIMIT 1",
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

/// Keys as a table `w` of `key` and place `n`.
fn wanted_keys(query: &mut Query, parents: &TableNames<'_>, keys: &[KeyValue]) -> String {
    let parameter = query.parameter(Bound::Values(parents.key_values(keys)));
    format!(
        "unnest({parameter}::{}[]) WITH ORDINALITY AS w(key, n)",
        parents.key_type
    )
}

fn series_query(
    organization: OrganizationId,
    plan: &ManySeriesPlan,
    columns: &ChunkColumns<'_>,
) -> Query {
    let schemas = Schemas::of(organization);
    let names = schemas.chunk_names(&plan.owner);
    let parents = &names.parents;
    let mut query = Query::default();
    let as_of = plan.as_of.map(|at| AsOf::bind(&mut query, at));
    let as_of = as_of.as_ref();
    let key = format!("t.{}", parents.key);
    let (parent, from, filter, place) = match &plan.parents {
        SeriesParents::Keys(keys) => {
            let keys = wanted_keys(&mut query, parents, keys);
            ("w.key", keys, String::new(), "w.n")
        }
        SeriesParents::Matching(matching) => {
            let column = |sql_name: &str| format!("t.{}", ident(sql_name));
            let conditions = conditions(&mut query, &schemas, as_of, matching, column);
            let from = if plan.owner.is_parent_hidden {
                // Only rows that own points, which show their keys.
                let chunks = chunks_of(as_of, &schemas, &plan.owner.table);
                format!(
                    "(SELECT DISTINCT o.{} AS {} FROM {chunks} o) t",
                    names.owner, parents.key
                )
            } else {
                format!("{} t", rows_of(as_of, &schemas, &plan.owner.parent))
            };
            (key.as_str(), from, filter(&conditions), key.as_str())
        }
    };
    // LEFT: a parent without a series has one part without points.
    query.text = format!(
        "SELECT {columns} FROM {from} LEFT JOIN {chunks} c ON c.{owner} = {parent}{filter} ORDER BY {place}, c._chunk",
        columns = columns.select_list(Some(parent)),
        chunks = chunks_of(as_of, &schemas, &plan.owner.table),
        owner = names.owner,
    );
    query
}

/// The source of a raw table's chunks, as they stood if a moment is given.
fn chunks_of(as_of: Option<&AsOf>, schemas: &Schemas, table: &Table) -> String {
    as_of.map_or_else(
        || schemas.chunk_table(&table.name),
        |as_of| as_of.chunks(schemas, table),
    )
}
