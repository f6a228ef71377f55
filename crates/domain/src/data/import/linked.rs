//! Tables to whose rows those of an import refer, made of the same lines of its file.
//!
//! A line of a plate's sheet may name its plate, the sample in the well, and what was measured: three tables.
//! Each linked table takes fields of the header, and its rows are distinguished by a key, so that lines with the same
//! key are one row. The write upserts them first, and the rows of the import refer to them by label.

use std::collections::BTreeMap;

use super::{ImportColumns, ImportField, columns::only_unique_text};
use crate::{
    catalog::{Catalog, ColumnRef, KeyedTable, Table},
    data::write::{OnMatch, Problem, Reason, quoted, unknown_column},
    refusal::ErrorCode,
    scalar::DataType,
};

/// Maximum number of linked tables of an import.
pub const MAX_LINKED_TABLES: usize = 8;

/// A linked table, as a caller describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkedTable {
    /// The table.
    pub table: String,
    /// Its columns for fields of the header.
    pub columns: BTreeMap<String, String>,
    /// Columns that identify a row; its only unique text column unless given.
    pub key: Option<Vec<String>>,
    /// Table whose rows refer to it: one that is linked later, or the import's own, which it is unless given.
    pub of: Option<String>,
    /// Column with the reference; the only one to this table unless given.
    pub reference: Option<String>,
    /// Effect on the columns of a row that exists.
    pub on_match: OnMatch,
}

/// A linked table whose columns are chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedColumns {
    /// The table.
    pub(super) table: KeyedTable,
    /// Its columns for the fields of the header.
    pub columns: ImportColumns,
    /// Columns that identify a row.
    pub(super) key: Vec<String>,
    pub(super) on_match: OnMatch,
    /// Index of the linked table that refers to it; `None` for the import's own.
    pub(super) referrer: Option<usize>,
    /// Column of the referrer with the reference.
    pub(super) reference: ColumnRef,
    /// Indices of the linked tables that it refers to, which come before it, with the columns.
    pub(super) parents: Vec<(usize, ColumnRef)>,
}

