//! Reverts that restore: what can come back, and what stands against it (contract §16).
//!
//! A store finds the rows that an execution changed ([`Touched`]) and what stands against their return
//! ([`Obstacle`]); [`RestorePlan`] decides. A chunk of a series is a row here: it is created and deleted,
//! and never changed.

mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    revert::CreatedRows,
    write::{LedgerAction, LedgerEntry},
};
use crate::catalog::Table;

pub use report::RestoreFacts;

/// Maximum number of ids that name the rows of a conflict.
const MAX_NAMED_IDS: usize = 5;

/// Treatment of what another execution changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// No change is undone.
    #[default]
    Refuse,
    /// It stays as it is, with a warning.
    Skip,
}

impl OnConflict {
    /// Both and their names in the API.
    pub const ALL: [(&'static str, Self); 2] = [("refuse", Self::Refuse), ("skip", Self::Skip)];
}

/// Reason why a row stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Another execution changed it since.
    ChangedSince,
    /// A row that stays references it.
    Referenced,
    /// It would reference a row that does not exist.
    ReferenceMissing,
    /// Another row has a value that must be unique, or another one that would come back.
    ValueTaken,
    /// A column that needs a value had none.
    ValueMissing,
    /// A column that is in the trash had another value.
    ColumnInTrash,
    /// Another execution has written a series in its place.
    SeriesReplaced,
    /// Points that reference it are of a table that the caller may not write.
    Protected,
    /// The row that its series belongs to stays.
    ParentLeft,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChangedSince => "another execution changed them since",
            Self::Referenced => "rows that stay reference them",
            Self::ReferenceMissing => "rows that they reference do not exist any more",
            Self::ValueTaken => "another row has a value of theirs that must be unique",
            Self::ValueMissing => "they have no value in a column that needs one by now",
            Self::ColumnInTrash => {
                "a column that is in the trash has values of theirs; restore or purge it first"
            }
            Self::SeriesReplaced => "another execution has written their series since",
            Self::Protected => "rows of a table that you may not change refer to them",
            Self::ParentLeft => "the rows that they belong to stay as they are",
        })
    }
}

/// A row, or a chunk of a series, that an execution changed.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Its table; a raw one for a chunk.
    pub table: Arc<Table>,
    /// Key of the row or chunk.
    pub id: String,
    /// Key of the parent of a chunk.
    pub parent: Option<String>,
    /// The stored values that it had before, as the store names them; `None` if it did not exist.
    pub before: Option<i64>,
    /// True if it exists now.
    pub exists: bool,
    /// True if it exists now, and the execution created it.
    pub is_own: bool,
    /// True if another execution changed it since.
    pub changed_since: bool,
}

/// Change that undoes the changes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It did not exist and is deleted.
    Delete,
    /// It gets these earlier values.
    ChangeBack(i64),
    /// It was deleted and is created with these earlier values.
    BringBack(i64),
}

/// A row that cannot become what it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obstacle {
    /// Its table.
    pub table: String,
    /// Key of the row or chunk.
    pub id: String,
    /// Why.
    pub reason: Reason,
}

#[derive(Clone, Debug)]
struct Planned {
    table: Arc<Table>,
    parent: Option<String>,
    undo: Undo,
}

/// A row that stays as it is.
#[derive(Clone, Debug)]
struct Left {
    reason: Reason,
    parent: Option<String>,
}

/// Rows that a revert with restore changes. Rows with obstacles leave it; that can raise new obstacles
/// for others, so a store asks until there are none.
#[derive(Clone, Debug, Default)]
pub struct RestorePlan {
    rows: BTreeMap<(String, String), Planned>,
    left: BTreeMap<(String, String), Left>,
    touched: BTreeSet<(String, String)>,
    created: CreatedRows,
    /// Raw tables and parents of the series that replaced those of others, whose points are not stored.
    lost_series: BTreeSet<(String, String)>,
    /// Those of them that are still there, and stay.
    left_series: BTreeSet<(String, String)>,
}

