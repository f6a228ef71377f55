//! Versions of a row (contract §16).
//!
//! Every change of a row that exists is recorded with the values before it; the current values are in the
//! table. So a version is what a recorded change made, or a creation, which is not recorded.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::read::RowJson;
use crate::{catalog::SystemColumn, ids::ExecutionId};

/// Maximum number of versions of a page.
pub const MAX_VERSIONS: u32 = 1000;

/// Kind of a recorded change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeAction {
    /// The row got other values.
    Updated,
    /// The row was deleted.
    Deleted,
    /// The row got earlier values back, or was created again with them.
    Restored,
}

impl ChangeAction {
    const ALL: [Self; 3] = [Self::Updated, Self::Deleted, Self::Restored];

    /// The action's name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Restored => "restored",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// Change by which a version came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOperation {
    /// The row was created.
    Created,
    /// A recorded change.
    Changed(ChangeAction),
}

impl VersionOperation {
    /// All names in the API.
    pub const NAMES: [&'static str; 4] = ["created", "updated", "deleted", "restored"];

    /// Its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed(action) => action.as_str(),
        }
    }
}

/// A recorded change, with the row as it was before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChange {
    /// Kind of change.
    pub action: ChangeAction,
    /// When.
    pub at: OffsetDateTime,
    /// The execution; `None` for a revert without restore.
    pub execution: Option<ExecutionId>,
    /// The row before; `None` if it did not exist.
    pub before: Option<RowJson>,
}

/// A version of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowVersion {
    /// Its number: 1 for the row's first version, then one more for each change. Numbers of deleted versions are
    /// not given again.
    pub version: u64,
    /// The change by which it came to be.
    pub operation: VersionOperation,
    /// When.
    pub at: Option<OffsetDateTime>,
    /// The execution; `None` for a revert without restore.
    pub execution: Option<ExecutionId>,
    /// The values that the row then had; of a deletion those that it lost.
    pub values: Map<String, Value>,
    /// Columns that differ from the version before, with their values there and here. Columns that the
    /// server sets are left out.
    pub changed: BTreeMap<String, (Value, Value)>,
}

/// The versions of a row, newest first, of its recorded changes, oldest first, and its current values. They are
/// numbered behind `deleted` others, which are no longer stored.
#[must_use]
pub fn versions(
    deleted: u64,
    changes: &[RecordedChange],
    current: Option<&RowJson>,
) -> Vec<RowVersion> {
    let mut versions: Vec<RowVersion> = Vec::with_capacity(changes.len() + 1);
    // Numbers are for good: versions that were deleted are counted, so that a link to version 7 never means another
    // one.
    let mut number = deleted;
    let mut state: Option<Map<String, Value>> = None;
    for (index, change) in changes.iter().enumerate() {
        let before = change.before.as_ref().map(parsed);
        if let (None, Some(row)) = (&state, &before) {
            number += 1;
            versions.push(first(number, row));
        }
        // What a change left is what the next one found: only values before are recorded.
        let behind = changes.get(index + 1).map(|next| next.before.as_ref());
        let after = match (change.action, behind) {
            (ChangeAction::Deleted, _) => None,
            (_, Some(row)) => row.map(parsed),
            (_, None) => current.map(parsed),
        };
        number += 1;
        versions.push(RowVersion {
            version: number,
            operation: VersionOperation::Changed(change.action),
            at: Some(change.at),
            execution: change.execution,
            changed: differences(before.as_ref(), after.as_ref()),
            // A deletion shows what was deleted.
            values: after.clone().or(before).unwrap_or_default(),
        });
        state = after;
    }
    if let (None, Some(row)) = (&state, current) {
        versions.push(first(number + 1, &parsed(row)));
    }
    // Built from the oldest on, as numbers count; listed from the newest.
    versions.reverse();
    versions
}

/// Number of versions that a row loses with its oldest recorded changes, which are given oldest first: the kind of
/// each, and whether the row existed before it. What the last change left stays a version.
#[must_use]
pub fn deleted_versions(changes: impl IntoIterator<Item = (ChangeAction, bool)>) -> u64 {
    let (mut number, mut exists) = (0, false);
    for (action, existed) in changes {
        // A creation is a version, and is not recorded.
        number += u64::from(existed && !exists) + 1;
        exists = action != ChangeAction::Deleted;
    }
    number - u64::from(exists)
}

fn parsed(row: &RowJson) -> Map<String, Value> {
    serde_json::from_str(row.as_str()).unwrap_or_default()
}

