//! Updates, upserts and deletes: the effect on each row of a step, given the stored rows that the
//! rows' keys match.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};

use time::OffsetDateTime;

use super::{
    Action, Problem, RowMatch, TableStep,
    problem::{Reason, missing_column},
};
use crate::{
    catalog::KeyedTable,
    refusal::ErrorCode,
    scalar::{KeyValue, Values},
    timestamp,
};

/// A step whose rows are matched with stored rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedStep {
    /// The primary key of each row, in input order: the matched row's or the created row's.
    pub keys: Vec<KeyValue>,
    /// Rows that match a stored row.
    pub matched: RowsWithKeys,
    /// Rows to create.
    pub created: RowsWithKeys,
}

/// Some rows of a step with their primary keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsWithKeys {
    rows: Vec<usize>,
    keys: Vec<KeyValue>,
}

impl RowsWithKeys {
    fn push(&mut self, row: usize, key: KeyValue) {
        self.rows.push(row);
        self.keys.push(key);
    }

    /// Indices of the rows in the step.
    #[must_use]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Primary keys of the rows.
    #[must_use]
    pub fn keys(&self) -> &[KeyValue] {
        &self.keys
    }

    /// Each row with its primary key.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &KeyValue)> {
        self.rows.iter().copied().zip(&self.keys)
    }
}

/// A stored row that a row of a step matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRow {
    /// Its primary key.
    pub key: KeyValue,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

/// A stored row that references a row which a delete takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReference {
    /// The referencing row's table.
    pub table: KeyedTable,
    /// The referencing row's primary key.
    pub key: KeyValue,
    /// The referenced row's primary key.
    pub target: KeyValue,
}

impl TableStep {
    /// Returns whether rows that reference deleted rows are deleted as well.
    #[must_use]
    pub const fn cascades(&self) -> bool {
        matches!(self.action, Action::Delete { cascade: true })
    }

    /// Decides the effect on each row. `found` holds the stored rows that each row's key matches.
    ///
    /// # Errors
    /// Every problem, in the order of rows: the key matches several rows, the same row as an
    /// earlier one, or no row where the action needs one; a given primary key differs from the
    /// matched row's; the matched row was changed at another time than the row expects; a row to
    /// be created lacks a required column.
    pub fn assign_matches(
        &self,
        found: Vec<RowMatch<MatchedRow>>,
    ) -> Result<MatchedStep, Vec<Problem>> {
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
                    // The checks below compare with the stored row, which is unknown.
                    continue;
                }
                RowMatch::One(MatchedRow { key, updated_at }) => {
                    // Rows with different keys may match one stored row, of which only the last would count.
                    match first_rows.entry(key.clone()) {
                        Entry::Vacant(entry) => {
                            entry.insert(row);
                        }
                        Entry::Occupied(first) => report(Reason::new(
                            ErrorCode::DuplicateKey,
                            format!(
                                "matches the same row of \"{}\" as {}",
                                self.table.name,
                                self.row_names.row(self.address(*first.get()))
                            ),
                        )),
                    }
                    problems.extend(self.changed_primary_key(row, &key));
                    problems.extend(self.changed_since(row, updated_at));
                    // Also after a problem: later rows are checked against it, so that one response lists all
                    // problems.
                    assigned.matched.push(row, key.clone());
                    Some(key)
                }
                RowMatch::None if let Some(new_keys) = self.new_keys() => {
                    for name in self.missing_to_create(row) {
                        // An upsert may update without these columns, so they are missing only once no row matches.
                        let Reason { code, message } = missing_column(name);
                        let message = format!("matches no row, and cannot be created: {message}");
                        report(Reason::new(code, message));
                    }
                    let key = new_keys.key(row);
                    if let Some(key) = &key {
                        assigned.created.push(row, key.clone());
                    }
                    key
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
                // If a missing column was reported, it includes the key.
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

    /// The primary keys of rows that an upsert creates; `None` for other actions.
    const fn new_keys(&self) -> Option<&Values> {
        match &self.action {
            Action::Upsert { new_keys, .. } => Some(new_keys),
            _ => None,
        }
    }

    /// The problem of a row that is matched by another key and gives a new primary key.
    fn changed_primary_key(&self, row: usize, key: &KeyValue) -> Option<Problem> {
        let column = self.table.key();
        let given = self.given(column)?;
        // A row that leaves the key out only finds by it; null is no new key either.
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

    /// The problem of a row that matches one which was changed at another time than it expects.
    fn changed_since(&self, row: usize, updated_at: OffsetDateTime) -> Option<Problem> {
        let expected = self.if_updated_at.get(row).copied().flatten()?;
        // Reads show microseconds.
        (expected != timestamp::to_micros(updated_at)).then(|| {
            let message = format!(
                "the row of \"{}\" that matches has been changed since: at {}, not {}; read it again",
                self.table.name,
                timestamp::render(updated_at),
                timestamp::render(expected)
            );
            Problem::at(
                self.path(row),
                Reason::new(ErrorCode::ChangedSince, message),
            )
        })
    }

    /// Names of the columns that a created row needs and this row does not give.
    fn missing_to_create(&self, row: usize) -> impl Iterator<Item = &str> {
        self.table
            .columns
            .iter()
            .filter(move |column| {
                column.is_required_to_create()
                    && self
                        .given(column)
                        .is_none_or(|given| !given.is_provided(row))
            })
            .map(|column| column.name.as_str())
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
        // Sets of keys, because a row that references a target by two of its columns is one row.
        // In the order of the rows, so that problems come in request order.
        let mut referencing: BTreeMap<(usize, KeyedTable), HashSet<KeyValue>> = BTreeMap::new();
        for StoredReference { table, key, target } in references {
            // Rows of the same delete do not block each other.
            let is_deleted = table == self.table && rows.contains_key(&key);
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
                    "\"{key}\" is referenced by {} {noun} of \"{}\"; delete them first, or set cascade",
                    rows.len(),
                    table.name
                )),
            )
        });
        Err(Problem::first_of(problems.collect()))
    }
}
