//! Values of changed rows that are stored, so that people see what a write replaced or deleted.
//!
//! They are a look back and no backup: of large writes the first rows, and no large values, so that they
//! cost the same for writes of any size.

use std::collections::BTreeMap;

use crate::data::read::RowJson;

/// Number of the first rows of a table write whose values are stored. As many as people look at.
pub const KEPT_ROWS: u32 = 100;

/// Maximum length of a row whose values are stored, in bytes of JSON.
pub const KEPT_BYTES: u32 = 8 << 10;

/// A row and its values before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowImage {
    /// The row's key.
    pub id: String,
    /// Values before the change. `None` for a row that did not exist, or was longer than [`KEPT_BYTES`].
    pub before: Option<RowJson>,
    /// Values after the change. `None` for a row that no longer exists, or longer than [`KEPT_BYTES`].
    pub after: Option<RowJson>,
}

impl RowImage {
    /// Returns the row's values if they are short enough to be retained.
    #[must_use]
    pub fn short(row: RowJson) -> Option<RowJson> {
        let limit = usize::try_from(KEPT_BYTES).unwrap_or(usize::MAX);
        (row.as_str().len() <= limit).then_some(row)
    }

    /// Several changes in their order as one of each row: the values before the first and after the last
    /// one. Ordered by the bytes of the ids.
    #[must_use]
    pub fn merged(changes: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut rows: BTreeMap<String, Self> = BTreeMap::new();
        for change in changes {
            if let Some(row) = rows.get_mut(&change.id) {
                // `before` stays the one of the first change.
                row.after = change.after;
            } else {
                rows.insert(change.id.clone(), change);
            }
        }
        rows.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> RowJson {
        RowJson::from_rendered(text.to_owned())
    }

    fn change(id: &str, before: &str, after: &str) -> RowImage {
        RowImage {
            id: id.to_owned(),
            before: Some(row(before)),
            after: Some(row(after)),
        }
    }

    #[test]
    fn changes_of_a_row_become_one() {
        let changes = [
            change("b", "1", "2"),
            change("a", "5", "6"),
            change("b", "2", "3"),
        ];
        let expected = [change("a", "5", "6"), change("b", "1", "3")];
        assert_eq!(RowImage::merged(changes), expected);
    }

    #[test]
    fn long_rows_are_not_kept() {
        let limit = usize::try_from(KEPT_BYTES).unwrap();
        let fits = RowJson::from_rendered("x".repeat(limit));
        assert_eq!(RowImage::short(fits.clone()), Some(fits));
        let long = RowJson::from_rendered("x".repeat(limit + 1));
        assert_eq!(RowImage::short(long), None);
    }
}