impl RestorePlan {
    /// A plan for the rows that an execution changed. `ledger` has at least all of its entries about series, those that an
    /// earlier revert took included.
    #[must_use]
    pub fn new(rows: impl IntoIterator<Item = Touched>, ledger: &[LedgerEntry]) -> Self {
        let rows: Vec<Touched> = rows.into_iter().collect();
        let mut plan = Self {
            lost_series: lost_series(&rows, ledger),
            ..Self::default()
        };
        for row in rows {
            let place = (row.table.name.clone(), row.id);
            plan.touched.insert(place.clone());
            // Before conflicts: a created row that stays is a conflict, not one that somebody deleted before.
            if row.is_own {
                let created = plan.created.entry(place.0.clone()).or_default();
                created.insert(place.1.clone());
            }
            let undo = match (row.exists, row.before) {
                (true, None) => Undo::Delete,
                (true, Some(before)) => Undo::ChangeBack(before),
                (false, Some(before)) => Undo::BringBack(before),
                // The execution created the row and deleted it again, or someone did since: nothing is left of it to
                // undo.
                (false, None) => continue,
            };
            // Without the points that they replaced, nothing would be left of the series.
            if undo == Undo::Delete
                && let Some(parent) = &row.parent
                && let Some(lost) = plan.lost_series.get(&(place.0.clone(), parent.clone()))
            {
                plan.left_series.insert(lost.clone());
                continue;
            }
            // A row is never undone in part: which of its values came from whom is not stored.
            let Touched { table, parent, .. } = row;
            if row.changed_since {
                let reason = Reason::ChangedSince;
                plan.left.insert(place, Left { reason, parent });
            } else {
                let planned = Planned {
                    table,
                    parent,
                    undo,
                };
                plan.rows.insert(place, planned);
            }
        }
        plan.leave_series();
        plan
    }

    /// Leaves the series that the execution wrote with created rows that stay: without them little would be left of what
    /// somebody has worked on since.
    fn leave_series(&mut self) {
        let is_left = |table: &str, id: &str| {
            self.is_left(table, id) && self.created.get(table).is_some_and(|ids| ids.contains(id))
        };
        let belongs = |planned: &Planned| {
            let mut targets = planned.table.references().map(|(_, target)| target);
            let parent = planned.parent.as_deref();
            planned.undo == Undo::Delete
                && parent.is_some_and(|id| targets.any(|target| is_left(target, id)))
        };
        let places = self.rows.iter().filter(|(_, planned)| belongs(planned));
        let places: Vec<(String, String)> = places.map(|(place, _)| place.clone()).collect();
        for place in places {
            if let Some(Planned { parent, .. }) = self.rows.remove(&place) {
                let reason = Reason::ParentLeft;
                self.left.insert(place, Left { reason, parent });
            }
        }
    }

    /// Leaves rows as they are. Returns true if the plan has changed.
    pub fn leave(&mut self, obstacles: impl IntoIterator<Item = Obstacle>) -> bool {
        let mut changed = false;
        for Obstacle { table, id, reason } in obstacles {
            let place = (table, id);
            // A row may have several obstacles; the first one is reported, and says enough.
            if let Some(planned) = self.rows.remove(&place) {
                let parent = planned.parent;
                self.left.insert(place, Left { reason, parent });
                changed = true;
            }
        }
        self.leave_series();
        changed
    }

    /// The conflicts of a revert that must not leave any.
    ///
    /// # Errors
    /// A sentence for each table and reason.
    pub fn check(&self, on_conflict: OnConflict) -> Result<(), Vec<String>> {
        if on_conflict == OnConflict::Skip || self.left.is_empty() {
            // Skipped rows become warnings of the report instead.
            return Ok(());
        }
        Err(self.conflicts("cannot be restored").collect())
    }

