//! SQL that drops columns and tables.

use labdata_domain::catalog::{Column, ColumnRef, Table};

use super::{
    raw::{create_view, stored_columns},
    stored_table,
};
use crate::database::sql::{Schemas, ident, sql_type};

/// Statements that drop a column with its constraints.
pub(crate) fn drop_column(schemas: &Schemas, table: &Table, column: &ColumnRef) -> Vec<String> {
    let drop = format!(
        "ALTER TABLE {} DROP COLUMN {}",
        stored_table(schemas, table),
        ident(&column.sql_name())
    );
    if !table.is_raw() {
        return vec![drop];
    }
    let rest = Table {
        columns: table.columns.without(column),
        ..table.clone()
    };
    // The view first: PostgreSQL does not drop a column that a view reads.
    let mut statements = vec![format!("DROP VIEW {}", schemas.table(&table.name)), drop];
    statements.extend(keep_points(schemas, &rest));
    statements.push(create_view(schemas, &rest));
    statements
}

/// Stores nulls for points that have no values left: the view shows as many points as arrays have
/// elements.
fn keep_points(schemas: &Schemas, table: &Table) -> Option<String> {
    let values = || stored_columns(table).filter(|column| column.references.is_none());
    // One column suffices: `unnest` extends the shorter arrays with nulls.
    let first = values().next()?;
    let none = values().map(|column| format!("{} IS NULL", ident(&column.sql_name())));
    Some(format!(
        "UPDATE {} SET {} = array_fill(NULL::{}, ARRAY[_points]) WHERE {}",
        schemas.chunk_table(&table.name),
        ident(&first.sql_name()),
        sql_type(first.data_type),
        none.collect::<Vec<_>>().join(" AND ")
    ))
}

/// Condition of a stored row or chunk that has a value in a column.
pub(crate) fn holds_value(table: &Table, column: &Column) -> String {
    let name = ident(&column.sql_name());
    if table.is_raw() && column.references.is_none() {
        // A chunk without any value may store an array of nulls.
        format!("cardinality(array_remove({name}, NULL)) > 0")
    } else {
        format!("{name} IS NOT NULL")
    }
}

/// Statements that drop a table.
pub(crate) fn drop_table(schemas: &Schemas, table: &Table) -> Vec<String> {
    if table.is_raw() {
        vec![
            format!("DROP VIEW {}", schemas.table(&table.name)),
            format!("DROP TABLE {}", schemas.chunk_table(&table.name)),
        ]
    } else {
        vec![format!("DROP TABLE {}", schemas.table(&table.name))]
    }
}
