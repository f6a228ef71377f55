//! Comparison of a definition with the table that exists.

use super::{
    Catalog, CatalogRefusal, Column, ColumnRef, DefinitionMode, SemanticCategory, Table,
    TableDefinition,
    change::{Alteration, CatalogChange, ColumnChange, missing_from},
    ensure::ensure,
    rename::{defined_table, renamed},
};

impl CatalogChange {
    /// Compares a definition with the current tables.
    ///
    /// # Errors
    /// [`CatalogRefusal::Definition`] when the definition is wrong in itself, or would lose stored data.
    pub fn towards(
        definition: &TableDefinition,
        catalog: &Catalog,
    ) -> Result<Self, CatalogRefusal> {
        let wanted = definition
            .resolve(catalog)
            .map_err(CatalogRefusal::Definition)?;
        let found = defined_table(definition, catalog);
        match found.map_err(|refusal| CatalogRefusal::Definition(vec![refusal]))? {
            None => Ok(Self::Create(wanted)),
            Some((current, _)) if definition.mode == DefinitionMode::Ensure => {
                ensure(&current, definition, &wanted)
            }
            Some((current, former_name)) => {
                // Other tables still reference the former name.
                let is_referenced = catalog
                    .referencing(former_name.as_ref().unwrap_or(&current.name))
                    .next()
                    .is_some();
                let current = Current {
                    table: &current,
                    former_name,
                    is_referenced,
                };
                alter(current, definition, &wanted)
            }
        }
    }
}

/// A table that exists.
struct Current<'t> {
    /// It, under its new name.
    table: &'t Table,
    former_name: Option<String>,
    /// A table references it.
    is_referenced: bool,
}

/// The changes of an existing table, or why the definition does not fit it.
fn alter(
    current: Current<'_>,
    definition: &TableDefinition,
    wanted: &Table,
) -> Result<CatalogChange, CatalogRefusal> {
    let Current {
        table: current,
        former_name,
        is_referenced,
    } = current;
    let mut refusals = Vec::new();
    // Renames come first: everything below compares columns by the names that they get.
    let (before, renamed) = renamed(current, definition, &mut refusals);
    if before.category != wanted.category {
        refusals.push(format!(
            "\"{}\" is a {} table and cannot become {}",
            before.name,
            before.category.as_str(),
            wanted.category.as_str()
        ));
    }
    let (mut columns, changed) =
        existing_columns(&before, wanted, definition, is_referenced, &mut refusals);
    let added = added_columns(&before, wanted, &mut refusals);
    // Only here, so that one response lists every reason.
    if !refusals.is_empty() {
        return Err(CatalogRefusal::Definition(refusals));
    }
    columns.extend(added.iter().cloned());
    let after = Table {
        id: before.id,
        columns: columns.into(),
        // A definition that leaves the access out does not change it.
        access: match &definition.access {
            Some(_) => wanted.access.clone(),
            None => before.access.clone(),
        },
        ..wanted.clone()
    };
    let alteration = Alteration {
        former_name,
        renamed,
        together_added: missing_from(&after.unique_together, &before.unique_together),
        together_removed: missing_from(&before.unique_together, &after.unique_together),
        before,
        after,
        added,
        changed,
    };
    Ok(if alteration.is_empty() {
        CatalogChange::Nothing
    } else {
        CatalogChange::Alter(Box::new(alteration))
    })
}

/// The columns that the table has already, as they become, and those of them that change.
fn existing_columns(
    before: &Table,
    wanted: &Table,
    definition: &TableDefinition,
    is_referenced: bool,
    refusals: &mut Vec<String>,
) -> (Vec<Column>, Vec<ColumnChange>) {
    let mut columns = Vec::with_capacity(wanted.columns.len());
    let mut changed = Vec::new();
    for current in &before.columns {
        let Some(column) = wanted.column(&current.name) else {
            refusals.push(missing_column(&current.name, definition));
            continue;
        };
        let after = Column {
            // Definitions have no ids, and without one the column would count as a new one.
            id: current.id,
            ..(**column).clone()
        };
        refuse_column_change(current, &after, refusals);
        refusals.extend(refusal_to_retype(before, current, &after, is_referenced));
        // Points are stored as arrays, and NOT NULL does not apply to their elements.
        if before.is_raw() && current.is_nullable && !after.is_nullable {
            refusals.push(format!(
                "column \"{}\" of a raw table cannot become non-nullable",
                after.name
            ));
        }
        if **current != after {
            changed.push(ColumnChange {
                before: (**current).clone(),
                after: after.clone(),
            });
        }
        columns.push(after);
    }
    (columns, changed)
}

/// The columns that the table does not have yet.
fn added_columns(before: &Table, wanted: &Table, refusals: &mut Vec<String>) -> Vec<Column> {
    let added: Vec<Column> = wanted
        .columns
        .iter()
        .filter(|column| before.column(&column.name).is_none())
        .map(|column| (**column).clone())
        .collect();
    for column in &added {
        // In a table of rows the store decides: it refuses a constraint only if stored rows break
        // it.
        if !column.is_nullable && before.category == SemanticCategory::Raw {
            refusals.push(format!(
                "new column \"{}\" must be nullable: the points that are stored have no value for it",
                column.name
            ));
        }
    }
    added
}

/// Why a column that the table needs as it is cannot get another type.
fn refusal_to_retype(
    table: &Table,
    current: &ColumnRef,
    after: &Column,
    is_referenced: bool,
) -> Option<String> {
    if current.data_type == after.data_type {
        return None;
    }
    let why = if current.is_primary_key && is_referenced {
        // References have the type of the key, and would have to change with it.
        "rows are referenced by it"
    } else if table.order_column() == Some(current) {
        "it is the order of the points"
    } else {
        return None;
    };
    let name = &after.name;
    Some(format!(
        "the type of column \"{name}\" cannot change: {why}"
    ))
}

/// Refusal of a definition that has no place for an existing column.
fn missing_column(name: &str, definition: &TableDefinition) -> String {
    let mut columns = definition.columns.iter();
    match columns.find(|column| column.renamed_from.as_deref() == Some(name)) {
        Some(renamed) => format!(
            "column \"{name}\" cannot be renamed to \"{}\": the table has a column of this name, in reads or in SQL",
            renamed.name
        ),
        None => format!(
            "column \"{name}\" is missing from the definition; leaving it out would lose what it holds"
        ),
    }
}

fn refuse_column_change(current: &Column, wanted: &Column, refusals: &mut Vec<String>) {
    let name = &current.name;
    if current.references != wanted.references {
        refusals.push(format!(
            "column \"{name}\" cannot change what it references"
        ));
    } else if current.data_type != wanted.data_type
        // The type of a reference is that of the key that it points at.
        && (current.references.is_some() || !current.data_type.converts_to(wanted.data_type))
    {
        refusals.push(format!(
            "column \"{name}\" is of type {} and cannot become {}",
            current.data_type, wanted.data_type
        ));
    }
    if current.is_primary_key != wanted.is_primary_key {
        refusals.push(format!("the primary key cannot change (column \"{name}\")"));
    }
}
