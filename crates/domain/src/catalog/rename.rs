//! Renames of columns, as a definition asks for them.

use std::collections::{HashMap, HashSet};

use super::{Column, ColumnDefinition, ColumnRef, Name, Table, TableDefinition};

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
    while let Some(ready) = waiting.iter().position(|ColumnRename { after, .. }| {
        !names.contains(&after.name) && !sql_names.contains(after.sql_name().as_ref())
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