impl LinkedColumns {
    /// Chooses the columns of linked tables. `table` is the import's own.
    ///
    /// # Errors
    /// Problems below `linked[<index>]`.
    pub fn choose(
        linked: &[LinkedTable],
        header: &[ImportField],
        table: &Table,
        catalog: &Catalog,
    ) -> Result<Vec<Self>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut chosen: Vec<Self> = Vec::with_capacity(linked.len());
        for (index, given) in linked.iter().enumerate() {
            let is_repeated = given.table == table.name
                || linked.iter().take(index).any(|it| it.table == given.table);
            let found = if is_repeated {
                let message = format!(
                    "\"{}\" is a table of this import already",
                    quoted(&given.table)
                );
                Err(vec![Problem::at(
                    "table",
                    Reason::new(ErrorCode::InvalidValue, message),
                )])
            } else {
                // A table may refer only to those before it, so circles of references cannot be described.
                let later = linked.get(index + 1..).unwrap_or_default();
                Self::of(given, index + 1, later, &chosen, header, table, catalog)
            };
            match found {
                Ok(found) => chosen.push(found),
                Err(found) => problems.extend(found.into_iter().map(|problem| {
                    let path = problem.path.as_deref().unwrap_or_default();
                    Problem {
                        path: Some(format!("linked[{index}].{path}")),
                        ..problem
                    }
                })),
            }
        }
        if problems.is_empty() {
            Ok(chosen)
        } else {
            Err(Problem::first_of(problems))
        }
    }

    fn of(
        given: &LinkedTable,
        next: usize,
        later: &[LinkedTable],
        earlier: &[Self],
        header: &[ImportField],
        own: &Table,
        catalog: &Catalog,
    ) -> Result<Self, Vec<Problem>> {
        let one = |path: &str, reason: Reason| vec![Problem::at(path, reason)];
        let table = ImportColumns::table(catalog, &given.table)
            .map_err(|problem| vec![problem])?
            .ok_or_else(|| {
                let message = format!("there is no table \"{}\"", quoted(&given.table));
                one("table", Reason::new(ErrorCode::UnknownTable, message))
            })?;
        let columns = choose_columns(given, header, &table, catalog)?;
        let (referrer, referring) = match given.of.as_deref() {
            None => (None, own.name.as_str()),
            Some(name) if name == own.name => (None, name),
            Some(name) => {
                let position = later.iter().position(|it| it.table == name);
                let position = position.ok_or_else(|| {
                    let message = format!(
                        "\"{}\" is neither the table of the import nor one that is linked after this one",
                        quoted(name)
                    );
                    one("of", Reason::new(ErrorCode::InvalidValue, message))
                })?;
                (Some(next + position), name)
            }
        };
        let referring = catalog.table(referring).ok_or_else(|| {
            let message = format!("there is no table \"{}\"", quoted(referring));
            one("of", Reason::new(ErrorCode::UnknownTable, message))
        })?;
        let reference = reference(referring, given.reference.as_deref(), &table.name)
            .map_err(|reason| one("reference", reason))?;
        // References by linked tables of before, which may distinguish rows.
        let index = next - 1;
        let parents = earlier.iter().enumerate();
        let parents: Vec<(usize, ColumnRef)> = parents
            .filter(|(_, parent)| parent.referrer == Some(index))
            .map(|(parent, it)| (parent, it.reference.clone()))
            .collect();
        let is_reference = |name: &str| parents.iter().any(|(_, column)| column.name == name);
        if let Some((field, column)) = columns.chosen().find(|(_, column)| is_reference(column)) {
            let reason = taken_twice(column);
            return Err(one(&format!("columns.{}", quoted(field)), reason));
        }
        Ok(Self {
            key: key(given, &table, &columns, is_reference)?,
            table,
            columns,
            on_match: given.on_match,
            referrer,
            reference,
            parents,
        })
    }

    /// Leaves the fields of linked tables out of the import's own table, unless its columns name them.
    pub fn claim_fields(linked: &[Self], chosen: &mut BTreeMap<String, Option<String>>) {
        for (field, _) in linked.iter().flat_map(|it| it.columns.chosen()) {
            chosen.entry(field.to_owned()).or_insert(None);
        }
    }

    /// Adds the types of the fields of linked tables to those of the import's own.
    ///
    /// # Errors
    /// The problem of a field that would be read as values of two types, or of a reference that is also the column
    /// of a field.
    pub fn add_types(
        linked: &[Self],
        own: &ImportColumns,
        types: &mut [Option<DataType>],
    ) -> Result<(), Problem> {
        for (index, table) in linked.iter().enumerate() {
            let is_own = table.referrer.is_none();
            if is_own
                && own
                    .chosen()
                    .any(|(_, column)| *column == table.reference.name)
            {
                let path = format!("linked[{index}].reference");
                return Err(Problem::at(path, taken_twice(&table.reference.name)));
            }
            let fields = table.columns.types().into_iter().zip(&table.columns.header);
            for (wanted, (data_type, field)) in types.iter_mut().zip(fields) {
                let Some(data_type) = data_type else { continue };
                if wanted.is_some_and(|wanted| !reads_alike(wanted, data_type)) {
                    let message =
                        "another table of the import reads this field as values of another type";
                    let reason = Reason::new(ErrorCode::WrongType, message);
                    let path = format!("linked[{index}].columns.{}", quoted(field));
                    return Err(Problem::at(path, reason));
                }
                *wanted = Some(data_type);
            }
        }
        Ok(())
    }
}

