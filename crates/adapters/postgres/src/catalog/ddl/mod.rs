//! SQL that creates and alters an organization's tables.

mod alter;
mod drop;
mod raw;
mod trash;

use labdata_domain::{
    catalog::{Column, Table},
    scalar::{DataType, Scalar},
};

use self::raw::create_raw;
pub(crate) use self::{
    alter::{alter_table, inexact_values, rename, retype_recorded},
    drop::{drop_column, drop_table, holds_value},
    raw::{
        CHUNK_COLUMNS, CHUNK_ORDER, POINTS_PER_CHUNK, array_attribute, point_expression,
        points_from, stored_columns,
    },
    trash::{
        add_column_again, complete_changes, complete_column, copy_values, move_away, move_back,
        return_values,
    },
};
use crate::database::sql::{Schemas, ident, key_type, literal, sql_type};

/// Statements that create a table; for a raw one, the chunks and the view over them.
pub(crate) fn create_table(schemas: &Schemas, table: &Table) -> Vec<String> {
    if table.is_raw() {
        create_raw(schemas, table)
    } else {
        create_curated(schemas, table)
    }
}

fn create_curated(schemas: &Schemas, table: &Table) -> Vec<String> {
    let mut parts: Vec<String> = table.columns.iter().map(|it| curated_column(it)).collect();
    for column in table.system_columns() {
        let null = if column.is_nullable { "" } else { " NOT NULL" };
        let default = if column.data_type == DataType::Datetime {
            // The time of the transaction: all rows of a write have the same one.
            " DEFAULT now()"
        } else {
            ""
        };
        parts.push(format!(
            "{} {}{null}{default}",
            ident(column.name),
            sql_type(column.data_type)
        ));
    }
    let key = table.primary_key().map(|key| ident(&key.sql_name()));
    parts.extend(key.map(|key| format!("PRIMARY KEY ({key})")));
    let mut statements = vec![format!(
        "CREATE TABLE {} ({})",
        schemas.table(&table.name),
        parts.join(", ")
    )];
    for column in &table.columns {
        statements.extend(add_constraints(schemas, table, column));
    }
    statements.extend(
        table
            .unique_together
            .iter()
            .map(|group| add_unique_together(schemas, table, group)),
    );
    // For reverts, which look for the rows that an execution created.
    statements.push(format!(
        "CREATE INDEX ON {} (created_by_execution_id)",
        schemas.table(&table.name)
    ));
    statements
}

fn curated_column(column: &Column) -> String {
    let name = ident(&column.sql_name());
    // A reference is compared with the key that it points at, and needs its collation for that.
    let data_type = if column.is_primary_key || column.references.is_some() {
        key_type(column.data_type)
    } else {
        sql_type(column.data_type).to_owned()
    };
    let null = if column.is_nullable { "" } else { " NOT NULL" };
    format!("{name} {data_type}{null}{}", default_clause(column))
}

fn default_clause(column: &Column) -> String {
    column
        .default_value()
        .map(|scalar| format!(" DEFAULT {}", scalar_literal(&scalar)))
        .unwrap_or_default()
}

pub(crate) fn scalar_literal(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text(text) => literal(text),
        Scalar::Json(value) => format!("{}::jsonb", literal(&value.to_string())),
        Scalar::Integer(number) => format!("'{number}'::bigint"),
        Scalar::Float(number) => format!("'{number}'::double precision"),
        Scalar::Boolean(flag) => flag.to_string(),
        other => literal(other.to_json().as_str().unwrap_or_default()),
    }
}

/// Uniqueness and reference of a column; the primary key is unique already.
fn add_constraints(schemas: &Schemas, table: &Table, column: &Column) -> Vec<String> {
    let mut statements = Vec::new();
    if column.is_unique && !column.is_primary_key {
        statements.push(add_unique(schemas, table, column));
    }
    if let Some(target) = &column.references {
        statements.push(add_reference(schemas, table, column, target));
        // PostgreSQL does not index references, and deletes look for rows by them. A unique one has an index.
        if !column.is_unique {
            statements.push(format!(
                "CREATE INDEX ON {} ({})",
                schemas.table(&table.name),
                ident(&column.sql_name())
            ));
        }
    }
    statements
}

/// The statement that makes a column reference another table.
pub(crate) fn add_reference(
    schemas: &Schemas,
    table: &Table,
    column: &Column,
    target: &str,
) -> String {
    let behavior = if table.is_raw() {
        // A series never outlives its parent, whichever statement deletes it.
        "ON DELETE CASCADE"
    } else {
        // Deferrable, so that a delete can check the references of all its rows once, at its end.
        "DEFERRABLE INITIALLY IMMEDIATE"
    };
    format!(
        "ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {} {behavior}",
        stored_table(schemas, table),
        ident(&column.sql_name()),
        schemas.table(target),
    )
}

fn add_unique(schemas: &Schemas, table: &Table, column: &Column) -> String {
    format!(
        // Deferrable: a revert gives several rows their earlier values, in any order.
        "ALTER TABLE {} ADD UNIQUE ({}) DEFERRABLE",
        schemas.table(&table.name),
        ident(&column.sql_name())
    )
}

fn add_unique_together(schemas: &Schemas, table: &Table, group: &[String]) -> String {
    format!(
        // Deferrable: a revert gives several rows their earlier values, in any order.
        "ALTER TABLE {} ADD UNIQUE ({}) DEFERRABLE",
        schemas.table(&table.name),
        sql_names(table, group).join(", ")
    )
}

fn sql_names(table: &Table, names: &[String]) -> Vec<String> {
    names
        .iter()
        .filter_map(|name| table.column(name))
        .map(|column| ident(&column.sql_name()))
        .collect()
}

/// Drops the unique constraint over exactly these columns.
fn drop_unique(schemas: &Schemas, table: &Table, names: &[String]) -> String {
    let wanted: Vec<String> = names
        .iter()
        .filter_map(|name| table.column(name))
        .map(|column| literal(&column.sql_name()))
        .collect();
    format!(
        // By its columns: the constraint's name is PostgreSQL's choice, and renames may leave an older one.
        "DO $drop$ DECLARE found name; BEGIN \
         SELECT c.conname INTO found FROM pg_constraint c \
         WHERE c.conrelid = {relation}::regclass AND c.contype = 'u' AND \
         (SELECT array_agg(a.attname::text ORDER BY a.attname::text) FROM unnest(c.conkey) k \
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k) = \
         (SELECT array_agg(n ORDER BY n) FROM unnest(ARRAY[{wanted}]::text[]) n) LIMIT 1; \
         IF found IS NOT NULL THEN EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', found); END IF; \
         END $drop$",
        relation = literal(&schemas.table(&table.name)),
        wanted = wanted.join(", "),
        table = schemas.table(&table.name),
    )
}

/// The table that stores rows or chunks.
pub(crate) fn stored_table(schemas: &Schemas, table: &Table) -> String {
    if table.is_raw() {
        schemas.chunk_table(&table.name)
    } else {
        schemas.table(&table.name)
    }
}