/// The first version that is stored: the row carries when and by what it came to be. It is a creation
/// unless earlier changes were forgotten.
fn first(version: u64, row: &Map<String, Value>) -> RowVersion {
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    let (created, updated) = (text("created_at"), text("updated_at"));
    // The first known version is a creation only if nothing changed before: earlier changes may be deleted.
    let is_created = created == updated;
    let execution = if is_created {
        text("created_by_execution_id")
    } else {
        text("updated_by_execution_id")
    };
    RowVersion {
        version,
        operation: if is_created {
            VersionOperation::Created
        } else {
            VersionOperation::Changed(ChangeAction::Updated)
        },
        at: updated.and_then(crate::timestamp::parse),
        execution: execution.and_then(|text| text.parse().ok()),
        changed: differences(None, is_created.then_some(row)),
        values: row.clone(),
    }
}

fn differences(
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
) -> BTreeMap<String, (Value, Value)> {
    let value = |row: Option<&Map<String, Value>>, name: &String| {
        row.and_then(|row| row.get(name))
            .cloned()
            .unwrap_or_default()
    };
    let names = before.into_iter().chain(after).flat_map(Map::keys);
    names
        // They change with every version and would be in each list.
        .filter(|name| SystemColumn::from_name(name).is_none())
        .map(|name| (name.clone(), (value(before, name), value(after, name))))
        .filter(|(_, (before, after))| before != after)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(volume: i64) -> RowJson {
        RowJson::from_rendered(format!(r#"{{"id":"a","volume":{volume}}}"#))
    }

    fn change(action: ChangeAction, before: Option<RowJson>) -> RecordedChange {
        RecordedChange {
            action,
            at: OffsetDateTime::UNIX_EPOCH,
            execution: None,
            before,
        }
    }

    fn displayed(changes: &[RecordedChange], current: Option<&RowJson>) -> Vec<String> {
        let versions = versions(0, changes, current);
        let versions = versions.iter();
        versions
            .map(|it| {
                format!(
                    "{} {} {}",
                    it.version,
                    it.operation.as_str(),
                    it.values["volume"]
                )
            })
            .collect()
    }

    #[test]
    fn a_row_that_was_never_changed_has_its_creation() {
        assert_eq!(displayed(&[], Some(&row(1))), ["1 created 1"]);
        assert_eq!(displayed(&[], None), [""; 0]);
    }

    #[test]
    fn versions_are_numbered_through_deletions_and_creations() {
        let changes = [
            change(ChangeAction::Updated, Some(row(1))),
            change(ChangeAction::Deleted, Some(row(2))),
            change(ChangeAction::Restored, None),
            change(ChangeAction::Deleted, Some(row(2))),
        ];
        let expected = [
            "6 created 3",
            "5 deleted 2",
            "4 restored 2",
            "3 deleted 2",
            "2 updated 2",
            "1 created 1",
        ];
        assert_eq!(displayed(&changes, Some(&row(3))), expected);
    }

    #[test]
    fn the_first_version_is_an_update_where_earlier_ones_were_forgotten() {
        let text = r#"{"volume":1,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-02T00:00:00Z"}"#;
        let current = RowJson::from_rendered(text.to_owned());
        let versions = versions(1, &[], Some(&current));
        assert_eq!(
            (versions[0].version, versions[0].operation.as_str()),
            (2, "updated")
        );
        assert_eq!(
            versions[0].at,
            crate::timestamp::parse("2026-01-02T00:00:00Z")
        );
        assert_eq!(versions[0].changed, BTreeMap::new());
    }

    #[test]
    fn a_version_names_the_columns_that_differ() {
        let changes = [change(ChangeAction::Updated, Some(row(1)))];
        let versions = versions(0, &changes, Some(&row(2)));
        let volume = ("volume".to_owned(), (Value::from(1), Value::from(2)));
        assert_eq!(versions[0].changed, BTreeMap::from([volume]));
    }

    /// However many of the oldest changes are deleted, the rest keep their numbers.
    #[test]
    fn numbers_stay_when_earlier_versions_are_deleted() {
        let changes = [
            change(ChangeAction::Updated, Some(row(1))),
            change(ChangeAction::Deleted, Some(row(2))),
            change(ChangeAction::Restored, None),
            change(ChangeAction::Deleted, Some(row(2))),
            change(ChangeAction::Updated, Some(row(4))),
        ];
        let all = versions(0, &changes, Some(&row(5)));
        for count in 0..=changes.len() {
            let (gone, rest) = changes.split_at(count);
            let gone = gone.iter().map(|it| (it.action, it.before.is_some()));
            let left = versions(deleted_versions(gone), rest, Some(&row(5)));
            let numbers = |versions: &[RowVersion]| -> Vec<_> {
                let versions = versions.iter();
                versions
                    .map(|it| (it.version, it.values["volume"].clone()))
                    .collect()
            };
            assert_eq!(numbers(&left), numbers(&all)[..left.len()], "{count}");
        }
    }
}
