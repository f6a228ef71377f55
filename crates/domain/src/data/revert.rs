//! Reverts: undoing the writes of an execution.

use std::collections::{BTreeMap, BTreeSet};

use super::write::{DeletedSeries, LedgerAction, LedgerEntry, RowKeys};
use crate::{ids::ExecutionId, scalar::KeyValue};

/// Maximum number of ids that name the blocking rows of a table.
const MAX_NAMED_IDS: usize = 5;

/// Words for changes that are not undone.
pub(super) const DELETED_ROWS: &str = "deleted rows";
pub(super) const DELETED_POINTS: &str = "points deleted with their rows";

/// The result of a revert (contract §7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevertReport {
    /// Rows deleted that the execution had created.
    pub deleted_count: u64,
    /// Points of series deleted with them.
    pub raws_deleted_count: u64,
    /// Created rows that no longer existed.
    pub skipped_count: u64,
    /// Annotations of images deleted that the execution had saved.
    pub annotations_deleted_count: u64,
    /// Rows that came back, or got their earlier values back.
    pub restored_count: u64,
    /// Points of series that came back.
    pub raws_restored_count: u64,
    /// The execution of the changes of a revert with restore, which can be reverted in turn.
    pub undo_execution: Option<ExecutionId>,
    /// Names of tables in the trash that the execution changed. Another revert undoes these changes once the tables are
    /// restored.
    pub in_trash: Vec<String>,
    /// Changes that could not be undone, and surprises, one sentence each.
    pub warnings: Vec<String>,
}

/// Deletions of an execution that are recorded with the values before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedDeletions {
    /// Number of deletions of rows that the execution had created, by table and key.
    pub own_rows: BTreeMap<String, BTreeMap<String, u64>>,
    /// Points deleted with their rows that the execution had written, by raw table.
    pub own_points: BTreeMap<String, u64>,
    /// Points deleted with their rows, by raw table.
    pub points: BTreeMap<String, u64>,
}

impl RecordedDeletions {
    /// Number of these deletions of what the execution had created: nothing of it is left to undo.
    fn own(&self, table: &str, what: &str) -> u64 {
        let own = match what {
            DELETED_ROWS => self.own_rows.get(table).map(|rows| rows.values().sum()),
            DELETED_POINTS => self.own_points.get(table).copied(),
            _ => None,
        };
        own.unwrap_or_default()
    }

    fn is_own(&self, table: &str, id: &str) -> bool {
        let rows = self.own_rows.get(table);
        rows.is_some_and(|rows| rows.contains_key(id))
    }

    /// Number of created rows that no longer exist.
    pub(super) fn skipped(&self, ledger: &[LedgerEntry], existing: &CreatedRows) -> u64 {
        let mut created: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in ledger {
            if entry.action == LedgerAction::Created {
                *created.entry(&entry.table).or_default() += entry.count;
            }
        }
        let skipped = created.into_iter().map(|(table, count)| {
            let existing = existing.get(table);
            let deleted = self.own_rows.get(table).into_iter().flatten();
            // A row that the execution deleted and created again was created twice, and is one row.
            let (mut deletions, mut absent) = (0, 0);
            for (id, times) in deleted {
                deletions += times;
                absent += u64::from(existing.is_none_or(|keys| !keys.contains(id)));
            }
            let existing = existing.map_or(0, |keys| length(keys.len()));
            (count + absent).saturating_sub(existing + deletions)
        });
        skipped.sum()
    }
}

/// Facts of a revert, found by the store that deleted the created rows.
#[derive(Clone, Debug, Default)]
pub struct RevertFacts {
    /// Ledger entries of the execution that no earlier revert took.
    pub ledger: Vec<LedgerEntry>,
    /// Names of tables in the trash that the execution changed.
    pub in_trash: Vec<String>,
    /// The execution's deletions, as far as they are recorded.
    pub deletions: RecordedDeletions,
    /// Created rows that still existed, all of them deleted now.
    pub rows: RowKeys,
    /// Number of these rows that another execution had updated, by table.
    pub updated_by_others: BTreeMap<String, u64>,
    /// Series deleted with these rows, by raw table.
    pub series: BTreeMap<String, DeletedSeries>,
    /// Annotations of images that the execution had saved, all of them deleted now.
    pub annotations: u64,
}

