//! What undoing an execution's writes did.

/// The result of a revert (contract §7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevertReport {
    /// Rows deleted that the execution had created.
    pub deleted_count: u64,
    /// Points of series deleted with them.
    pub raws_deleted_count: u64,
    /// Created rows that no longer existed.
    pub skipped_count: u64,
    /// What could not be undone, one sentence each.
    pub warnings: Vec<String>,
}

/// Rows of other executions that keep a revert from deleting what they reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The table whose rows reference created rows.
    pub table: String,
    /// How many.
    pub count: u64,
    /// Ids of some of them.
    pub ids: Vec<String>,
}

impl Blocker {
    /// A sentence for the person who reverts.
    #[must_use]
    pub fn describe(blockers: &[Self]) -> String {
        let rows: Vec<String> = blockers
            .iter()
            .map(|blocker| {
                let more = if blocker.count > blocker.ids.len().try_into().unwrap_or(u64::MAX) {
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
}
