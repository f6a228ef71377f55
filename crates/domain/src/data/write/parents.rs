//! One series per parent.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

use super::{Problem, RowKey, SeriesStep, TableOutcome, WritePlan, outcome::key_at};
use crate::{
    catalog::ColumnRef, data::write::problem::Reason, refusal::ErrorCode, scalar::KeyValue,
};

/// Parents whose series a request writes. A request writes at most one series per raw table,
/// reference and parent.
pub(super) struct SeriesParents<'p, K> {
    first: HashMap<(&'p str, &'p ColumnRef, K), usize>,
}

impl<K> Default for SeriesParents<'_, K> {
    fn default() -> Self {
        Self {
            first: HashMap::new(),
        }
    }
}

impl<'p, K: Eq + Hash> SeriesParents<'p, K> {
    /// Adds a series with its parent.
    ///
    /// # Errors
    /// A sentence if an earlier series has the same parent.
    pub(super) fn add(&mut self, step: &'p SeriesStep, parent: K) -> Result<(), Reason> {
        let table = step.owner.table.name.as_str();
        match self.first.entry((table, &step.owner.column, parent)) {
            Entry::Vacant(entry) => {
                entry.insert(step.index);
                Ok(())
            }
            Entry::Occupied(first) => Err(Reason::new(
                ErrorCode::DuplicateSeries,
                format!(
                    "series[{}] writes the same parent's series in \"{table}\"; put all points into one",
                    first.get()
                ),
            )),
        }
    }
}

impl WritePlan {
    /// The parent of each series, once all table writes are applied.
    ///
    /// # Errors
    /// A problem at each series whose parent was not written, or has an earlier series.
    pub fn series_parents(&self, tables: &[TableOutcome]) -> Result<Vec<KeyValue>, Vec<Problem>> {
        let mut parents = SeriesParents::default();
        let mut keys = Vec::with_capacity(self.series.len());
        let mut problems = Vec::new();
        for step in &self.series {
            let key = match &step.parent {
                RowKey::Known(key) => Some(key),
                RowKey::Late(address) => key_at(tables, *address),
            };
            // Only now does it show whether two late parents are one row.
            let added = key
                .ok_or_else(|| {
                    Reason::new(
                        ErrorCode::ReferenceNotFound,
                        "the parent row was not written",
                    )
                })
                .and_then(|key| parents.add(step, key).map(|()| key));
            match added {
                Ok(key) => keys.push(key.clone()),
                Err(message) => {
                    problems.push(Problem::at(
                        format!("series[{}].parent", step.index),
                        message,
                    ));
                }
            }
        }
        if problems.is_empty() {
            Ok(keys)
        } else {
            Err(Problem::first_of(problems))
        }
    }
}
