//! Columns that a read shows, and columns that it is ordered by.

use std::{cmp::Ordering, collections::HashSet};

use super::{
    field::Field,
    problem::{named_twice, unknown_column},
    target::ReadTarget,
};
use crate::{
    data::write::quoted,
    scalar::{DataType, Scalar},
};

/// Maximum number of columns that a read is ordered by.
pub const MAX_ORDER_TERMS: usize = 8;

/// Number of characters by which texts are ordered, so that a cursor holds no long texts. Primary
/// keys are ordered by all of theirs.
pub const ORDERED_CHARACTERS: usize = 256;

/// Column that a read shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    /// Name in the rows that are read.
    pub name: String,
    /// The column.
    pub field: Field,
}

/// Column that a read is ordered by. Null is greater than every value, and texts are ordered by the
/// bytes of their first [`ORDERED_CHARACTERS`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTerm {
    /// Name as in the request.
    pub name: String,
    /// The column.
    pub field: Field,
    /// True if the greatest value comes first.
    pub descending: bool,
    /// True for the primary key.
    pub is_key: bool,
}

/// Value of the last row seen in a column that the rows are ordered by.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedValue {
    /// The term as in the request: the column's name, after `-` if the order descends.
    pub term: String,
    /// The value; `None` is null.
    pub value: Option<Scalar>,
}

impl OrderTerm {
    pub(super) fn parse(target: &ReadTarget, text: &str) -> Result<Self, String> {
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let refused = |problem: &str| format!("order_by \"{}\": {problem}", quoted(text));
        let field = target
            .field(name)
            .ok_or_else(|| refused(&unknown_column(target.name())))?;
        if field.data_type == DataType::Json {
            return Err(refused("a json column has no order"));
        }
        Ok(Self {
            name: name.to_owned(),
            is_key: target.key_name() == Some(field.sql_name.as_str()),
            field,
            descending,
        })
    }

    /// The term as in the request.
    #[must_use]
    pub fn to_text(&self) -> String {
        let sign = if self.descending { "-" } else { "" };
        format!("{sign}{}", self.name)
    }

    /// Number of characters by which values are ordered; `None` for all, and for values that are no
    /// texts.
    #[must_use]
    pub fn characters(&self) -> Option<usize> {
        let is_text = matches!(self.field.data_type, DataType::String | DataType::Text);
        (is_text && !self.is_key).then_some(ORDERED_CHARACTERS)
    }

    /// The part of a row's value that decides its place.
    #[must_use]
    pub fn place(&self, value: Option<&Scalar>) -> OrderedValue {
        let value = match (value, self.characters()) {
            (Some(Scalar::Text(text)), Some(count)) => {
                Some(Scalar::Text(text.chars().take(count).collect()))
            }
            (value, _) => value.cloned(),
        };
        OrderedValue {
            term: self.to_text(),
            value,
        }
    }

    /// Compares two values that [`Self::place`] returned: the row of the smaller one comes first.
    #[must_use]
    pub fn compare(&self, left: &OrderedValue, right: &OrderedValue) -> Ordering {
        let ascending = match (&left.value, &right.value) {
            // Values of one column have one type, and json columns
            // are refused: they always compare.
            (Some(left), Some(right)) => left.compare(right).unwrap_or(Ordering::Equal),
            (None, None) => Ordering::Equal,
            // Nulls come last in ascending order, as PostgreSQL sorts them.
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        };
        if self.descending {
            ascending.reverse()
        } else {
            ascending
        }
    }
}

/// The terms of an order, or a sentence for each one that is invalid.
pub(super) fn order(target: &ReadTarget, terms: &[String]) -> (Vec<OrderTerm>, Vec<String>) {
    let mut problems = Vec::new();
    let mut order: Vec<OrderTerm> = Vec::with_capacity(terms.len());
    for text in terms {
        match OrderTerm::parse(target, text) {
            // By column, because a reference has two names: `sample`, and in SQL `sample_id`.
            Ok(term) if order.iter().any(|earlier| earlier.field == term.field) => {
                problems.push(named_twice("order_by", text));
            }
            Ok(term) => order.push(term),
            Err(problem) => problems.push(problem),
        }
    }
    (order, problems)
}

/// The columns to show, all of them unless some are named; or a sentence for each one that is
/// invalid.
pub(super) fn columns(
    target: &ReadTarget,
    names: Option<&[String]>,
) -> (Vec<ReadColumn>, Vec<String>) {
    let Some(names) = names else {
        return (all_columns(target), Vec::new());
    };
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        match target.field(name) {
            None => problems.push(format!(
                "columns \"{}\": {}",
                quoted(name),
                unknown_column(target.name())
            )),
            // A row is a JSON object, in which a name occurs once.
            Some(_) if !seen.insert(name) => {
                problems.push(named_twice("columns", name));
            }
            Some(field) => columns.push(ReadColumn {
                name: name.clone(),
                field,
            }),
        }
    }
    (columns, problems)
}

/// All columns of a target, system columns included. Those of a raw table are read where they are named: they
/// are the same for all points of a series.
pub(super) fn all_columns(target: &ReadTarget) -> Vec<ReadColumn> {
    let column = |name: &str, sql_name: &str, data_type| ReadColumn {
        name: name.to_owned(),
        field: Field {
            sql_name: sql_name.to_owned(),
            data_type,
        },
    };
    match target {
        ReadTarget::Table(table) => {
            let own = table.columns.iter();
            let own = own.map(|it| column(&it.name, &it.sql_name(), it.data_type));
            let system = table.system_columns().iter().filter(|_| !table.is_raw());
            let system = system.map(|it| column(it.name, it.name, it.data_type));
            own.chain(system).collect()
        }
        ReadTarget::Platform(table) => table
            .columns()
            .iter()
            .map(|it| column(it.name, it.name, it.data_type))
            .collect(),
    }
}
