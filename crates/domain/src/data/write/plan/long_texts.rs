//! The text that is too long for an index.

use super::{TableStep, WritePlan};
use crate::{
    catalog::ColumnRef,
    data::write::{Problem, Reason},
    refusal::ErrorCode,
    scalar::Values,
};

/// Bytes of an entry of a PostgreSQL index (a third of a page of 8 kB, `BTMaxItemSize`). The values are compressed
/// before, so that a longer text may fit.
const INDEX_ENTRY: usize = 2_704;

impl WritePlan {
    /// The problem of a value that no index takes, at the longest text that the write gives for a key or a unique
    /// column: the store does not say which value it is. `None` if all of them fit.
    pub(super) fn too_long_for_an_index(&self) -> Option<Problem> {
        let texts = self.tables.iter().flat_map(TableStep::indexed_texts);
        let (length, path) = texts.max_by_key(|(length, _)| *length)?;
        (length > INDEX_ENTRY).then(|| {
            let message = format!(
                "is too long for a key or a unique column: it has {length} bytes, and only {INDEX_ENTRY} are sure to fit"
            );
            Problem::at(path, Reason::new(ErrorCode::ValueTooLarge, message))
        })
    }
}

impl TableStep {
    /// The longest text of each key and unique column, with its path.
    fn indexed_texts(&self) -> Vec<(usize, String)> {
        let key = self.table.key();
        let keys = self.inserted_keys().map(|keys| (key, keys));
        let given = self.key.iter().chain(&self.columns);
        let given = given.map(|given| (&given.column, &*given.values));
        let indexed = |column: &ColumnRef| {
            let groups = &self.table.unique_together;
            column == key
                || column.is_unique
                || groups.iter().flatten().any(|name| *name == column.name)
        };
        let texts = keys
            .into_iter()
            .chain(given)
            .filter_map(|(column, values)| {
                let Values::Text(texts) = values else {
                    return None;
                };
                let lengths = texts.iter().map(|text| text.as_deref().map_or(0, str::len));
                let (row, length) = lengths.enumerate().max_by_key(|(_, length)| *length)?;
                let path = format!("{}.{}", self.path(row), column.name);
                indexed(column).then_some((length, path))
            });
        texts.collect()
    }
}
