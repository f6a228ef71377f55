//! Columns of steps with late keys filled in.

use std::borrow::Cow;

use super::{
    LateKey, Problem, Reason, RowAddress, StepColumn, TableOutcome, TableStep, outcome::key_at,
};
use crate::{
    catalog::ColumnRef,
    refusal::ErrorCode,
    scalar::{KeyValue, Values},
};

/// A column's values with its late keys filled in.
#[derive(Clone, Debug)]
pub struct ResolvedColumn<'p> {
    source: &'p StepColumn,
    /// A value per row or point.
    pub values: Cow<'p, Values>,
}

impl<'p> ResolvedColumn<'p> {
    fn new(source: &'p StepColumn) -> Self {
        // Copied only where late keys have to be filled in.
        let values = Cow::Borrowed(&*source.values);
        Self { source, values }
    }

    /// The column.
    #[must_use]
    pub const fn column(&self) -> &'p ColumnRef {
        &self.source.column
    }

    /// Returns whether a row gives a value, null included.
    #[must_use]
    pub fn is_provided(&self, row: usize) -> bool {
        self.source.is_provided(row)
    }

    /// Fills in the late keys whose rows `wanted` selects.
    ///
    /// # Errors
    /// The address of a row without a key: null in its place would store a reference to nothing.
    fn fill<'k>(
        &mut self,
        wanted: impl Fn(RowAddress) -> bool,
        key_of: impl Fn(RowAddress) -> Option<&'k KeyValue>,
    ) -> Result<(), RowAddress> {
        for LateKey { index, address } in &self.source.late {
            if wanted(*address) {
                let key = key_of(*address).ok_or(*address)?;
                self.values.to_mut().set_key(*index, key.clone());
            }
        }
        Ok(())
    }
}

/// The columns of a step with late keys filled in.
#[derive(Clone, Debug)]
pub struct ResolvedColumns<'p> {
    /// Columns by which rows are matched; none for an insert.
    pub key: Vec<ResolvedColumn<'p>>,
    /// The other columns.
    pub columns: Vec<ResolvedColumn<'p>>,
    step: &'p TableStep,
}

impl<'p> ResolvedColumns<'p> {
    /// The columns of a step, with the keys of rows of earlier steps, which are `done`. Keys of the
    /// step's own rows follow ([`Self::fill_own`]).
    ///
    /// # Errors
    /// A problem if a row that another one refers to was not written.
    pub fn new(step: &'p TableStep, done: &[TableOutcome]) -> Result<Self, Vec<Problem>> {
        let mut resolved = Self {
            key: step.key.iter().map(ResolvedColumn::new).collect(),
            columns: step.columns.iter().map(ResolvedColumn::new).collect(),
            step,
        };
        // The keys of the own rows are known only once they are matched or written (`fill_own`).
        let is_earlier = |address: RowAddress| address.table != step.index;
        resolved.fill(is_earlier, |address| key_at(done, address))?;
        Ok(resolved)
    }

    /// Fills in the keys of the step's own rows, once they are matched.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn fill_own(&mut self, keys: &[KeyValue]) -> Result<(), Vec<Problem>> {
        let own = self.step.index;
        let is_own = |address: RowAddress| address.table == own;
        self.fill(is_own, |address| keys.get(address.row))
    }

    /// All columns, those of the key first.
    pub fn iter(&self) -> impl Iterator<Item = &ResolvedColumn<'p>> {
        self.key.iter().chain(&self.columns)
    }

    fn fill<'k>(
        &mut self,
        wanted: impl Fn(RowAddress) -> bool,
        key_of: impl Fn(RowAddress) -> Option<&'k KeyValue>,
    ) -> Result<(), Vec<Problem>> {
        let names = &self.step.row_names;
        self.key
            .iter_mut()
            .chain(&mut self.columns)
            .try_for_each(|column| column.fill(&wanted, &key_of))
            .map_err(|address| vec![not_written(names.path(address))])
    }
}

impl StepColumn {
    /// The column of a series with all keys filled in, once all table writes are `done`.
    ///
    /// # Errors
    /// A problem if a row that a point refers to was not written.
    pub fn resolve(&self, done: &[TableOutcome]) -> Result<ResolvedColumn<'_>, Vec<Problem>> {
        let mut resolved = ResolvedColumn::new(self);
        resolved
            .fill(|_| true, |address| key_at(done, address))
            .map_err(|address| vec![not_written(address.to_string())])?;
        Ok(resolved)
    }
}

fn not_written(path: String) -> Problem {
    let message = "a row that others refer to was not written";
    Problem::at(path, Reason::new(ErrorCode::ReferenceNotFound, message))
}
