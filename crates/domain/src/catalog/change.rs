//! Changes that turn a table into its new definition.

use super::{CatalogRefusal, Column, ColumnRename, Table};

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

impl Alteration {
    /// Returns whether the table is already as defined.
    pub(super) fn is_empty(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        before.description == after.description
            && before.history == after.history
            && before.access == after.access
            && self.former_name.is_none()
            && self.renamed.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty()
            && self.together_added.is_empty()
            && self.together_removed.is_empty()
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