/// Chooses the columns of a linked table: only the fields that it names.
fn choose_columns(
    given: &LinkedTable,
    header: &[ImportField],
    table: &KeyedTable,
    catalog: &Catalog,
) -> Result<ImportColumns, Vec<Problem>> {
    if given.columns.is_empty() {
        let reason = Reason::new(
            ErrorCode::MissingValue,
            "a linked table takes at least one field of the header",
        );
        return Err(vec![Problem::at("columns", reason)]);
    }
    let others = header
        .iter()
        .filter(|field| !given.columns.contains_key(&field.text));
    let others = others.map(|field| (field.text.clone(), None));
    let own = given.columns.iter();
    let own = own.map(|(field, column)| (field.clone(), Some(column.clone())));
    let columns = ImportColumns::choose(header, &others.chain(own).collect(), table)?;
    let problems = columns.other_units(header);
    if !problems.is_empty() {
        return Err(Problem::first_of(problems));
    }
    columns.with_lookups(&BTreeMap::new(), table, catalog)
}

/// The column by which a table refers to another one.
fn reference(table: &Table, wanted: Option<&str>, target: &str) -> Result<ColumnRef, Reason> {
    let mut references = table
        .references()
        .filter(|(_, referenced)| *referenced == target)
        .map(|(column, _)| column);
    let message = if let Some(name) = wanted {
        if let Some(found) = references.find(|column| column.name == name) {
            return Ok(found.clone());
        }
        format!(
            "column \"{}\" of \"{}\" is no reference to \"{target}\"",
            quoted(name),
            table.name
        )
    } else {
        // Two at most: a second one is enough to refuse the guess.
        match (references.next(), references.next()) {
            (Some(only), None) => return Ok(only.clone()),
            (Some(_), Some(_)) => format!(
                "\"{}\" refers to \"{target}\" by several columns; name one",
                table.name
            ),
            (None, _) => format!("no column of \"{}\" refers to \"{target}\"", table.name),
        }
    };
    Err(Reason::new(ErrorCode::InvalidLookup, message))
}

/// The columns that identify a row of a linked table.
fn key(
    given: &LinkedTable,
    table: &Table,
    columns: &ImportColumns,
    is_reference: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Vec<Problem>> {
    let Some(names) = &given.key else {
        let only = only_unique_text(table).map(|column| column.name.clone());
        let is_given = |name: &String| columns.chosen().any(|(_, column)| column == name);
        return only.filter(is_given).map(|name| vec![name]).ok_or_else(|| {
            let message = format!(
                "name the columns that identify a row of \"{}\": the fields give no only unique text column",
                table.name
            );
            vec![Problem::at("key", Reason::new(ErrorCode::InvalidKey, message))]
        });
    };
    for (position, name) in names.iter().enumerate() {
        let path = format!("key[{position}]");
        if table.column(name).is_none() {
            return Err(vec![Problem::at(path, unknown_column(table, name))]);
        }
        let is_given = columns.chosen().any(|(_, column)| column == name);
        if !is_given && !is_reference(name) {
            let message = "neither a field of the header nor a linked table gives this column";
            return Err(vec![Problem::at(
                path,
                Reason::new(ErrorCode::InvalidKey, message),
            )]);
        }
    }
    if names.is_empty() {
        let reason = Reason::new(ErrorCode::InvalidKey, "a key needs at least one column");
        return Err(vec![Problem::at("key", reason)]);
    }
    Ok(names.clone())
}

fn taken_twice(column: &str) -> Reason {
    let message = format!("column \"{column}\" is given twice: by a field, and by a linked table");
    Reason::new(ErrorCode::DuplicateColumn, message)
}

/// Returns whether a cell is read alike as values of both types.
fn reads_alike(one: DataType, other: DataType) -> bool {
    let is_text = |data_type| matches!(data_type, DataType::String | DataType::Text);
    one == other || is_text(one) && is_text(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_alike_as_both_types_of_texts_only() {
        assert!(reads_alike(DataType::String, DataType::Text));
        assert!(reads_alike(DataType::Float, DataType::Float));
        assert!(!reads_alike(DataType::Float, DataType::Integer));
        assert!(!reads_alike(DataType::Text, DataType::Integer));
    }
}
