//! The report of a revert with restore.

use std::collections::BTreeMap;

use super::RestorePlan;
use crate::{
    data::{
        revert::{
            DELETED_POINTS, DELETED_ROWS, RecordedDeletions, RevertReport, deleted_with_rows,
            length,
        },
        write::{DeletedSeries, LedgerAction, LedgerEntry},
    },
    ids::ExecutionId,
};

/// Facts of a revert with restore, found by the store that did it.
#[derive(Clone, Debug, Default)]
pub struct RestoreFacts {
    /// Ledger entries of the execution that no earlier revert took.
    pub ledger: Vec<LedgerEntry>,
    /// Names of tables in the trash that the execution changed.
    pub in_trash: Vec<String>,
    /// The execution's deletions, as far as they are recorded.
    pub deletions: RecordedDeletions,
    /// Number of rows that were deleted.
    pub deleted: u64,
    /// Number of rows that came back or got their earlier values back.
    pub restored: u64,
    /// Number of points of the execution's own series that were deleted.
    pub points_deleted: u64,
    /// Number of points that came back.
    pub points_restored: u64,
    /// Series deleted with rows, by raw table.
    pub series: BTreeMap<String, DeletedSeries>,
    /// Annotations of images that the execution had saved, all of them deleted now.
    pub annotations: u64,
    /// The execution of the revert's own changes; `None` where there were none.
    pub undo_execution: Option<ExecutionId>,
}

impl RestorePlan {
    /// The report of the plan once it is done.
    #[must_use]
    pub fn report(&self, facts: &RestoreFacts) -> RevertReport {
        let skipped = facts.deletions.skipped(&facts.ledger, &self.created);
        // The database deletes them with their rows, so no statement of the revert counts them.
        let cascaded: u64 = facts.series.values().map(|series| series.points).sum();
        let warnings = self.not_restored(facts);
        let warnings = warnings.chain(self.conflicts("were left as they are"));
        RevertReport {
            deleted_count: facts.deleted,
            raws_deleted_count: facts.points_deleted + cascaded,
            skipped_count: skipped,
            annotations_deleted_count: facts.annotations,
            restored_count: facts.restored,
            raws_restored_count: facts.points_restored,
            undo_execution: facts.undo_execution,
            in_trash: facts.in_trash.clone(),
            warnings: warnings.chain(deleted_with_rows(&facts.series)).collect(),
        }
    }

    /// Warnings of changes whose earlier values are not stored.
    fn not_restored<'p>(&'p self, facts: &'p RestoreFacts) -> impl Iterator<Item = String> + 'p {
        let mut sums: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
        for entry in &facts.ledger {
            let is_unknown =
                // Rows that the history knows are in the plan, whether they are undone or not.
                |id: &&String| !self.touched.contains(&(entry.table.clone(), (*id).clone()));
            let unknown = || length(entry.ids.iter().filter(is_unknown).count());
            let (what, count) = match entry.action {
                LedgerAction::Updated => ("updated rows", unknown()),
                LedgerAction::Deleted => (DELETED_ROWS, unknown()),
                LedgerAction::PointsDeleted => (DELETED_POINTS, entry.count),
                // Created rows need no earlier values to be undone; series are looked at together.
                _ => continue,
            };
            *sums.entry((&entry.table, what)).or_default() += count;
        }
        for ((table, what), count) in &mut sums {
            if *what == DELETED_POINTS {
                let stored = facts.deletions.points.get(*table).copied();
                *count = count.saturating_sub(stored.unwrap_or_default());
            }
        }
        for (table, count) in self.lost_series(facts) {
            sums.insert((table, "replaced series"), count);
        }
        let sums = sums.into_iter().filter(|(_, count)| *count > 0);
        sums.map(|((table, what), count)| {
            format!(
                "not undone: {count} {what} of \"{table}\", whose earlier values are not stored"
            )
        })
    }

    /// Numbers of replaced series whose earlier points are not stored, by raw table.
    fn lost_series<'p>(&'p self, facts: &RestoreFacts) -> BTreeMap<&'p str, u64> {
        let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
        for series in &self.lost_series {
            let (table, parent) = series;
            let mut ledger = facts.ledger.iter();
            // An earlier revert has warned of the rest.
            let is_new = ledger.any(|entry| {
                entry.action == LedgerAction::SeriesReplaced
                    && entry.table == *table
                    && entry.ids.contains(parent)
            });
            if is_new || self.left_series.contains(series) {
                *lost.entry(table).or_default() += 1;
            }
        }
        lost
    }
}
