//! What a write must know of the database before it can be planned.

use std::sync::Arc;

use crate::{
    catalog::Table,
    scalar::{KeyValue, Values},
};

/// All questions of one write, answered in one round trip.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// Which rows exist.
    pub ids: Vec<IdQuestion>,
    /// Which rows have these values.
    pub lookups: Vec<LookupQuestion>,
}

impl Questions {
    /// Whether there is nothing to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.lookups.is_empty()
    }
}

/// Do rows with these primary keys exist?
#[derive(Clone, Debug)]
pub struct IdQuestion {
    /// The table.
    pub table: Arc<Table>,
    /// The keys, each once.
    pub keys: Vec<KeyValue>,
}

/// Which rows have these values in these columns?
#[derive(Clone, Debug)]
pub struct LookupQuestion {
    /// The table.
    pub table: Arc<Table>,
    /// Indices of columns with the values that each lookup wants there: one value per lookup, no
    /// nulls.
    pub columns: Vec<(usize, Values)>,
    /// Indices of columns that must be null.
    pub null_columns: Vec<usize>,
    /// How many lookups.
    pub len: usize,
}

/// What a lookup found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupAnswer {
    /// No row.
    None,
    /// Exactly one: its primary key.
    One(KeyValue),
    /// More than one.
    Several,
}

/// The answers, in the order of the questions.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// For each id question, whether each key exists.
    pub ids: Vec<Vec<bool>>,
    /// For each lookup question, what each lookup found.
    pub lookups: Vec<Vec<LookupAnswer>>,
}
