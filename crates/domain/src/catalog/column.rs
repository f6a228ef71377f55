//! Columns, and the handles that their table gives out.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use serde_json::Value;

use super::name::sql_name;
use crate::{
    data::write::cell::scalar_of_json,
    scalar::{DataType, Scalar},
};

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its id; `None` for core columns and the generated `id`.
    pub id: Option<i64>,
    /// Its name in writes and reads.
    pub name: String,
    /// Description for people and agents.
    pub description: Option<String>,
    /// Its name for people, on axes and headers.
    pub label: Option<String>,
    /// The unit of its values, a UCUM code.
    pub unit: Option<String>,
    /// Its type; of a reference, the type of the referenced table's primary key.
    pub data_type: DataType,
    /// True for the table's primary key.
    pub is_primary_key: bool,
    /// True if it may be null.
    pub is_nullable: bool,
    /// True if no two rows may have the same value.
    pub is_unique: bool,
    /// Value of a created row that gives none.
    pub default: Option<Value>,
    /// The referenced table.
    pub references: Option<String>,
}

impl Column {
    /// The column's name in SQL: references end in `_id` there, names that are values in `_`.
    #[must_use]
    pub fn sql_name(&self) -> Cow<'_, str> {
        if self.references.is_some() {
            Cow::Owned(format!("{}_id", self.name))
        } else {
            sql_name(&self.name)
        }
    }

    /// The default as a value of the column's type; `None` for null.
    #[must_use]
    pub fn default_value(&self) -> Option<Scalar> {
        scalar_of_json(self.default.as_ref()?, self.data_type)
    }

    /// Returns whether a created row must give a value: there is no null, default or generated
    /// key in its place.
    #[must_use]
    pub const fn is_required_to_create(&self) -> bool {
        let is_generated = self.is_primary_key && self.data_type.is_generated_key();
        !self.is_nullable && self.default.is_none() && !is_generated
    }
}

/// Handle to a column. Only the table that has the column makes it, so it always resolves; equal
/// handles of one table mean the same column. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    position: usize,
    column: Arc<Column>,
}

impl ColumnRef {
    /// The column's position in its table, by which columns are sorted.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl Deref for ColumnRef {
    type Target = Column;

    fn deref(&self) -> &Column {
        &self.column
    }
}

impl Hash for ColumnRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Handles are compared within one table, where the position tells columns apart.
        self.position.hash(state);
    }
}

/// The columns of a table, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<ColumnRef>);

impl Columns {
    /// Changes each column in its place.
    pub fn update(&mut self, mut change: impl FnMut(&mut Column)) {
        for column in &mut self.0 {
            // Columns are shared with the table that this one was copied from, so they are copied
            // first.
            change(Arc::make_mut(&mut column.column));
        }
    }

    /// The columns of the table without one of them.
    #[must_use]
    pub fn without(&self, dropped: &ColumnRef) -> Self {
        let others = self.iter().filter(|column| *column != dropped);
        others.map(|column| (**column).clone()).collect()
    }
}

impl Deref for Columns {
    type Target = [ColumnRef];

    fn deref(&self) -> &[ColumnRef] {
        &self.0
    }
}

impl<'c> IntoIterator for &'c Columns {
    type Item = &'c ColumnRef;
    type IntoIter = std::slice::Iter<'c, ColumnRef>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Column> for Columns {
    fn from_iter<I: IntoIterator<Item = Column>>(columns: I) -> Self {
        let columns = columns.into_iter().enumerate();
        Self(
            columns
                .map(|(position, column)| ColumnRef {
                    position,
                    column: Arc::new(column),
                })
                .collect(),
        )
    }
}

impl From<Vec<Column>> for Columns {
    fn from(columns: Vec<Column>) -> Self {
        columns.into_iter().collect()
    }
}