impl RevertReport {
    /// Adds the warnings of tables in the trash. Those that the caller may not see are not named.
    #[must_use]
    pub fn with_trash_warnings(mut self, is_visible: impl Fn(&str) -> bool) -> Self {
        let (visible, hidden): (Vec<_>, Vec<_>) =
            self.in_trash.iter().partition(|name| is_visible(name));
        let visible = visible.into_iter().map(|name| format!("\"{name}\""));
        let hidden = (!hidden.is_empty()).then(|| "another table".to_owned());
        let warnings = visible.chain(hidden).map(|table| {
            format!(
                "not undone: what was written to {table}, which is in the trash; restore the table, then revert again"
            )
        });
        let warnings: Vec<String> = warnings.collect();
        self.warnings.extend(warnings);
        self
    }

    /// The report for these facts.
    #[must_use]
    pub fn new(facts: &RevertFacts) -> Self {
        let created = created_rows(facts);
        let skipped = facts.deletions.skipped(&facts.ledger, &created);
        // A row that the execution created is deleted with what others changed of it: worth a warning, no obstacle.
        let updated = facts
            .updated_by_others
            .iter()
            .filter(|(_, rows)| **rows > 0);
        let updated = updated.map(|(table, rows)| {
            format!("{rows} rows of \"{table}\" were deleted although another execution had changed them since")
        });
        Self {
            deleted_count: created.values().map(|keys| length(keys.len())).sum(),
            raws_deleted_count: facts.series.values().map(|series| series.points).sum(),
            skipped_count: skipped,
            annotations_deleted_count: facts.annotations,
            in_trash: facts.in_trash.clone(),
            warnings: not_undone(facts, &created)
                .chain(updated)
                .chain(deleted_with_rows(&facts.series))
                .collect(),
            ..Self::default()
        }
    }
}

/// Keys of rows that an execution created and that exist, as the ledger has them, by table.
pub(super) type CreatedRows = BTreeMap<String, BTreeSet<String>>;

fn created_rows(facts: &RevertFacts) -> CreatedRows {
    let texts = |keys: &BTreeSet<KeyValue>| keys.iter().map(ToString::to_string).collect();
    let rows = facts.rows.iter();
    rows.map(|(table, keys)| (table.name.clone(), texts(keys)))
        .collect()
}

/// Warnings of series that another execution wrote: the cascade of a foreign key deletes them without a word.
pub(super) fn deleted_with_rows(
    series: &BTreeMap<String, DeletedSeries>,
) -> impl Iterator<Item = String> {
    let series = series.iter().filter(|(_, series)| series.of_others > 0);
    series.map(|(table, series)| {
        format!(
            "{} series of \"{table}\" that another execution wrote were deleted with their rows",
            series.of_others
        )
    })
}

pub(super) fn length(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Warnings of changes to rows and series that the execution had not created.
fn not_undone(facts: &RevertFacts, created: &CreatedRows) -> impl Iterator<Item = String> {
    let deletions = &facts.deletions;
    // For a series the ledger has the raw table and the parents' ids, but not the parents' table,
    // so a created row of any table counts, also one that was deleted again.
    let is_created = |id: &String| {
        let mut deleted = deletions.own_rows.values();
        created.values().any(|keys| keys.contains(id)) || deleted.any(|rows| rows.contains_key(id))
    };
    let mut sums: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
    for entry in &facts.ledger {
        let ids = entry.ids.iter();
        let (what, count) = match entry.action {
            LedgerAction::Created => continue,
            LedgerAction::Updated => {
                let own = created.get(&entry.table);
                // Rows that the execution created are deleted, so their updates need no undoing.
                let others = ids.filter(|id| own.is_none_or(|keys| !keys.contains(*id)));
                let others = others.filter(|id| !deletions.is_own(&entry.table, id));
                ("updated rows", length(others.count()))
            }
            LedgerAction::Deleted => (DELETED_ROWS, entry.count),
            LedgerAction::PointsDeleted => (DELETED_POINTS, entry.count),
            LedgerAction::SeriesWritten => {
                let others = ids.filter(|id| !is_created(id));
                (
                    "series written to rows that existed before",
                    length(others.count()),
                )
            }
            LedgerAction::SeriesReplaced => {
                let others = ids.filter(|id| !is_created(id));
                ("replaced series", length(others.count()))
            }
        };
        *sums.entry((entry.table.clone(), what)).or_default() += count;
    }
    for ((table, what), count) in &mut sums {
        *count = count.saturating_sub(deletions.own(table, what));
    }
    sums.into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|((table, what), count)| format!("not undone: {count} {what} of \"{table}\""))
}

