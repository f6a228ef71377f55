//! Changes of an execution, and who undid them (contract §12).

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use time::OffsetDateTime;

use super::write::LedgerAction;
use crate::ids::{ApiKeyId, UserId};

/// Maximum number of ids of each kind of change that are displayed beside the counts.
pub const SHOWN_IDS: u32 = 100;

/// Maximum number of files that are displayed; the list of files has them all.
pub const SHOWN_FILES: u32 = 1000;

/// Kind of change to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowChange {
    /// Rows created. Those that no longer exist have no ids any more.
    Created,
    /// Rows updated.
    Updated,
    /// Rows deleted, asked for or by a cascade.
    Deleted,
}

impl RowChange {
    /// All kinds and their names in the API.
    pub const ALL: [(&'static str, Self); 3] = [
        (Self::Created.as_str(), Self::Created),
        (Self::Updated.as_str(), Self::Updated),
        (Self::Deleted.as_str(), Self::Deleted),
    ];

    /// All names in the API.
    pub const NAMES: [&'static str; 3] = [
        Self::Created.as_str(),
        Self::Updated.as_str(),
        Self::Deleted.as_str(),
    ];

    /// Its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.action().as_str()
    }

    /// The action under which the ledger has it.
    #[must_use]
    pub const fn action(self) -> LedgerAction {
        match self {
            Self::Created => LedgerAction::Created,
            Self::Updated => LedgerAction::Updated,
            Self::Deleted => LedgerAction::Deleted,
        }
    }
}

/// Changes of an execution in one table. A second revert of the same rows changes nothing here: the
/// numbers are those of the writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableChanges {
    /// Number of rows created.
    pub created: u64,
    /// Number of different rows updated.
    pub updated: u64,
    /// Number of rows deleted.
    pub deleted: u64,
    /// Number of points of series written to a raw table.
    pub series_points: u64,
    /// The first ids of each kind.
    pub ids: BTreeMap<RowChange, Vec<String>>,
}

impl TableChanges {
    /// Number of rows with that kind of change.
    #[must_use]
    pub const fn count(&self, change: RowChange) -> u64 {
        match change {
            RowChange::Created => self.created,
            RowChange::Updated => self.updated,
            RowChange::Deleted => self.deleted,
        }
    }
}

/// The first revert of an execution, or the first since an earlier one was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted {
    /// When.
    pub at: OffsetDateTime,
    /// The user.
    pub user: UserId,
    /// The key that the user showed, if it was one.
    pub api_key: Option<ApiKeyId>,
}

/// Changes of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionChanges {
    /// By table.
    pub tables: BTreeMap<String, TableChanges>,
    /// The first revert, if there was one.
    pub reverted: Option<Reverted>,
}

impl ExecutionChanges {
    /// Adds what the ledger counts for a table. `count` of updates is that of different rows.
    pub fn add(&mut self, table: &str, action: LedgerAction, count: u64) {
        let changes = self.tables.entry(table.to_owned()).or_default();
        let total = match action {
            LedgerAction::Created => &mut changes.created,
            LedgerAction::Updated => &mut changes.updated,
            LedgerAction::Deleted => &mut changes.deleted,
            LedgerAction::SeriesWritten => &mut changes.series_points,
            // Points that were replaced or deleted are not points that the execution has written.
            LedgerAction::SeriesReplaced | LedgerAction::PointsDeleted => return,
        };
        *total = total.saturating_add(count);
    }
}

/// Position in a list of ids, which are ordered by their bytes; the next page starts after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdCursor(pub String);

impl IdCursor {
    /// Encodes the cursor as an opaque, URL-safe text.
    #[must_use]
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.0)
    }

    /// Decodes a text written by [`IdCursor::encode`]; `None` for any other text.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?)
            .ok()
            .filter(|id| !id.is_empty() && !id.contains('\0'))
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_points_that_were_written_count_as_points() {
        let mut changes = ExecutionChanges::default();
        for (action, count) in [
            (LedgerAction::Created, 2),
            (LedgerAction::Created, 3),
            (LedgerAction::Updated, 1),
            (LedgerAction::Deleted, 4),
            (LedgerAction::SeriesWritten, 7),
            (LedgerAction::SeriesReplaced, 5),
            (LedgerAction::PointsDeleted, 6),
        ] {
            changes.add("sample", action, count);
        }
        let sample = &changes.tables["sample"];
        let rows = RowChange::ALL.map(|(_, change)| sample.count(change));
        assert_eq!((rows, sample.series_points), ([5, 1, 4], 7));
    }

    #[test]
    fn a_cursor_reads_back_and_garbage_does_not() {
        let cursor = IdCursor("größe/1".to_owned());
        assert_eq!(IdCursor::decode(&cursor.encode()), Some(cursor));
        assert_eq!(IdCursor::decode(""), None);
        assert_eq!(IdCursor::decode("!"), None);
        assert_eq!(IdCursor::decode("_w"), None);
        assert_eq!(IdCursor::decode("AA"), None, "no text holds NUL");
    }
}
