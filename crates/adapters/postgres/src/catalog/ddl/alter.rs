//! SQL that alters tables.

use labdata_domain::{
    catalog::{Alteration, ColumnChange, MAX_INEXACT_VALUES, Table, sql_name},
    ids::OrganizationId,
    scalar::DataType,
};

use super::{
    add_constraints, add_unique, add_unique_together, curated_column, default_clause, drop_unique,
    raw::{create_view, index_of_reference, raw_column, store_plainly},
    stored_table,
};
use crate::{
    catalog::constraints::{rename_constraints, rename_constraints_of_table},
    database::sql::{Schemas, ident, key_type, literal, rendered, sql_type},
};

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
        // After the columns, of which a group may contain a new one.
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

/// The values of a column in the recorded changes of its table, as FROM and an expression for each value.
fn recorded_values(table: &Table, change: &ColumnChange) -> (String, String) {
    let from = change.before.data_type;
    let name = literal(&change.after.sql_name());
    // JSON is one value of its column, however it is written; all else is read from its text.
    let is_json = from == DataType::Json;
    let typed = |text: &str, json: &str| {
        if is_json {
            format!("nullif({json}::jsonb, 'null')")
        } else {
            format!("{text}::{}", sql_type(from))
        }
    };
    if table.is_raw() {
        let elements = if is_json {
            "json_array_elements"
        } else {
            "json_array_elements_text"
        };
        let values = format!("{elements}(c.before -> {name}) WITH ORDINALITY AS u(value, place)");
        (values, typed("u.value", "u.value"))
    } else {
        let text = format!("(c.before ->> {name})");
        (
            String::new(),
            typed(&text, &format!("(c.before -> {name})")),
        )
    }
}

/// The condition that a recorded change is one of the table's and has a value in the column.
fn has_recorded(organization: OrganizationId, table: &Table, change: &ColumnChange) -> String {
    format!(
        "c.organization_id = {}::uuid AND c.table_name = {} AND c.before ->> {} IS NOT NULL",
        literal(&organization.to_string()),
        literal(&table.name),
        literal(&change.after.sql_name()),
    )
}

/// The statement that converts a column in the recorded changes of its table, which has its new name; `None` if
/// both types are one in PostgreSQL.
pub(crate) fn retype_recorded(
    organization: OrganizationId,
    table: &Table,
    change: &ColumnChange,
) -> Option<String> {
    let (from, to) = (change.before.data_type, change.after.data_type);
    if sql_type(from) == sql_type(to) {
        return None;
    }
    let (elements, value) = recorded_values(table, change);
    let mut converted = format!("to_jsonb({})", conversion(from, to, &value));
    if table.is_raw() {
        converted = format!(
            "(SELECT coalesce(jsonb_agg({converted} ORDER BY u.place), '[]') FROM {elements})"
        );
    }
    Some(format!(
        "UPDATE labdata.row_change c \
         SET before = (c.before::jsonb || jsonb_build_object({}, {converted}))::json WHERE {}",
        literal(&change.after.sql_name()),
        has_recorded(organization, table, change),
    ))
}

/// The query for values of a column that its new type cannot store exactly, the smallest first, those of earlier
/// versions included; `None` if there can be none.
pub(crate) fn inexact_values(
    organization: OrganizationId,
    table: &Table,
    change: &ColumnChange,
) -> Option<String> {
    let schemas = &Schemas::of(organization);
    let is_narrower =
        (change.before.data_type, change.after.data_type) == (DataType::Integer, DataType::Float);
    let name = ident(&change.after.sql_name());
    let stored = stored_table(schemas, table);
    let current = if table.is_raw() {
        format!("SELECT e.value FROM {stored} c CROSS JOIN LATERAL unnest(c.{name}) AS e(value)")
    } else {
        format!("SELECT {name} AS value FROM {stored}")
    };
    let (elements, value) = recorded_values(table, change);
    let elements = if table.is_raw() {
        format!(" CROSS JOIN LATERAL {elements}")
    } else {
        elements
    };
    let values = format!(
        "({current} UNION ALL SELECT {value} FROM labdata.row_change c{elements} WHERE {}) u",
        has_recorded(organization, table, change),
    );
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
