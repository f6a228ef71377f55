//! Definitions that a script sends at its start: they add what is missing and change nothing else.

use super::{
    Alteration, CatalogChange, CatalogRefusal, Column, Table, TableDefinition, change::missing_from,
};

/// The change that gives an existing table the columns of a definition that it lacks.
pub(super) fn ensure(
    current: &Table,
    definition: &TableDefinition,
    wanted: &Table,
) -> Result<CatalogChange, CatalogRefusal> {
    let mut refusals = Vec::new();
    if current.category != wanted.category {
        refusals.push(format!(
            "\"{}\" is a {} table, not a {} one",
            current.name,
            current.category.as_str(),
            wanted.category.as_str()
        ));
    }
    let mut added = Vec::new();
    for column in &wanted.columns {
        match current.column(&column.name) {
            Some(existing) => refuse_looser(existing, column, &mut refusals),
            None => match refusal_to_add(current, definition, column) {
                Some(refusal) => refusals.push(refusal),
                None => added.push((**column).clone()),
            },
        }
    }
    for group in missing_from(&wanted.unique_together, &current.unique_together) {
        refusals.push(format!(
            "the columns ({}) of \"{}\" are not unique together",
            group.join(", "),
            current.name
        ));
    }
    if !refusals.is_empty() {
        return Err(CatalogRefusal::Definition(refusals));
    }
    if added.is_empty() {
        return Ok(CatalogChange::Nothing);
    }
    let existing = current.columns.iter().map(|column| (**column).clone());
    // Description and labels stay as they are: this mode adds columns only.
    let after = Table {
        columns: existing.chain(added.iter().cloned()).collect(),
        ..current.clone()
    };
    Ok(CatalogChange::Alter(Box::new(Alteration {
        former_name: None,
        renamed: Vec::new(),
        before: current.clone(),
        after,
        added,
        changed: Vec::new(),
        together_added: Vec::new(),
        together_removed: Vec::new(),
    })))
}

/// Reports an existing column of another type, or one that accepts more than the definition.
fn refuse_looser(existing: &Column, wanted: &Column, refusals: &mut Vec<String>) {
    let name = &existing.name;
    if existing.references != wanted.references {
        refusals.push(match &existing.references {
            Some(target) => format!("column \"{name}\" references \"{target}\""),
            None => format!("column \"{name}\" is no reference"),
        });
    } else if existing.data_type != wanted.data_type {
        refusals.push(format!(
            "column \"{name}\" is of type {}, not {}",
            existing.data_type, wanted.data_type
        ));
    }
    if wanted.is_primary_key && !existing.is_primary_key {
        refusals.push(format!("column \"{name}\" is not the primary key"));
        // A key is unique and not null, so further differences would repeat this one.
        return;
    }
    if let (Some(unit), Some(other)) = (&existing.unit, &wanted.unit)
        && unit != other
    {
        refusals.push(format!(
            "column \"{name}\" has the unit \"{unit}\", not \"{other}\""
        ));
    }
    if existing.is_nullable && !wanted.is_nullable {
        refusals.push(format!("column \"{name}\" may be null"));
    }
    if !existing.is_unique && wanted.is_unique {
        refusals.push(format!("column \"{name}\" is not unique"));
    }
}

/// Why a missing column cannot be added; `None` if it can.
fn refusal_to_add(
    current: &Table,
    definition: &TableDefinition,
    column: &Column,
) -> Option<String> {
    let name = &column.name;
    if column.is_primary_key {
        return Some(format!("column \"{name}\" is not the primary key"));
    }
    let mut defined = definition.columns.iter();
    // The data is in the column of the former name, and a new one would be empty.
    let former = defined
        .find(|defined| defined.name == *name)
        .and_then(|defined| current.column(defined.renamed_from.as_deref()?));
    if let Some(former) = former {
        return Some(format!(
            "column \"{name}\" is still called \"{}\", and this mode renames nothing",
            former.name
        ));
    }
    (!column.is_nullable).then(|| {
        format!("column \"{name}\" is missing and not nullable, and this mode adds nullable columns only")
    })
}
