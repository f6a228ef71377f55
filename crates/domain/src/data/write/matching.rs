//! Updates, upserts and deletes: the effect on each row of a step, given the stored rows that the
//! rows' keys match.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};

use super::{
    Action, Problem, RowMatch, TableStep,
    problem::{Reason, missing_column},
};
use crate::{refusal::ErrorCode, scalar::KeyValue};

/// A step whose rows are matched with stored rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedStep {
    /// The primary key of each row, in input order: the matched row's or the created row's.
    pub keys: Vec<KeyValue>,
    /// Indices of rows that match a stored row.
    pub matched: Vec<usize>,
    /// Indices of rows to create.
    pub created: Vec<usize>,
}

impl MatchedStep {
    /// The keys of rows with these indices.
    pub fn keys_of<'s>(&'s self, rows: &'s [usize]) -> impl Iterator<Item = &'s KeyValue> {
        rows.iter().filter_map(|row| self.keys.get(*row))
    }
}

/// A stored row that references a row which a delete takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReference {
    /// The referencing row's table.
    pub table: String,
    /// The referencing row's primary key.
    pub key: KeyValue,
    /// The referenced row's primary key.
    pub target: KeyValue,
}

impl TableStep {
    /// Indices of the columns by which rows are matched; none for an insert.
    #[must_use]
    pub fn key_columns(&self) -> &[usize] {
        match &self.action {
            Action::Insert => &[],
            Action::Upsert { key, .. }
            | Action::Update { key, .. }
            | Action::Delete { key, .. } => key,
        }
    }

    /// Returns whether rows that reference deleted rows are deleted as well.
    #[must_use]
    pub const fn cascades(&self) -> bool {
        matches!(self.action, Action::Delete { cascade: true, .. })
    }

    /// Decides the effect on each row. `found` holds the stored rows that each row's key matches.
    ///
    /// # Errors
    /// Every problem, in the order of rows: the key matches several rows, the same row as an
    /// earlier one, or no row where the action needs one; a given primary key differs from the
    /// matched row's; a row to be created lacks a required column.
    pub fn assign_matches(&self, found: Vec<RowMatch>) -> Result<MatchedStep, Vec<Problem>> {
        let mut assigned = MatchedStep::default();
        let mut problems = Vec::new();
        let mut first_rows: HashMap<KeyValue, usize> = HashMap::with_capacity(found.len());
        for (row, found) in found.into_iter().enumerate() {
            let reported = problems.len();
            let mut report = |reason: Reason| problems.push(Problem::at(self.path(row), reason));
            let key = match found {
                RowMatch::Several => {
                    report(Reason::new(
                        ErrorCode::KeyAmbiguous,
                        format!("the key matches several rows of \"{}\"", self.table.name),
                    ));
                    continue;
                }
                RowMatch::One(key) => {
                    match first_rows.entry(key.clone()) {
                        Entry::Vacant(entry) => {
                            entry.insert(row);
                        }
                        Entry::Occupied(first) => report(Reason::new(
                            ErrorCode::DuplicateKey,
                            format!(
                                "matches the same row of \"{}\" as {}",
                                self.table.name,
                                self.row_names.row(*first.get())
                            ),
                        )),
                    }
                    problems.extend(self.changed_primary_key(row, &key));
                    assigned.matched.push(row);
                    Some(key)
                }
                RowMatch::None if matches!(self.action, Action::Upsert { .. }) => {
                    for name in self.missing_to_create(row) {
                        let Reason { code, message } = missing_column(name);
                        let message = format!("matches no row, and cannot be created: {message}");
                        report(Reason::new(code, message));
                    }
                    assigned.created.push(row);
                    self.new_keys.as_ref().and_then(|keys| keys.key(row))
                }
                RowMatch::None => {
                    report(Reason::new(
                        ErrorCode::RowNotFound,
                        format!("the key matches no row of \"{}\"", self.table.name),
                    ));
                    continue;
                }
            };
            match key {
                Some(key) => assigned.keys.push(key),
                None if problems.len() == reported => problems.push(Problem::at(
                    self.path(row),
                    Reason::new(ErrorCode::MissingValue, "a created row needs a primary key"),
                )),
                None => {}
            }
        }
        if problems.is_empty() {
            Ok(assigned)
        } else {
            Err(Problem::first_of(problems))
        }
    }

    /// The problem of a row that is matched by another key and gives a new primary key.
    fn changed_primary_key(&self, row: usize, key: &KeyValue) -> Option<Problem> {
        let (index, column) = self.table.primary_key()?;
        let given = self.column(index)?;
        let given = given.values.key(row).filter(|_| given.is_provided(row))?;
        (given != *key).then(|| {
            Problem::at(
                format!("{}.{}", self.path(row), column.name),
                Reason::new(
                    ErrorCode::ColumnNotWritable,
                    format!("the row that matches has the key \"{key}\", which cannot be changed"),
                ),
            )
        })
    }

    /// Names of the columns that a created row needs and this row does not give.
    fn missing_to_create(&self, row: usize) -> impl Iterator<Item = &str> {
        self.table
            .columns
            .iter()
            .enumerate()
            .filter(move |(index, column)| {
                column.is_required_to_create()
                    && self
                        .column(*index)
                        .is_none_or(|given| !given.is_provided(row))
            })
            .map(|(_, column)| column.name.as_str())
    }

    /// Refuses a delete without cascade of rows that other stored rows reference. `keys` are the
    /// keys of the step's rows, in input order.
    ///
    /// # Errors
    /// A problem at each row per table that references it, with the number of referencing rows;
    /// rows that the step deletes as well do not count.
    pub fn check_references(
        &self,
        keys: &[KeyValue],
        references: impl IntoIterator<Item = StoredReference>,
    ) -> Result<(), Vec<Problem>> {
        let rows: HashMap<&KeyValue, usize> = keys
            .iter()
            .enumerate()
            .map(|(row, key)| (key, row))
            .collect();
        let mut referencing: BTreeMap<(usize, String), HashSet<KeyValue>> = BTreeMap::new();
        for StoredReference { table, key, target } in references {
            let is_deleted = table == self.table.name && rows.contains_key(&key);
            if let Some(row) = rows.get(&target).filter(|_| !is_deleted) {
                referencing.entry((*row, table)).or_default().insert(key);
            }
        }
        if referencing.is_empty() {
            return Ok(());
        }
        let problems = referencing.into_iter().map(|((row, table), rows)| {
            let noun = if rows.len() == 1 { "row" } else { "rows" };
            let key = keys.get(row).map(ToString::to_string).unwrap_or_default();
            Problem::at(
                self.path(row),
                Reason::new(ErrorCode::RowReferenced, format!(
                    "\"{key}\" is referenced by {} {noun} of \"{table}\"; delete them first, or set cascade",
                    rows.len()
                )),
            )
        });
        Err(Problem::first_of(problems.collect()))
    }
}
