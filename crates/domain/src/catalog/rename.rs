//! Renames of columns, as a definition asks for them.

use std::collections::{HashMap, HashSet};

use super::{Column, ColumnDefinition, Name, Table, TableDefinition};

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
    let mut sql_names: HashSet<String> = HashSet::new();
    for column in &table.columns {
        names.insert(column.name.clone());
        sql_names.insert(column.sql_name().into_owned());
    }
    let mut waiting: Vec<(usize, Column)> = renames(&definition.columns)
        .filter_map(|(from, to)| {
            let (index, column) = current.column(from)?;
            let name = to.to_owned();
            Some((
                index,
                Column {
                    name,
                    ..column.clone()
                },
            ))
        })
        .collect();
    let mut done = Vec::new();
    // A name may become free by another rename.
    while let Some(ready) = waiting.iter().position(|(_, after)| {
        !names.contains(&after.name) && !sql_names.contains(after.sql_name().as_ref())
    }) {
        let (index, after) = waiting.remove(ready);
        let Some(slot) = table.columns.get_mut(index) else {
            continue;
        };
        let before = std::mem::replace(slot, after.clone());
        names.remove(&before.name);
        names.insert(after.name.clone());
        sql_names.remove(before.sql_name().as_ref());
        sql_names.insert(after.sql_name().into_owned());
        let groups = table.unique_together.iter_mut().flatten();
        groups
            .filter(|name| **name == before.name)
            .for_each(|name| name.clone_from(&after.name));
        done.push(ColumnRename { before, after });
    }
    refuse_new_order(current, &table, refusals);
    (table, done)
}

/// Refuses to make another column the order of points, which is stored in another form.
fn refuse_new_order(before: &Table, after: &Table, refusals: &mut Vec<String>) {
    let order = |table: &Table| table.order_column().map(|(index, _)| index);
    let (was, is) = (order(before), order(after));
    if was == is {
        return;
    }
    for index in was.into_iter().chain(is) {
        if let (Some(before), Some(after)) = (before.columns.get(index), after.columns.get(index)) {
            refusals.push(format!(
                "column \"{}\" cannot be renamed to \"{}\": the integer column \"order\" of a raw table is the order of its points",
                before.name, after.name
            ));
        }
    }
}
