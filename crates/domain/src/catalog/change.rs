//! Changes that turn a table into its new definition.

use super::{
    Catalog, CatalogRefusal, Column, ColumnRef, ColumnRename, DefinitionMode, SemanticCategory,
    Table, TableDefinition,
    ensure::ensure,
    rename::{defined_table, renamed},
};

/// Change of an existing column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnChange {
    /// The current column.
    pub before: Column,
    /// The new column; same name and reference, and a type to which the current one converts.
    pub after: Column,
}

impl ColumnChange {
    /// Returns whether the column gets another type. Stored values are converted
    /// ([`Scalar::converted`](crate::scalar::Scalar::converted)).
    #[must_use]
    pub fn is_retyped(&self) -> bool {
        self.before.data_type != self.after.data_type
    }

    /// The refusal of a new type that cannot store values of the column: a few of those, the smallest
    /// first.
    #[must_use]
    pub fn inexact(&self, table: &Table, values: Vec<String>) -> CatalogRefusal {
        CatalogRefusal::Inexact {
            table: table.name.clone(),
            column: self.after.name.clone(),
            data_type: self.after.data_type,
            values,
        }
    }
}

/// Change that a definition requires.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// None: the table is as defined.
    Nothing,
    /// A new table.
    Create(Table),
    /// Changes that lose nothing. The store refuses a new constraint that stored rows break, and a new
    /// type that cannot store their values exactly.
    Alter(Box<Alteration>),
}

/// Change of an existing table.
#[derive(Clone, Debug, PartialEq)]
pub struct Alteration {
    /// The table's former name, if it is renamed. References of other tables follow.
    pub former_name: Option<String>,
    /// Renamed columns, in the order in which their new names become free.
    pub renamed: Vec<ColumnRename>,
    /// The current table; it and its renamed columns have their new names.
    pub before: Table,
    /// The new table; existing columns keep their ids and come first.
    pub after: Table,
    /// New columns.
    pub added: Vec<Column>,
    /// Changed columns.
    pub changed: Vec<ColumnChange>,
    /// Sets of columns that become unique together.
    pub together_added: Vec<Vec<String>>,
    /// Sets of columns that are no longer unique together.
    pub together_removed: Vec<Vec<String>>,
}

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
        refuse_column_change(current, &after, &mut refusals);
        refusals.extend(refusal_to_retype(&before, current, &after, is_referenced));
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
    if !refusals.is_empty() {
        return Err(CatalogRefusal::Definition(refusals));
    }
    let together_added = missing_from(&wanted.unique_together, &before.unique_together);
    let together_removed = missing_from(&before.unique_together, &wanted.unique_together);
    // A definition that leaves the access out keeps it.
    let access = match &definition.access {
        Some(_) => wanted.access.clone(),
        None => before.access.clone(),
    };
    let same_rules = before.description == wanted.description
        && before.history == wanted.history
        && before.access == access;
    if same_rules
        && former_name.is_none()
        && renamed.is_empty()
        && added.is_empty()
        && changed.is_empty()
        && together_added.is_empty()
        && together_removed.is_empty()
    {
        return Ok(CatalogChange::Nothing);
    }
    columns.extend(added.iter().cloned());
    let after = Table {
        id: before.id,
        columns: columns.into(),
        access,
        ..wanted.clone()
    };
    Ok(CatalogChange::Alter(Box::new(Alteration {
        former_name,
        renamed,
        before,
        after,
        added,
        changed,
        together_added,
        together_removed,
    })))
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

/// Groups that are not in `others`, regardless of the order of their columns.
pub(super) fn missing_from(groups: &[Vec<String>], others: &[Vec<String>]) -> Vec<Vec<String>> {
    let sorted = |group: &Vec<String>| {
        let mut group = group.clone();
        // The order of columns in a group does not matter for uniqueness.
        group.sort();
        group
    };
    groups
        .iter()
        .filter(|group| others.iter().all(|other| sorted(other) != sorted(group)))
        .cloned()
        .collect()
}
