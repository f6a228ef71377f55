//! The ledger: one entry per execution, table, kind of change and request.

use std::{collections::BTreeMap, fmt};

use super::{
    outcome::{DeletedSeries, RowKeys, SeriesOutcome, count},
    row_image::RowImage,
};

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerAction {
    /// Rows created. The rows carry their execution, so the entry has no ids.
    Created,
    /// Rows updated.
    Updated,
    /// Rows deleted, asked for or by a cascade.
    Deleted,
    /// Series written; counts points, the ids are the parents'.
    SeriesWritten,
    /// Earlier series replaced; counts points, the ids are the parents'.
    SeriesReplaced,
    /// Points deleted with their parents.
    PointsDeleted,
}

impl LedgerAction {
    const ALL: [Self; 6] = [
        Self::Created,
        Self::Updated,
        Self::Deleted,
        Self::SeriesWritten,
        Self::SeriesReplaced,
        Self::PointsDeleted,
    ];

    /// The action's name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::SeriesWritten => "series_written",
            Self::SeriesReplaced => "series_replaced",
            Self::PointsDeleted => "points_deleted",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

impl fmt::Display for LedgerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change of an execution to one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The table.
    pub table: String,
    /// Kind of change.
    pub action: LedgerAction,
    /// Number of rows, or of points of a raw table.
    pub count: u64,
    /// Ids of the rows or parents, where the kind of change needs them.
    pub ids: Vec<String>,
    /// Values of the first rows that were updated or deleted.
    pub stored: Vec<RowImage>,
}

impl LedgerEntry {
    /// An entry without changes.
    fn new(table: &str, action: LedgerAction) -> Self {
        Self {
            table: table.to_owned(),
            action,
            count: 0,
            ids: Vec::new(),
            stored: Vec::new(),
        }
    }

    /// Rows created.
    #[must_use]
    pub fn created(table: &str, count: u64) -> Self {
        Self {
            count,
            ..Self::new(table, LedgerAction::Created)
        }
    }

    /// Rows updated.
    #[must_use]
    pub fn updated(table: &str, ids: Vec<String>, stored: Vec<RowImage>) -> Self {
        Self {
            count: count(ids.len()),
            ids,
            stored,
            ..Self::new(table, LedgerAction::Updated)
        }
    }

    /// Rows of several tables deleted, with their points. `stored` has the values of the first rows by table.
    #[must_use]
    pub fn deleted(
        rows: &RowKeys,
        series: &BTreeMap<String, DeletedSeries>,
        mut stored: BTreeMap<String, Vec<RowImage>>,
    ) -> Vec<Self> {
        let rows = rows.iter().map(|(table, keys)| Self {
            count: count(keys.len()),
            ids: keys.iter().map(ToString::to_string).collect(),
            stored: stored.remove(&table.name).unwrap_or_default(),
            ..Self::new(&table.name, LedgerAction::Deleted)
        });
        let points = series.iter().map(|(table, series)| Self {
            count: series.points,
            ..Self::new(table, LedgerAction::PointsDeleted)
        });
        rows.chain(points).filter(|entry| entry.count > 0).collect()
    }

    /// Points deleted.
    #[must_use]
    pub fn points_deleted(table: &str, count: u64) -> Self {
        Self {
            count,
            ..Self::new(table, LedgerAction::PointsDeleted)
        }
    }

    /// Points of deleted series that came back.
    #[must_use]
    pub fn points_restored(table: &str, count: u64) -> Self {
        Self {
            count,
            ..Self::new(table, LedgerAction::SeriesWritten)
        }
    }

    /// Series written, and earlier ones replaced.
    #[must_use]
    pub fn of_series(series: &[SeriesOutcome]) -> Vec<Self> {
        let written = series
            .iter()
            .map(|series| (LedgerAction::SeriesWritten, series, series.points_written));
        let replaced = series
            .iter()
            .filter(|series| series.points_replaced > 0)
            .map(|series| (LedgerAction::SeriesReplaced, series, series.points_replaced));
        // One entry per table: a request with ten thousand series writes two rows, not twenty thousand.
        let mut entries: BTreeMap<(LedgerAction, &str), Self> = BTreeMap::new();
        for (action, series, points) in written.chain(replaced) {
            let entry = entries
                .entry((action, &series.table))
                .or_insert_with(|| Self::new(&series.table, action));
            entry.count += points;
            entry.ids.push(series.parent.to_string());
        }
        entries.into_values().collect()
    }
}
