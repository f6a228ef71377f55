//! Facts that a write needs from the database before it can be planned.

use uuid::Uuid;

use crate::{
    catalog::{ColumnRef, KeyedTable},
    scalar::{DataType, KeyValue, Values},
};

/// Lookups of one write, answered in one round trip.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// Primary keys whose existence is asked.
    pub ids: Vec<IdQuestion>,
    /// Values whose rows are asked.
    pub lookups: Vec<LookupQuestion>,
}

impl Questions {
    /// Returns whether there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.lookups.is_empty()
    }

    /// Responds as if every row existed once, each lookup with a different key.
    pub(super) fn assume_found(&self) -> LookupResults {
        let mut next = 0_i64;
        let mut key = |data_type: DataType| {
            next += 1;
            RowMatch::One(match data_type {
                DataType::Integer => KeyValue::Integer(next),
                DataType::Uuid => KeyValue::Uuid(Uuid::from_u64_pair(0, next.unsigned_abs())),
                _ => KeyValue::Text(format!("row {next}")),
            })
        };
        LookupResults {
            ids: self
                .ids
                .iter()
                .map(|question| vec![true; question.keys.len()])
                .collect(),
            lookups: self
                .lookups
                .iter()
                .map(|question| {
                    let key_type = question.table.key().data_type;
                    (0..question.len).map(|_| key(key_type)).collect()
                })
                .collect(),
        }
    }
}

/// Asks whether rows with these primary keys exist.
#[derive(Clone, Debug)]
pub struct IdQuestion {
    /// The table.
    pub table: KeyedTable,
    /// The keys, each once.
    pub keys: Vec<KeyValue>,
}

/// Asks which rows have these values in these columns.
#[derive(Clone, Debug)]
pub struct LookupQuestion {
    /// The table.
    pub table: KeyedTable,
    /// Columns with their wanted values: one value per lookup, no nulls.
    pub columns: Vec<(ColumnRef, Values)>,
    /// Columns that must be null.
    pub null_columns: Vec<ColumnRef>,
    /// Number of lookups.
    pub len: usize,
}

/// Stored rows that have the values asked for. `R` is what is known of a row: its primary key
/// unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowMatch<R = KeyValue> {
    /// No row.
    #[default]
    None,
    /// Exactly one row.
    One(R),
    /// More than one row.
    Several,
}

impl<R> RowMatch<R> {
    /// Adds a row that has the values.
    pub fn add(&mut self, row: R) {
        *self = match self {
            Self::None => Self::One(row),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

/// The responses, in the order of the questions.
#[derive(Clone, Debug, Default)]
pub struct LookupResults {
    /// For each id question, whether each key exists.
    pub ids: Vec<Vec<bool>>,
    /// For each lookup question, the rows that each lookup matches.
    pub lookups: Vec<Vec<RowMatch>>,
}
