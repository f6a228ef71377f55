//! From a table as it stands to the table as it is asked to be.

use super::{Catalog, Column, SemanticCategory, Table, TableDefinition};

/// How a column that stays changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnChange {
    /// The column as it stands.
    pub before: Column,
    /// The column as it shall be; same name, type and reference.
    pub after: Column,
}

/// What has to be done to reach a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// The definition is what stands.
    Nothing,
    /// A new table.
    Create(Table),
    /// Changes that lose nothing. Those that stored data might contradict (a constraint that is
    /// new) are refused by the store when it does.
    Alter(Box<Alteration>),
}

/// How a table that stands changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Alteration {
    /// The table as it stands.
    pub before: Table,
    /// The table as it shall be; columns that stand keep their ids and come first.
    pub after: Table,
    /// New columns.
    pub added: Vec<Column>,
    /// Columns that change.
    pub changed: Vec<ColumnChange>,
    /// Sets of columns that shall be unique from now on.
    pub together_added: Vec<Vec<String>>,
    /// Sets of columns that need not be unique any more.
    pub together_removed: Vec<Vec<String>>,
}

/// Why a definition cannot be reached; a sentence for the person who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Refusal(pub Vec<String>);

impl CatalogChange {
    /// Compares a definition with what stands.
    ///
    /// # Errors
    /// [`Refusal`] when the definition is wrong in itself, or would lose stored data.
    pub fn towards(definition: &TableDefinition, catalog: &Catalog) -> Result<Self, Refusal> {
        let wanted = definition.resolve(catalog).map_err(Refusal)?;
        match catalog.table(&definition.name) {
            None => Ok(Self::Create(wanted)),
            Some(standing) => alter(standing, &wanted),
        }
    }
}

fn alter(before: &Table, wanted: &Table) -> Result<CatalogChange, Refusal> {
    let mut refusals = Vec::new();
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
    for standing in &before.columns {
        let Some((_, column)) = wanted.column(&standing.name) else {
            refusals.push(format!(
                "column \"{}\" is missing from the definition; leaving it out would lose what it holds",
                standing.name
            ));
            continue;
        };
        let after = Column {
            id: standing.id,
            ..column.clone()
        };
        refuse_column_change(standing, &after, &mut refusals);
        if before.is_raw() && standing.is_nullable && !after.is_nullable {
            refusals.push(format!(
                "column \"{}\" of a raw table cannot become non-nullable",
                after.name
            ));
        }
        if *standing != after {
            changed.push(ColumnChange {
                before: standing.clone(),
                after: after.clone(),
            });
        }
        columns.push(after);
    }
    let added: Vec<Column> = wanted
        .columns
        .iter()
        .filter(|column| before.column(&column.name).is_none())
        .cloned()
        .collect();
    for column in &added {
        if !column.is_nullable && before.category == SemanticCategory::Raw {
            refusals.push(format!(
                "new column \"{}\" must be nullable: the points that are stored have no value for it",
                column.name
            ));
        }
    }
    if !refusals.is_empty() {
        return Err(Refusal(refusals));
    }
    let together_added = missing_from(&wanted.unique_together, &before.unique_together);
    let together_removed = missing_from(&before.unique_together, &wanted.unique_together);
    let same_text = before.description == wanted.description;
    if same_text
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
        columns,
        ..wanted.clone()
    };
    Ok(CatalogChange::Alter(Box::new(Alteration {
        before: before.clone(),
        after,
        added,
        changed,
        together_added,
        together_removed,
    })))
}

fn refuse_column_change(standing: &Column, wanted: &Column, refusals: &mut Vec<String>) {
    let name = &standing.name;
    if standing.data_type != wanted.data_type {
        refusals.push(format!(
            "column \"{name}\" is of type {} and cannot become {}",
            standing.data_type, wanted.data_type
        ));
    }
    if standing.references != wanted.references {
        refusals.push(format!(
            "column \"{name}\" cannot change what it references"
        ));
    }
    if standing.is_primary_key != wanted.is_primary_key {
        refusals.push(format!("the primary key cannot change (column \"{name}\")"));
    }
}

/// Groups that are not among the others, whatever the order of their columns.
fn missing_from(groups: &[Vec<String>], others: &[Vec<String>]) -> Vec<Vec<String>> {
    let sorted = |group: &Vec<String>| {
        let mut group = group.clone();
        group.sort();
        group
    };
    groups
        .iter()
        .filter(|group| others.iter().all(|other| sorted(other) != sorted(group)))
        .cloned()
        .collect()
}
