//! SQL that moves tables and values of columns into the trash and back.

use labdata_domain::catalog::{Column, Table};

use super::{
    add_constraints, add_reference, curated_column,
    raw::{create_view, index_of_reference, raw_column, store_plainly},
    stored_table,
};
use crate::database::sql::{Schemas, ident, literal};

/// Statements that move a table out of the organization's schemas, without its references to other tables: what
/// nobody sees holds up no deletion there.
pub(crate) fn move_away(schemas: &Schemas, table: &Table, schema: &str) -> Vec<String> {
    let stored = stored_table(schemas, table);
    let mut statements = Vec::new();
    if table.is_raw() {
        statements.push(format!("DROP VIEW {}", schemas.table(&table.name)));
    }
    statements.push(format!(
        "DO $drop$ DECLARE found name; BEGIN \
         FOR found IN SELECT conname FROM pg_catalog.pg_constraint \
             WHERE conrelid = {relation}::regclass AND contype = 'f' AND confrelid <> conrelid LOOP \
             EXECUTE format('ALTER TABLE {stored} DROP CONSTRAINT %I', found); \
         END LOOP; END $drop$",
        relation = literal(&stored),
    ));
    statements.push(format!("ALTER TABLE {stored} SET SCHEMA {schema}"));
    statements
}

/// Statements that move a table back, after [`move_away`].
pub(crate) fn move_back(schemas: &Schemas, table: &Table, schema: &str) -> Vec<String> {
    let home = if table.is_raw() {
        schemas.chunks()
    } else {
        schemas.tables()
    };
    let name = ident(&table.sql_name());
    let mut statements = vec![format!("ALTER TABLE {schema}.{name} SET SCHEMA {home}")];
    let references = table.references();
    statements.extend(
        references
            .filter(|(_, target)| *target != table.name)
            .map(|(column, target)| add_reference(schemas, table, column, target)),
    );
    if table.is_raw() {
        statements.push(create_view(schemas, table));
    } else {
        // A role for queries that was made since the table was dropped has no right on it yet. Views are new, and
        // get the default privileges by themselves.
        statements.push(format!(
            "DO $grant$ DECLARE reader text; BEGIN \
             FOR reader IN SELECT a.grantee::regrole::text FROM pg_catalog.pg_default_acl d, \
                 pg_catalog.aclexplode(d.defaclacl) a \
                 WHERE d.defaclnamespace = {namespace}::regnamespace AND d.defaclobjtype = 'r' \
                 AND a.privilege_type = 'SELECT' AND a.grantee <> 0 LOOP \
                 EXECUTE format('GRANT SELECT ON {home}.{name} TO %s', reader); \
             END LOOP; END $grant$",
            namespace = literal(home),
        ));
    }
    statements
}

/// Statements that copy a column's values, by the keys of rows or chunks, into a table of `_key` and `_value`.
/// Rows without a value are among them, which tells them from rows that are added later.
pub(crate) fn copy_values(
    schemas: &Schemas,
    table: &Table,
    column: &Column,
    copy: &str,
) -> Option<String> {
    Some(format!(
        "CREATE TABLE {copy} AS SELECT {} AS _key, {} AS _value FROM {}",
        stored_key(table)?,
        ident(&column.sql_name()),
        stored_table(schemas, table),
    ))
}

/// Statements that add a dropped column with its values of then. Rows that were added since have its default.
/// It may be null, and has no constraints yet.
pub(crate) fn add_values(
    schemas: &Schemas,
    table: &Table,
    column: &Column,
    copy: &str,
) -> Option<Vec<String>> {
    let stored = stored_table(schemas, table);
    let (name, key) = (ident(&column.sql_name()), stored_key(table)?);
    let mut statements = Vec::new();
    if table.is_raw() {
        statements.push(format!("DROP VIEW {}", schemas.table(&table.name)));
    }
    let nullable = Column {
        is_nullable: true,
        ..column.clone()
    };
    let definition = if table.is_raw() {
        raw_column(schemas, &nullable)
    } else {
        curated_column(&nullable)
    };
    statements.push(format!("ALTER TABLE {stored} ADD COLUMN {definition}"));
    if table.is_raw() {
        statements.extend(store_plainly(schemas, table, column));
    }
    statements.push(format!(
        // As texts: the key may have another type by now.
        "UPDATE {stored} AS t SET {name} = c._value FROM {copy} AS c \
         WHERE c._key::text = t.{key}::text AND t.{name} IS DISTINCT FROM c._value"
    ));
    Some(statements)
}

/// Statements that complete a column after [`add_values`], in the table that has it.
pub(crate) fn complete_column(schemas: &Schemas, table: &Table, column: &Column) -> Vec<String> {
    let stored = stored_table(schemas, table);
    let mut statements = Vec::new();
    let is_array = table.is_raw() && column.references.is_none();
    if !column.is_nullable && !is_array {
        statements.push(format!(
            "ALTER TABLE {stored} ALTER COLUMN {} SET NOT NULL",
            ident(&column.sql_name())
        ));
    }
    if table.is_raw() {
        if column.references.is_some() {
            statements.push(index_of_reference(schemas, table, column));
        }
        statements.push(create_view(schemas, table));
    } else {
        statements.extend(add_constraints(schemas, table, column));
    }
    statements
}

/// The column that identifies a stored row or chunk.
fn stored_key(table: &Table) -> Option<String> {
    if table.is_raw() {
        return Some("_chunk".to_owned());
    }
    table.primary_key().map(|key| ident(&key.sql_name()))
}
