//! SQL that creates and alters an organization's tables.

use labdata_domain::{
    catalog::{Alteration, Column, ColumnChange, ColumnRef, MAX_INEXACT_VALUES, Table, sql_name},
    scalar::{DataType, Scalar},
};

use super::constraints::{rename_constraints, rename_constraints_of_table};
use crate::database::sql::{Schemas, ident, key_type, literal, rendered, sql_type};

/// Maximum number of points of a chunk: arrays of this length are read whole, and the row around
/// them costs little.
pub(crate) const POINTS_PER_CHUNK: u16 = 4096;

/// The view's column that identifies a point, unless the table has a column of that name.
const POINT_ID: &str = "id";

/// The view's column of the execution that wrote the point's series.
const EXECUTION: &str = "created_by_execution_id";

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

fn create_raw(schemas: &Schemas, table: &Table) -> Vec<String> {
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
fn store_plainly(schemas: &Schemas, table: &Table, column: &Column) -> Option<String> {
    // Texts and documents repeat themselves, so PostgreSQL's compression pays for them.
    let compressible = matches!(
        column.data_type,
        DataType::String | DataType::Text | DataType::Json
    );
    (column.references.is_none() && !compressible).then(|| {
        format!(
            "ALTER TABLE {} ALTER COLUMN {} SET STORAGE EXTERNAL",
            schemas.chunk_table(&table.name),
            ident(&column.sql_name())
        )
    })
}

/// The columns that a raw table's chunks store as arrays: all but the order column.
pub(crate) fn stored_columns(table: &Table) -> impl Iterator<Item = &ColumnRef> {
    let order = table.order_column();
    table
        .columns
        .iter()
        .filter(move |column| Some(*column) != order)
}

fn raw_column(schemas: &Schemas, column: &Column) -> String {
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

fn index_of_reference(schemas: &Schemas, table: &Table, column: &Column) -> String {
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

fn create_view(schemas: &Schemas, table: &Table) -> String {
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

/// Statements that rename a table and its columns, as a checked change asks. All other statements use
/// the new names.
pub(crate) fn rename(schemas: &Schemas, alteration: &Alteration) -> Vec<String> {
    let after = &alteration.after;
    let stored = stored_table(schemas, after);
    let mut statements = Vec::new();
    if let Some(former) = &alteration.former_name {
        statements.extend(rename_table(schemas, after, former));
    }
    for rename in &alteration.renamed {
        let (from, to) = (rename.before.sql_name(), rename.after.sql_name());
        // `user` is `user_` in SQL already.
        if from == to {
            continue;
        }
        statements.push(format!(
            "ALTER TABLE {stored} RENAME COLUMN {} TO {}",
            ident(&from),
            ident(&to)
        ));
        // PostgreSQL renames the column within constraints, but leaves the constraints' own names.
        statements.push(rename_constraints(&stored, &to));
    }
    statements
}

/// Statements that alter a table once it has its new names ([`rename`]), as a checked change asks.
pub(crate) fn alter_table(schemas: &Schemas, alteration: &Alteration) -> Vec<String> {
    let Alteration {
        before,
        after,
        added,
        changed,
        together_added,
        together_removed,
        ..
    } = alteration;
    if after.is_raw() {
        return alter_raw(schemas, alteration);
    }
    let stored = stored_table(schemas, after);
    let mut statements = Vec::new();
    for column in added {
        statements.push(format!(
            "ALTER TABLE {stored} ADD COLUMN {}",
            curated_column(column)
        ));
        statements.extend(add_constraints(schemas, after, column));
    }
    for change in changed {
        statements.extend(alter_column(schemas, after, change));
    }
    statements.extend(
        together_removed
            .iter()
            .map(|group| drop_unique(schemas, before, group)),
    );
    statements.extend(
        together_added
            .iter()
            .map(|group| add_unique_together(schemas, after, group)),
    );
    statements
}

/// Statements that give a table another name.
fn rename_table(schemas: &Schemas, table: &Table, former: &str) -> Vec<String> {
    let (from, to) = (sql_name(former), table.sql_name());
    let name = ident(&to);
    let mut statements = Vec::new();
    // `user` is `user_` in SQL already.
    if from == to {
        return statements;
    }
    if table.is_raw() {
        statements.push(format!(
            "ALTER VIEW {} RENAME TO {name}",
            schemas.table(former)
        ));
        statements.push(format!(
            "ALTER TABLE {} RENAME TO {name}",
            schemas.chunk_table(former)
        ));
    } else {
        statements.push(format!(
            "ALTER TABLE {} RENAME TO {name}",
            schemas.table(former)
        ));
    }
    let stored = stored_table(schemas, table);
    statements.push(rename_constraints_of_table(&stored, &from, &to));
    statements
}

fn alter_raw(schemas: &Schemas, alteration: &Alteration) -> Vec<String> {
    let Alteration {
        renamed,
        after,
        added,
        changed,
        ..
    } = alteration;
    let chunks = schemas.chunk_table(&after.name);
    let mut statements = Vec::new();
    let retyped: Vec<&ColumnChange> = changed.iter().filter(|it| it.is_retyped()).collect();
    let changes_view = !(added.is_empty() && renamed.is_empty() && retyped.is_empty());
    if changes_view {
        // First: PostgreSQL changes no column that a view reads, and a view retains the columns and names
        // that it was created with. CREATE OR REPLACE VIEW can neither remove, rename nor reorder columns.
        statements.push(format!("DROP VIEW {}", schemas.table(&after.name)));
    }
    for change in retyped {
        statements.extend(retype_values(&chunks, change));
        statements.extend(store_plainly(schemas, after, &change.after));
    }
    for column in added {
        statements.push(format!(
            "ALTER TABLE {chunks} ADD COLUMN {}",
            raw_column(schemas, column)
        ));
        statements.extend(store_plainly(schemas, after, column));
        if column.references.is_some() {
            statements.push(index_of_reference(schemas, after, column));
        }
    }
    // Nulls of values are within arrays, which no constraint of the chunks sees.
    let references = changed.iter();
    for change in references.filter(|change| change.after.references.is_some()) {
        if !change.before.is_nullable && change.after.is_nullable {
            statements.push(format!(
                "ALTER TABLE {chunks} ALTER COLUMN {} DROP NOT NULL",
                ident(&change.after.sql_name())
            ));
        }
    }
    if changes_view {
        statements.push(create_view(schemas, after));
    }
    statements
}

/// Statements that convert the arrays of a column's values: element by element, because ALTER TABLE
/// takes no subquery.
fn retype_values(chunks: &str, change: &ColumnChange) -> Vec<String> {
    let (from, to) = (change.before.data_type, change.after.data_type);
    // Strings and texts are one type in PostgreSQL, so their arrays stay.
    if sql_type(from) == sql_type(to) {
        return Vec::new();
    }
    let name = ident(&change.after.sql_name());
    // Names of organizations do not begin with an underscore.
    let converted = ident("_converted");
    let element = conversion(from, to, "u.value");
    vec![
        format!(
            "ALTER TABLE {chunks} ADD COLUMN {converted} {}[]",
            sql_type(to)
        ),
        format!(
            "UPDATE {chunks} SET {converted} = ARRAY(SELECT {element} FROM unnest({name}) \
             WITH ORDINALITY AS u(value, place) ORDER BY u.place) WHERE {name} IS NOT NULL"
        ),
        format!("ALTER TABLE {chunks} DROP COLUMN {name}"),
        format!("ALTER TABLE {chunks} RENAME COLUMN {converted} TO {name}"),
    ]
}

/// The expression that converts a value to another type, as
/// [`Scalar::converted`](labdata_domain::scalar::Scalar::converted) does.
fn conversion(from: DataType, to: DataType, value: &str) -> String {
    match (from, to) {
        (DataType::Datetime, DataType::String | DataType::Text) => rendered(from, value),
        // A cast would follow the session's DateStyle.
        (DataType::Date, DataType::String | DataType::Text) => {
            format!("to_char({value}, 'YYYY-MM-DD')")
        }
        (DataType::Date, DataType::Datetime) => format!("{value}::timestamp AT TIME ZONE 'UTC'"),
        _ => format!("{value}::{}", sql_type(to)),
    }
}

/// The query for values of a column that its new type cannot store exactly, the smallest first;
/// `None` if there can be none.
pub(crate) fn inexact_values(
    schemas: &Schemas,
    table: &Table,
    change: &ColumnChange,
) -> Option<String> {
    let is_narrower =
        (change.before.data_type, change.after.data_type) == (DataType::Integer, DataType::Float);
    let name = ident(&change.after.sql_name());
    let stored = stored_table(schemas, table);
    let values = if table.is_raw() {
        format!("{stored} c CROSS JOIN LATERAL unnest(c.{name}) AS u(value)")
    } else {
        format!("(SELECT {name} AS value FROM {stored}) u")
    };
    is_narrower.then(|| {
        format!(
            // A float holds 53 bits, so the quotient by the lowest bit that is set must be below 2^53.
            // Comparing is no way: as floats both sides are rounded alike, and a cast of a float to
            // numeric retains 15 digits. The smallest integer, a power of two, cannot be negated.
            "SELECT DISTINCT u.value AS id FROM {values} \
             WHERE CASE WHEN u.value = 0 OR u.value < -9223372036854775807 THEN false \
             ELSE abs(u.value / (u.value & -u.value)) >= 9007199254740992 END \
             ORDER BY u.value LIMIT {MAX_INEXACT_VALUES}"
        )
    })
}

fn alter_column(schemas: &Schemas, table: &Table, change: &ColumnChange) -> Vec<String> {
    let ColumnChange { before, after } = change;
    let name = ident(&after.sql_name());
    let alter = format!(
        "ALTER TABLE {} ALTER COLUMN {name}",
        schemas.table(&table.name),
    );
    let mut statements = Vec::new();
    if sql_type(before.data_type) != sql_type(after.data_type) {
        // PostgreSQL would have to cast the default as well; the new one follows.
        statements.push(format!("{alter} DROP DEFAULT"));
        let data_type = if after.is_primary_key {
            key_type(after.data_type)
        } else {
            sql_type(after.data_type).to_owned()
        };
        let converted = conversion(before.data_type, after.data_type, &name);
        statements.push(format!("{alter} TYPE {data_type} USING {converted}"));
    }
    if before.is_nullable != after.is_nullable {
        statements.push(format!(
            "{alter} {} NOT NULL",
            if after.is_nullable { "DROP" } else { "SET" }
        ));
    }
    if before.default != after.default || change.is_retyped() {
        let clause = default_clause(after);
        statements.push(if clause.is_empty() {
            format!("{alter} DROP DEFAULT")
        } else {
            format!("{alter} SET{clause}")
        });
    }
    if before.is_unique != after.is_unique {
        statements.push(if after.is_unique {
            add_unique(schemas, table, after)
        } else {
            drop_unique(schemas, table, std::slice::from_ref(&after.name))
        });
    }
    statements
}

/// The table that stores rows or chunks.
pub(crate) fn stored_table(schemas: &Schemas, table: &Table) -> String {
    if table.is_raw() {
        schemas.chunk_table(&table.name)
    } else {
        schemas.table(&table.name)
    }
}

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
