//! Chunks of raw tables, and the views that show their points.

use labdata_domain::{
    catalog::{Column, ColumnRef, Table},
    scalar::DataType,
};

use crate::database::sql::{Schemas, ident, key_type, sql_type};

/// Maximum number of points of a chunk: arrays of this length are read whole, and the row around
/// them costs little.
pub(crate) const POINTS_PER_CHUNK: u16 = 4096;

/// The columns that a chunk has beside those of its table and [`CHUNK_ORDER`].
pub(crate) const CHUNK_COLUMNS: [&str; 5] =
    ["_chunk", "_execution", "_written_at", "_points", "_start"];

/// The places of a chunk's points, unless they are consecutive.
pub(crate) const CHUNK_ORDER: &str = "_order";

/// The view's column that identifies a point, unless the table has a column of that name.
const POINT_ID: &str = "id";

/// The view's column of the execution that wrote the point's series.
const EXECUTION: &str = "created_by_execution_id";

pub(super) fn create_raw(schemas: &Schemas, table: &Table) -> Vec<String> {
    let mut parts = vec![
        // Names begin with an underscore, which columns of organizations do not.
        "_chunk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY".to_owned(),
        "_execution uuid".to_owned(),
        // The default is for servers of the version before, during an upgrade.
        "_written_at timestamptz DEFAULT now()".to_owned(),
        "_points integer NOT NULL".to_owned(),
        "_start bigint NOT NULL".to_owned(),
        "_order bigint[]".to_owned(),
    ];
    for column in stored_columns(table) {
        parts.push(raw_column(schemas, column));
    }
    let mut statements = vec![format!(
        "CREATE TABLE {} ({})",
        schemas.chunk_table(&table.name),
        parts.join(", ")
    )];
    for column in stored_columns(table) {
        statements.extend(store_plainly(schemas, table, column));
    }
    for (column, _) in table.references() {
        statements.push(index_of_reference(schemas, table, column));
    }
    // For reverts, which look for the series that an execution wrote.
    statements.push(format!(
        "CREATE INDEX ON {} (_execution)",
        schemas.chunk_table(&table.name)
    ));
    statements.push(create_view(schemas, table));
    statements
}

/// Stores arrays of numbers uncompressed: measured values hardly compress, and trying takes a third
/// of a write's time.
pub(super) fn store_plainly(schemas: &Schemas, table: &Table, column: &Column) -> Option<String> {
    array_attribute(column).map(|_| {
        format!(
            "ALTER TABLE {} ALTER COLUMN {} SET STORAGE EXTERNAL",
            schemas.chunk_table(&table.name),
            ident(&column.sql_name())
        )
    })
}

/// The attribute of `labdata.named_array` for a column of a chunk, if that is an array of numbers or the like. Texts and
/// documents repeat themselves, so PostgreSQL's compression pays for them: they are none.
pub(crate) fn array_attribute(column: &Column) -> Option<&'static str> {
    if column.references.is_some() {
        return None;
    }
    match column.data_type {
        DataType::Integer => Some("integers"),
        DataType::Float => Some("floats"),
        DataType::Boolean => Some("booleans"),
        DataType::Datetime => Some("datetimes"),
        DataType::Date => Some("dates"),
        DataType::Uuid => Some("uuids"),
        DataType::String | DataType::Text | DataType::Json => None,
    }
}

/// The columns that a raw table's chunks store as arrays: all but the order column.
pub(crate) fn stored_columns(table: &Table) -> impl Iterator<Item = &ColumnRef> {
    let order = table.order_column();
    table
        .columns
        .iter()
        .filter(move |column| Some(*column) != order)
}

pub(super) fn raw_column(schemas: &Schemas, column: &Column) -> String {
    let name = ident(&column.sql_name());
    match &column.references {
        Some(target) => {
            let null = if column.is_nullable { "" } else { " NOT NULL" };
            format!(
                // A series never outlives its parent, whichever statement deletes it.
                "{name} {}{null} REFERENCES {} ON DELETE CASCADE",
                key_type(column.data_type),
                schemas.table(target)
            )
        }
        None => format!("{name} {}[]", sql_type(column.data_type)),
    }
}

pub(super) fn index_of_reference(schemas: &Schemas, table: &Table, column: &Column) -> String {
    format!(
        "CREATE INDEX ON {} ({})",
        schemas.chunk_table(&table.name),
        ident(&column.sql_name())
    )
}

/// The points of a raw table's chunks, as a FROM item list: `c` is the chunk, `p` the point with
/// its place `_place` (from 1) and one column `v<n>` per column of values.
///
/// # Arguments
/// `chunks` is the table of the chunks, or an item of FROM with its columns.
pub(crate) fn points_from(chunks: &str, table: &Table) -> String {
    let values: Vec<(usize, &ColumnRef)> = stored_columns(table)
        .filter(|column| column.references.is_none())
        .enumerate()
        .collect();
    let arrays: Vec<String> = values
        .iter()
        .map(|(_, column)| format!("c.{}", ident(&column.sql_name())))
        .collect();
    let names: Vec<String> = values
        .iter()
        .map(|(index, _)| format!("v{index}"))
        .collect();
    format!(
        "{chunks} AS c CROSS JOIN LATERAL unnest({}) WITH ORDINALITY AS p({}, _place)",
        arrays.join(", "),
        names.join(", ")
    )
}

/// The expression for a column of a raw table over [`points_from`].
pub(crate) fn point_expression(table: &Table, sql_name: &str) -> String {
    if table
        .order_column()
        .is_some_and(|column| column.sql_name() == sql_name)
    {
        // A series whose order is consecutive stores its first number only, and no array.
        return "coalesce(c._order[p._place], c._start + p._place - 1)".to_owned();
    }
    if table.column(sql_name).is_none() && sql_name == EXECUTION {
        return "c._execution".to_owned();
    }
    let values = stored_columns(table).filter(|column| column.references.is_none());
    match values
        .enumerate()
        .find(|(_, column)| column.sql_name() == sql_name)
    {
        Some((index, _)) => format!("p.v{index}"),
        // A reference: one value for all points of the chunk.
        None => format!("c.{}", ident(sql_name)),
    }
}

pub(super) fn create_view(schemas: &Schemas, table: &Table) -> String {
    let mut columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let sql_name = column.sql_name();
            format!(
                "{} AS {}",
                point_expression(table, &sql_name),
                ident(&sql_name)
            )
        })
        .collect();
    if table
        .columns
        .iter()
        .all(|column| column.sql_name() != POINT_ID)
    {
        columns.push(format!(
            // Unique because no chunk has more points. It needs no room, and is stable while the series is.
            "c._chunk * {POINTS_PER_CHUNK} + p._place - 1 AS {}",
            ident(POINT_ID)
        ));
    }
    columns.push(format!("c._execution AS {EXECUTION}"));
    format!(
        "CREATE VIEW {} AS SELECT {} FROM {}",
        schemas.table(&table.name),
        columns.join(", "),
        points_from(&schemas.chunk_table(&table.name), table)
    )
}
