//! Ledger entries that a revert takes, and the deletions of an execution by its recorded changes.

use std::collections::BTreeSet;

use labdata_domain::{
    data::{history::ChangeAction, revert::RecordedDeletions, write::LedgerEntry},
    ids::{ExecutionId, TrashId},
};

use super::{history::Stored, tables::Tables};

impl Tables {
    /// Takes the execution's entries that no revert took. Those of tables in the trash stay; their names are the second.
    pub(super) fn take_ledger(
        &mut self,
        execution: ExecutionId,
        trash: &BTreeSet<TrashId>,
    ) -> (Vec<LedgerEntry>, Vec<String>) {
        let (mut own, mut in_trash) = (Vec::new(), BTreeSet::new());
        let ledger = self.ledger.iter_mut();
        for recorded in ledger.filter(|it| it.execution == execution && !it.is_reverted) {
            if recorded.trash.is_some_and(|id| trash.contains(&id)) {
                in_trash.insert(recorded.entry.table.clone());
            } else {
                recorded.is_reverted = true;
                own.push(recorded.entry.clone());
            }
        }
        (own, in_trash.into_iter().collect())
    }

    /// The execution's entries, those that a revert took included.
    pub(super) fn entries_of(&self, execution: ExecutionId) -> Vec<LedgerEntry> {
        let own = self.ledger.iter().filter(|it| it.execution == execution);
        own.map(|it| it.entry.clone()).collect()
    }

    pub(super) fn recorded_deletions(&self, execution: ExecutionId) -> RecordedDeletions {
        let mut deletions = RecordedDeletions::default();
        let changes = self.changes.iter().filter(|it| {
            it.author.execution == Some(execution)
                && it.action == ChangeAction::Deleted
                && it.owner.is_none()
                && !it.is_undone
        });
        for change in changes {
            let table = || change.table.clone();
            match &change.before {
                Some(Stored::Row(row)) if row.created_by == execution => {
                    let own = deletions.own_rows.entry(table()).or_default();
                    *own.entry(change.id.clone()).or_default() += 1;
                }
                Some(Stored::Series(series)) => {
                    let points = u64::try_from(series.points.len()).unwrap_or(u64::MAX);
                    *deletions.points.entry(table()).or_default() += points;
                    if series.execution == execution {
                        *deletions.own_points.entry(table()).or_default() += points;
                    }
                }
                _ => {}
            }
        }
        deletions
    }
}
