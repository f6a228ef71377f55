//! Columns of steps with late keys filled in.

use std::borrow::Cow;

use super::{LateKey, RowAddress, SeriesColumn, TableOutcome, TableStep, outcome::key_at};
use crate::scalar::{KeyValue, Values};

/// A column's values with its late keys filled in, as far as they are known.
#[derive(Clone, Debug)]
pub struct ResolvedColumn<'p> {
    /// Index in the table.
    pub column: usize,
    /// A value per row or point.
    pub values: Cow<'p, Values>,
}

impl<'p> ResolvedColumn<'p> {
    fn new(column: usize, values: &'p Values) -> Self {
        Self {
            column,
            values: Cow::Borrowed(values),
        }
    }

    fn fill<'k>(
        &mut self,
        late: &[LateKey],
        known_key: impl Fn(RowAddress) -> Option<&'k KeyValue>,
    ) {
        for LateKey { index, address } in late {
            if let Some(key) = known_key(*address) {
                self.values.to_mut().set_key(*index, key.clone());
            }
        }
    }
}

/// The columns of a step with late keys filled in, as far as they are known.
#[derive(Clone, Debug)]
pub struct ResolvedColumns<'p> {
    step: &'p TableStep,
    columns: Vec<ResolvedColumn<'p>>,
}

impl<'p> ResolvedColumns<'p> {
    /// The columns of a step, with the keys of rows of earlier steps, which are `done`.
    #[must_use]
    pub fn new(step: &'p TableStep, done: &[TableOutcome]) -> Self {
        let mut columns = Vec::with_capacity(step.columns.len());
        for column in &step.columns {
            let mut resolved = ResolvedColumn::new(column.column, &column.values);
            resolved.fill(&column.late, |address| key_at(done, address));
            columns.push(resolved);
        }
        Self { step, columns }
    }

    /// Fills in the keys of the step's own rows, once they are matched.
    pub fn fill_own(&mut self, keys: &[KeyValue]) {
        for (column, resolved) in self.step.columns.iter().zip(&mut self.columns) {
            resolved.fill(&column.late, |address| {
                let is_own = address.table == self.step.index;
                keys.get(address.row).filter(|_| is_own)
            });
        }
    }

    /// The values of the column with that index in the table.
    #[must_use]
    pub fn get(&self, column: usize) -> Option<&Values> {
        let found = self.columns.iter().find(|found| found.column == column);
        found.map(|found| &*found.values)
    }

    /// All columns: their indices in the table, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Values)> {
        self.columns
            .iter()
            .map(|column| (column.column, &*column.values))
    }
}

impl SeriesColumn {
    /// The column with all keys filled in, once all table writes are `done`.
    #[must_use]
    pub fn resolve(&self, done: &[TableOutcome]) -> ResolvedColumn<'_> {
        let mut resolved = ResolvedColumn::new(self.column, &self.values);
        resolved.fill(&self.late, |address| key_at(done, address));
        resolved
    }
}