    /// The tables of its rows.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<Table>> {
        let tables = self.rows.values().map(|row| (&row.table.name, &row.table));
        // Each table once, in an order that does not depend on that of the rows.
        let tables: BTreeMap<_, _> = tables.collect();
        tables.into_values().cloned().collect()
    }

    /// The rows of a table with what undoes their changes.
    pub fn of<'p>(&'p self, table: &'p str) -> impl Iterator<Item = (&'p str, Undo)> {
        let rows = self.rows.iter().filter(move |((own, _), _)| own == table);
        rows.map(|((_, id), row)| (id.as_str(), row.undo))
    }

    /// Keys of the rows of a table that are deleted.
    #[must_use]
    pub fn deleted(&self, table: &str) -> Vec<String> {
        let rows = self.of(table).filter(|(_, undo)| *undo == Undo::Delete);
        rows.map(|(id, _)| id.to_owned()).collect()
    }

    /// Keys of the rows of a table that get earlier values or are created with them.
    #[must_use]
    pub fn restored(&self, table: &str) -> Vec<String> {
        let rows = self.of(table).filter(|(_, undo)| *undo != Undo::Delete);
        rows.map(|(id, _)| id.to_owned()).collect()
    }

    /// The stored values that rows of a table get, those of deleted ones or those of existing ones.
    #[must_use]
    pub fn values(&self, table: &str, deleted: bool) -> Vec<i64> {
        let rows = self.of(table).filter_map(|(_, undo)| match undo {
            Undo::ChangeBack(before) if !deleted => Some(before),
            Undo::BringBack(before) if deleted => Some(before),
            _ => None,
        });
        rows.collect()
    }

    /// Tables and keys of the rows that stay as they are.
    pub fn left(&self) -> impl Iterator<Item = (&str, &str)> {
        let left = self.left.keys();
        left.map(|(table, id)| (table.as_str(), id.as_str()))
    }

    /// Returns whether a row stays as it is.
    #[must_use]
    pub fn is_left(&self, table: &str, id: &str) -> bool {
        self.left.contains_key(&(table.to_owned(), id.to_owned()))
    }

    /// A sentence for each table and reason for which rows stay as they are.
    fn conflicts<'p>(&'p self, what: &'p str) -> impl Iterator<Item = String> + 'p {
        // Grouped, because a conflict of ten thousand rows must still be a sentence.
        let mut groups: BTreeMap<(&str, Reason, &str), BTreeSet<&str>> = BTreeMap::new();
        for ((table, id), Left { reason, parent }) in &self.left {
            // Chunks are the store's own: people know series by their parents.
            let (kind, id) = match parent {
                Some(parent) => ("series", parent),
                None => ("rows", id),
            };
            let group = groups.entry((table, *reason, kind)).or_default();
            group.insert(id);
        }
        groups.into_iter().map(move |((table, reason, kind), ids)| {
            let named = ids.iter().take(MAX_NAMED_IDS).copied();
            let named = named.collect::<Vec<_>>().join(", ");
            let more = if ids.len() > MAX_NAMED_IDS {
                ", …"
            } else {
                ""
            };
            format!(
                "{} {kind} of \"{table}\" {what} ({named}{more}): {reason}",
                ids.len()
            )
        })
    }
}

/// Raw tables and parents of the series that an execution replaced, where what others had written is not stored.
fn lost_series(rows: &[Touched], ledger: &[LedgerEntry]) -> BTreeSet<(String, String)> {
    let mut writes: BTreeMap<(&String, &String), (u64, u64)> = BTreeMap::new();
    for entry in ledger {
        for parent in &entry.ids {
            let (written, replaced) = writes.entry((&entry.table, parent)).or_default();
            match entry.action {
                LedgerAction::SeriesWritten => *written += 1,
                LedgerAction::SeriesReplaced => *replaced += 1,
                _ => {}
            }
        }
    }
    let stored = rows.iter().filter(|row| row.before.is_some());
    let stored: BTreeSet<_> = stored
        .filter_map(|row| Some((&row.table.name, row.parent.as_ref()?)))
        .collect();
    let lost = writes.into_iter().filter(|(series, (written, replaced))| {
        // Of a series that the execution wrote first, it replaced its own points alone.
        let replaced_others = *replaced > 0 && replaced >= written;
        replaced_others && !stored.contains(series)
    });
    lost.map(|((table, parent), _)| (table.clone(), parent.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