/// Rows of other executions that keep a revert from deleting the rows that they reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The table whose rows reference created rows.
    pub table: String,
    /// Number of these rows.
    pub count: u64,
    /// Ids of the first of them.
    pub ids: Vec<String>,
}

impl Blocker {
    /// The blockers that these rows are, per table.
    #[must_use]
    pub fn of_rows(rows: &RowKeys) -> Vec<Self> {
        let blockers = rows.iter().filter(|(_, keys)| !keys.is_empty());
        blockers
            .map(|(table, keys)| Self {
                table: table.name.clone(),
                count: length(keys.len()),
                ids: keys
                    .iter()
                    .take(MAX_NAMED_IDS)
                    .map(ToString::to_string)
                    .collect(),
            })
            .collect()
    }

    /// A sentence for the person who reverts.
    #[must_use]
    pub fn describe(blockers: &[Self]) -> String {
        let rows: Vec<String> = blockers
            .iter()
            .map(|blocker| {
                let more = if blocker.count > length(blocker.ids.len()) {
                    ", …"
                } else {
                    ""
                };
                format!(
                    "{} of \"{}\" ({}{more})",
                    blocker.count,
                    blocker.table,
                    blocker.ids.join(", ")
                )
            })
            .collect();
        format!(
            "rows written by other executions reference rows that this one created: {}; delete or revert those first",
            rows.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::KeyedTable;

    #[test]
    fn blockers_are_described_with_some_of_their_ids() {
        let blocker = |table: &str, count, ids: &[&str]| Blocker {
            table: table.to_owned(),
            count,
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        let text = Blocker::describe(&[
            blocker("measurement", 2, &["a", "b"]),
            blocker("curve", 7, &["c"]),
        ]);
        let listed = "2 of \"measurement\" (a, b); 7 of \"curve\" (c, …)";
        assert!(text.contains(listed), "{text}");
    }

    fn keys(table: &str, keys: &[&str]) -> (KeyedTable, BTreeSet<KeyValue>) {
        let keys = keys.iter().map(|key| KeyValue::Text((*key).to_owned()));
        (KeyedTable::named(table), keys.collect())
    }

    fn entry(table: &str, action: LedgerAction, count: u64, ids: &[&str]) -> LedgerEntry {
        LedgerEntry {
            table: table.to_owned(),
            action,
            count,
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            stored: Vec::new(),
        }
    }

    #[test]
    fn created_rows_that_are_gone_count_as_skipped_per_table() {
        let facts = RevertFacts {
            ledger: vec![
                entry("sample", LedgerAction::Created, 2, &[]),
                entry("sample", LedgerAction::Created, 3, &[]),
                entry("carrier", LedgerAction::Created, 1, &[]),
            ],
            rows: RowKeys::from([keys("sample", &["a", "b"]), keys("carrier", &["p"])]),
            ..RevertFacts::default()
        };
        let report = RevertReport::new(&facts);
        assert_eq!((report.deleted_count, report.skipped_count), (3, 3));
        assert_eq!(report.warnings, Vec::<String>::new());
    }

    #[test]
    fn changes_to_rows_that_the_execution_did_not_create_are_not_undone() {
        let facts = RevertFacts {
            ledger: vec![
                entry("sample", LedgerAction::Created, 1, &[]),
                entry("sample", LedgerAction::Updated, 3, &["a", "x", "y"]),
                entry("carrier", LedgerAction::Updated, 1, &["a"]),
                entry("sample", LedgerAction::Deleted, 2, &["d", "e"]),
                entry("curve", LedgerAction::PointsDeleted, 7, &[]),
                entry("curve", LedgerAction::SeriesWritten, 20, &["a", "x"]),
                entry("curve", LedgerAction::SeriesReplaced, 10, &["x"]),
                entry("trace", LedgerAction::SeriesWritten, 5, &["a"]),
            ],
            rows: RowKeys::from([keys("sample", &["a"])]),
            ..RevertFacts::default()
        };
        assert_eq!(
            RevertReport::new(&facts).warnings,
            [
                "not undone: 1 updated rows of \"carrier\"",
                "not undone: 7 points deleted with their rows of \"curve\"",
                "not undone: 1 replaced series of \"curve\"",
                "not undone: 1 series written to rows that existed before of \"curve\"",
                "not undone: 2 deleted rows of \"sample\"",
                "not undone: 2 updated rows of \"sample\"",
            ]
        );
    }

    #[test]
    fn what_the_execution_deleted_of_its_own_is_neither_skipped_twice_nor_warned_of() {
        let own = [("again".to_owned(), 2), ("passing".to_owned(), 1)];
        let facts = RevertFacts {
            ledger: vec![
                entry("sample", LedgerAction::Created, 4, &[]),
                entry("sample", LedgerAction::Updated, 1, &["passing"]),
                entry(
                    "sample",
                    LedgerAction::Deleted,
                    3,
                    &["again", "passing", "again"],
                ),
                entry("curve", LedgerAction::SeriesWritten, 9, &["passing"]),
                entry("curve", LedgerAction::PointsDeleted, 9, &[]),
            ],
            deletions: RecordedDeletions {
                own_rows: BTreeMap::from([("sample".to_owned(), BTreeMap::from(own))]),
                own_points: BTreeMap::from([("curve".to_owned(), 9)]),
                ..RecordedDeletions::default()
            },
            rows: RowKeys::from([keys("sample", &["again"])]),
            ..RevertFacts::default()
        };
        let report = RevertReport::new(&facts);
        assert_eq!((report.deleted_count, report.skipped_count), (1, 1));
        assert_eq!(report.warnings, Vec::<String>::new());
    }

    #[test]
    fn tables_in_the_trash_are_named_to_those_who_may_see_them() {
        let report = RevertReport {
            in_trash: vec!["plate".to_owned(), "secret".to_owned()],
            ..RevertReport::default()
        };
        let warnings = report.with_trash_warnings(|name| name == "plate").warnings;
        let named: Vec<_> = warnings
            .iter()
            .map(|it| it.split(',').next().unwrap())
            .collect();
        assert_eq!(
            named,
            [
                "not undone: what was written to \"plate\"",
                "not undone: what was written to another table",
            ]
        );
    }

    #[test]
    fn work_of_others_that_goes_with_the_rows_is_a_warning() {
        let series = |points, of_others| DeletedSeries { points, of_others };
        let facts = RevertFacts {
            rows: RowKeys::from([keys("sample", &["a"])]),
            updated_by_others: BTreeMap::from([
                ("carrier".to_owned(), 0),
                ("sample".to_owned(), 1),
            ]),
            series: BTreeMap::from([
                ("curve".to_owned(), series(8, 2)),
                ("trace".to_owned(), series(4, 0)),
            ]),
            ..RevertFacts::default()
        };
        let report = RevertReport::new(&facts);
        assert_eq!(report.raws_deleted_count, 12);
        assert_eq!(
            report.warnings,
            [
                "1 rows of \"sample\" were deleted although another execution had changed them since",
                "2 series of \"curve\" that another execution wrote were deleted with their rows",
            ]
        );
    }

    #[test]
    fn blockers_name_at_most_five_rows_per_table() {
        let rows = RowKeys::from([
            keys("aliquot", &["1", "2", "3", "4", "5", "6"]),
            keys("remark", &["r"]),
            keys("step", &[]),
        ]);
        assert_eq!(
            Blocker::describe(&Blocker::of_rows(&rows)),
            "rows written by other executions reference rows that this one created: \
             6 of \"aliquot\" (1, 2, 3, 4, 5, …); 1 of \"remark\" (r); delete or revert those first"
        );
    }
}
