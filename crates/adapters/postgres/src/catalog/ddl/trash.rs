//! SQL that moves tables and values of columns into the trash and back.

use labdata_domain::{
    catalog::{Column, Table},
    ids::OrganizationId,
};

use super::{
    add_constraints, add_reference, curated_column,
    raw::{create_view, index_of_reference, raw_column, store_plainly},
    stored_table,
};
use crate::database::sql::{Schemas, ident, literal};

/// Statements that move a table out of the organization's schemas, without its references to other tables: a table
/// that is not visible there holds up no deletion.
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

/// Statements that copy a column's values, by the keys of rows or chunks, into a table of `_key` and `_value`, and of rows
/// the time of their creation. Rows without a value are among them, which tells them from rows that are added later.
pub(crate) fn copy_values(
    schemas: &Schemas,
    table: &Table,
    column: &Column,
    copy: &str,
) -> Option<String> {
    Some(format!(
        "CREATE TABLE {copy} AS SELECT {} AS _key, {} AS _value, {} AS _since FROM {}",
        stored_key(table)?,
        ident(&column.sql_name()),
        if table.is_raw() {
            // A chunk is never written again under its number.
            "NULL::timestamptz"
        } else {
            "created_at"
        },
        stored_table(schemas, table),
    ))
}

/// Statements that add a dropped column, with its default in rows. It may be null, and has no constraints yet.
pub(crate) fn add_column_again(schemas: &Schemas, table: &Table, column: &Column) -> Vec<String> {
    let stored = stored_table(schemas, table);
    let mut statements = Vec::new();
    if table.is_raw() {
        statements.push(format!("DROP VIEW {}", schemas.table(&table.name)));
    }
    // Rows get their values after this, and those of the meantime may have none: `complete_column` sets NOT NULL.
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
    statements
}

/// Statements that give rows or chunks their values again, after [`add_column_again`]. `schema` is that of the entry, and
/// `last_change` the number of the last recorded change before the drop.
///
/// A row has the value that it had when the column was dropped, or when it was deleted before that, for as long as it was
/// neither created again nor deleted: `_changes` marks each later change of another row.
pub(crate) fn return_values(
    schemas: &Schemas,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
    last_change: i64,
) -> Option<Vec<String>> {
    let stored = stored_table(schemas, table);
    let (name, key) = (ident(&column.sql_name()), stored_key(table)?);
    let created_at = if table.is_raw() {
        "NULL::timestamptz"
    } else {
        "t.created_at"
    };
    let existing = format!(
        // As texts: the key may have another type by now. The time of creation tells where no changes are recorded.
        "UPDATE {stored} AS t SET {name} = v._value FROM {schema}._values v \
             LEFT JOIN {schema}._changes c ON c.row_id = v._key::text AND c.is_last \
         WHERE v._key::text = t.{key}::text AND t.{name} IS DISTINCT FROM v._value \
         AND CASE WHEN c.row_id IS NULL THEN coalesce(v._since = {created_at}, true) \
             ELSE NOT c.is_another AND c.action <> 'deleted' END"
    );
    let returned = format!(
        // Rows that were deleted before the drop, and restored since.
        "UPDATE {stored} AS t SET {name} = p.{name} FROM {schema}._changes c \
             JOIN {schema}._last l ON l.row_id = c.row_id AND NOT l.existed \
             CROSS JOIN LATERAL jsonb_populate_record(NULL::{stored}, jsonb_build_object({literal}, l.value)) p \
         WHERE c.is_last AND NOT c.is_another AND c.action <> 'deleted' AND c.row_id = t.{key}::text",
        literal = literal(&column.sql_name()),
    );
    Some(vec![
        // Earlier versions of the program did not copy it.
        format!("ALTER TABLE {schema}._values ADD COLUMN IF NOT EXISTS _since timestamptz"),
        changes_since(organization, table, schema, last_change),
        last_values(schema),
        existing,
        returned,
    ])
}

/// The statement that finds the changes recorded since a column was dropped, and which are of another row of the same key.
fn changes_since(
    organization: OrganizationId,
    table: &Table,
    schema: &str,
    last_change: i64,
) -> String {
    format!(
        // A creation is not recorded: behind a deletion it is seen by the row that the next change found.
        "CREATE TABLE {schema}._changes AS SELECT row_id, id, action, existed, is_last, \
             bool_or(existed AND (coalesce(previous = 'deleted', false) OR is_first AND v._key IS NULL)) \
                 OVER (PARTITION BY row_id ORDER BY id) AS is_another \
         FROM (SELECT row_id, id, action, before IS NOT NULL AS existed, lag(action) OVER w AS previous, \
                 row_number() OVER w = 1 AS is_first, lead(id) OVER w IS NULL AS is_last \
             FROM labdata.row_change WHERE organization_id = {organization}::uuid AND table_name = {table} \
             AND id > {last_change} WINDOW w AS (PARTITION BY row_id ORDER BY id)) c \
         LEFT JOIN {schema}._values v ON v._key::text = c.row_id",
        organization = literal(&organization.to_string()),
        table = literal(&table.name),
    )
}

/// The statement that finds the last values of rows that changed since a column was dropped.
fn last_values(schema: &str) -> String {
    format!(
        "CREATE TABLE {schema}._last AS SELECT c.row_id, to_jsonb(v._value) AS value, true AS existed \
             FROM {schema}._changes c JOIN {schema}._values v ON v._key::text = c.row_id WHERE c.is_last \
         UNION ALL SELECT c.row_id, h.value, false FROM {schema}._changes c \
             JOIN (SELECT DISTINCT ON (row_id) row_id, value FROM {schema}._history ORDER BY row_id, id DESC) h \
                 ON h.row_id = c.row_id \
             WHERE c.is_last AND NOT EXISTS (SELECT FROM {schema}._values v WHERE v._key::text = c.row_id)"
    )
}

/// The statement that completes recorded changes since a column was dropped with its values, after [`return_values`].
pub(crate) fn complete_changes(
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> String {
    format!(
        "UPDATE labdata.row_change it SET before = (it.before::jsonb || jsonb_build_object({}, l.value))::json \
         FROM {schema}._changes c JOIN {schema}._last l ON l.row_id = c.row_id \
         WHERE it.organization_id = {}::uuid AND it.table_name = {} AND it.row_id = c.row_id AND it.id = c.id \
         AND c.existed AND NOT c.is_another",
        literal(&column.sql_name()),
        literal(&organization.to_string()),
        literal(&table.name),
    )
}

/// Statements that complete a column after [`add_column_again`], in the table that has it.
pub(crate) fn complete_column(schemas: &Schemas, table: &Table, column: &Column) -> Vec<String> {
    let stored = stored_table(schemas, table);
    let mut statements = Vec::new();
    // Nulls of values are within arrays, which no constraint of the chunks sees.
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
