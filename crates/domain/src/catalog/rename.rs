//! Renames of columns, as a definition asks for them.

use std::collections::{HashMap, HashSet};

use std::sync::Arc;

use super::{
    Catalog, Column, ColumnRef, Name, Origin, Table,
    definition::{ColumnDefinition, DefinitionMode, TableDefinition},
};

/// A column that gets another name; its data stays.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRename {
    /// The column with its former name.
    pub before: Column,
    /// The column with its new name.
    pub after: Column,
}

/// Checks that no name is given up twice, and that the renames form no circle, which would be
/// another change each time the definition is sent.
pub(super) fn check_renames(columns: &[ColumnDefinition], problems: &mut Vec<String>) {
    let mut heirs: HashMap<&str, &str> = HashMap::new();
    for (from, to) in renames(columns) {
        if let Err(error) = Name::parse(from) {
            problems.push(format!("column \"{to}\", renamed_from: {error}"));
        }
        if let Some(other) = heirs.insert(from, to) {
            problems.push(format!(
                "columns \"{other}\" and \"{to}\" are both renamed from \"{from}\""
            ));
        }
    }
    let mut followed: HashSet<&str> = HashSet::new();
    for (start, _) in renames(columns) {
        let mut name = start;
        // Each name is followed once, so the check is linear however long the chains are.
        while followed.insert(name)
            && let Some(next) = heirs.get(name)
        {
            if *next == start {
                problems.push(format!(
                    "column \"{start}\" is renamed in a circle; rename columns that exchange their names one by one"
                ));
                break;
            }
            name = next;
        }
    }
}

/// Checks the former name of a table.
pub(super) fn check_table_rename(definition: &TableDefinition, problems: &mut Vec<String>) {
    let name = &definition.name;
    let Some(from) = &definition.renamed_from else {
        return;
    };
    if let Err(error) = Name::parse(from) {
        problems.push(format!("table \"{name}\", renamed_from: {error}"));
    } else if from == name {
        problems.push(format!("table \"{name}\" is renamed from its own name"));
    }
}

impl TableDefinition {
    /// The former name of the table that the definition renames; `None` if it renames none.
    #[must_use]
    pub fn former_name(&self, catalog: &Catalog) -> Option<&str> {
        let former = self.renamed_from.as_deref()?;
        let is_renamed = catalog.table(&self.name).is_none() && catalog.table(former).is_some();
        is_renamed.then_some(former)
    }
}

/// A table under its new name, and its former name if it is renamed.
pub(super) type DefinedTable = (Arc<Table>, Option<String>);

/// The table that a definition is about; `None` if it makes one.
pub(super) fn defined_table(
    definition: &TableDefinition,
    catalog: &Catalog,
) -> Result<Option<DefinedTable>, String> {
    let name = &definition.name;
    let former = definition.renamed_from.as_deref();
    let former = former.and_then(|former| catalog.table(former));
    match (catalog.table(name), former) {
        // Without a table of the former name, it is renamed already.
        (Some(table), None) => Ok(Some((Arc::clone(table), None))),
        (None, None) => Ok(None),
        (Some(_), Some(former)) => Err(format!(
            "table \"{}\" cannot be renamed to \"{name}\": there is a table of this name",
            former.name
        )),
        (None, Some(former)) if former.origin == Origin::Core => Err(format!(
            "\"{}\" is a core table and cannot be renamed",
            former.name
        )),
        (None, Some(former)) if definition.mode == DefinitionMode::Ensure => Err(format!(
            "table \"{name}\" is still called \"{}\", and this mode renames nothing",
            former.name
        )),
        (None, Some(former)) => {
            let mut table = Table::clone(former);
            table.name.clone_from(name);
            table.columns.update(|column| {
                // A reference of the table to itself.
                if column.references.as_ref() == Some(&former.name) {
                    column.references = Some(name.clone());
                }
            });
            Ok(Some((Arc::new(table), Some(former.name.clone()))))
        }
    }
}

/// Former and new names.
fn renames(columns: &[ColumnDefinition]) -> impl Iterator<Item = (&str, &str)> {
    columns.iter().filter_map(|column| {
        let from = column.renamed_from.as_deref()?;
        Some((from, column.name.as_str()))
    })
}

/// Renames the columns of a table that have the former names of a definition, if their new names
/// are free. A new name that the table has is no problem by itself: the column is renamed already.
pub(super) fn renamed(
    current: &Table,
    definition: &TableDefinition,
    refusals: &mut Vec<String>,
) -> (Table, Vec<ColumnRename>) {
    let mut table = current.clone();
    let mut names: HashSet<String> = HashSet::new();
    // Both names count: the reference `a` is `a_id` in SQL, which may
    // be the name of another column.
    let mut sql_names: HashSet<String> = HashSet::new();
    for column in &table.columns {
        names.insert(column.name.clone());
        sql_names.insert(column.sql_name().into_owned());
    }
    let mut waiting: Vec<ColumnRename> = renames(&definition.columns)
        .filter_map(|(from, to)| {
            // Without a column of the name the rename is done: a definition may be sent again.
            let before = (**current.column(from)?).clone();
            let after = Column {
                name: to.to_owned(),
                ..before.clone()
            };
            Some(ColumnRename { before, after })
        })
        .collect();
    let mut done = Vec::new();
    // A name may become free by another rename.
    while let Some(ready) = waiting.iter().position(|ColumnRename { before, after }| {
        // `user` and `user_` are the same in SQL.
        let has_sql_name = before.sql_name() == after.sql_name();
        !names.contains(&after.name)
            && (has_sql_name || !sql_names.contains(after.sql_name().as_ref()))
    }) {
        let renamed = waiting.remove(ready);
        let ColumnRename { before, after } = &renamed;
        let rename = |name: &mut String| {
            if *name == before.name {
                name.clone_from(&after.name);
            }
        };
        table.columns.update(|column| rename(&mut column.name));
        table.unique_together.iter_mut().flatten().for_each(rename);
        names.remove(&before.name);
        names.insert(after.name.clone());
        sql_names.remove(before.sql_name().as_ref());
        sql_names.insert(after.sql_name().into_owned());
        done.push(renamed);
    }
    // What still waits is refused by the caller, as the definition lacks the column's former name.
    refuse_new_order(current, &table, refusals);
    (table, done)
}

/// Refuses to make another column the order of points, which is stored in another form.
fn refuse_new_order(before: &Table, after: &Table, refusals: &mut Vec<String>) {
    let is_order = |table: &Table, column: &ColumnRef| table.order_column() == Some(column);
    // Renames keep the columns' positions.
    for (was, is) in before.columns.iter().zip(&after.columns) {
        if is_order(before, was) != is_order(after, is) {
            refusals.push(format!(
                "column \"{}\" cannot be renamed to \"{}\": the integer column \"order\" of a raw table is the order of its points",
                was.name, is.name
            ));
        }
    }
}
