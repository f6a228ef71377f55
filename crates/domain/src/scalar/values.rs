//! Columns of values.

use compact_str::CompactString;
use serde_json::Value;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::{ComparableValue, DataType, KeyValue, Scalar};

/// A column of values of one type; `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of `string` and `text`; short ones, which most cells of a laboratory are, need no allocation of their own.
    Text(Vec<Option<CompactString>>),
    /// Of `integer`.
    Integer(Vec<Option<i64>>),
    /// Of `float`.
    Float(Vec<Option<f64>>),
    /// Of `boolean`.
    Boolean(Vec<Option<bool>>),
    /// Of `datetime`.
    Datetime(Vec<Option<OffsetDateTime>>),
    /// Of `date`.
    Date(Vec<Option<Date>>),
    /// Of `uuid`.
    Uuid(Vec<Option<Uuid>>),
    /// Of `json`.
    Json(Vec<Option<Value>>),
}

/// Evaluates an expression with the vector of a [`Values`] of any type.
#[macro_export]
macro_rules! for_each_values {
    ($values:expr, $vector:ident => $body:expr) => {
        match $values {
            $crate::scalar::Values::Text($vector) => $body,
            $crate::scalar::Values::Integer($vector) => $body,
            $crate::scalar::Values::Float($vector) => $body,
            $crate::scalar::Values::Boolean($vector) => $body,
            $crate::scalar::Values::Datetime($vector) => $body,
            $crate::scalar::Values::Date($vector) => $body,
            $crate::scalar::Values::Uuid($vector) => $body,
            $crate::scalar::Values::Json($vector) => $body,
        }
    };
}

impl Values {
    /// Returns the type of the values; `text` also for those of `string`.
    #[must_use]
    pub const fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Text,
            Self::Integer(_) => DataType::Integer,
            Self::Float(_) => DataType::Float,
            Self::Boolean(_) => DataType::Boolean,
            Self::Datetime(_) => DataType::Datetime,
            Self::Date(_) => DataType::Date,
            Self::Uuid(_) => DataType::Uuid,
            Self::Json(_) => DataType::Json,
        }
    }

    /// Makes an empty column of that type with the given capacity.
    #[must_use]
    pub fn with_capacity(data_type: DataType, capacity: usize) -> Self {
        match data_type {
            DataType::String | DataType::Text => Self::Text(Vec::with_capacity(capacity)),
            DataType::Integer => Self::Integer(Vec::with_capacity(capacity)),
            DataType::Float => Self::Float(Vec::with_capacity(capacity)),
            DataType::Boolean => Self::Boolean(Vec::with_capacity(capacity)),
            DataType::Datetime => Self::Datetime(Vec::with_capacity(capacity)),
            DataType::Date => Self::Date(Vec::with_capacity(capacity)),
            DataType::Uuid => Self::Uuid(Vec::with_capacity(capacity)),
            DataType::Json => Self::Json(Vec::with_capacity(capacity)),
        }
    }

    /// Returns the number of values, nulls included.
    #[must_use]
    pub fn len(&self) -> usize {
        for_each_values!(self, vector => vector.len())
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the values of another column; those of another type become nulls, which callers rule
    /// out.
    pub fn extend(&mut self, other: &Self) {
        match (self, other) {
            (Self::Text(vector), Self::Text(other)) => vector.extend_from_slice(other),
            (Self::Integer(vector), Self::Integer(other)) => vector.extend_from_slice(other),
            (Self::Float(vector), Self::Float(other)) => vector.extend_from_slice(other),
            (Self::Boolean(vector), Self::Boolean(other)) => vector.extend_from_slice(other),
            (Self::Datetime(vector), Self::Datetime(other)) => vector.extend_from_slice(other),
            (Self::Date(vector), Self::Date(other)) => vector.extend_from_slice(other),
            (Self::Uuid(vector), Self::Uuid(other)) => vector.extend_from_slice(other),
            (Self::Json(vector), Self::Json(other)) => vector.extend_from_slice(other),
            (vector, other) => {
                debug_assert!(false, "{other:?} appended to a column of another type");
                // Nulls rather than nothing: in a column that stayed shorter, later rows would no
                // longer line up with those of the other columns.
                (0..other.len()).for_each(|_| vector.push_null());
            }
        }
    }

    /// Moves the values of another column of the same type to the end of this one; returns false, and
    /// changes nothing, if the types differ.
    #[must_use]
    pub fn append(&mut self, other: Self) -> bool {
        match (self, other) {
            (Self::Text(vector), Self::Text(mut other)) => vector.append(&mut other),
            (Self::Integer(vector), Self::Integer(mut other)) => vector.append(&mut other),
            (Self::Float(vector), Self::Float(mut other)) => vector.append(&mut other),
            (Self::Boolean(vector), Self::Boolean(mut other)) => vector.append(&mut other),
            (Self::Datetime(vector), Self::Datetime(mut other)) => vector.append(&mut other),
            (Self::Date(vector), Self::Date(mut other)) => vector.append(&mut other),
            (Self::Uuid(vector), Self::Uuid(mut other)) => vector.append(&mut other),
            (Self::Json(vector), Self::Json(mut other)) => vector.append(&mut other),
            _ => return false,
        }
        true
    }

    /// Appends a null.
    pub fn push_null(&mut self) {
        for_each_values!(self, vector => vector.push(None));
    }

    /// Appends a value of the column's type; one of another type becomes null, which callers rule
    /// out by reading it with this column's type.
    pub fn push(&mut self, value: Scalar) {
        match (self, value) {
            (Self::Text(vector), Scalar::Text(value)) => vector.push(Some(value.into())),
            (Self::Integer(vector), Scalar::Integer(value)) => vector.push(Some(value)),
            (Self::Float(vector), Scalar::Float(value)) => vector.push(Some(value)),
            (Self::Boolean(vector), Scalar::Boolean(value)) => vector.push(Some(value)),
            (Self::Datetime(vector), Scalar::Datetime(value)) => vector.push(Some(value)),
            (Self::Date(vector), Scalar::Date(value)) => vector.push(Some(value)),
            (Self::Uuid(vector), Scalar::Uuid(value)) => vector.push(Some(value)),
            (Self::Json(vector), Scalar::Json(value)) => vector.push(Some(value)),
            (vector, other) => {
                debug_assert!(false, "{other:?} pushed to a column of another type");
                vector.push_null();
            }
        }
    }

    /// Appends a value as [`Self::push`] does, or a null.
    pub fn push_or_null(&mut self, value: Option<Scalar>) {
        match value {
            Some(value) => self.push(value),
            None => self.push_null(),
        }
    }

    /// A column of `len` equal values.
    #[must_use]
    pub fn repeat(data_type: DataType, value: &Scalar, len: usize) -> Self {
        let mut values = Self::with_capacity(data_type, len);
        (0..len).for_each(|_| values.push(value.clone()));
        values
    }

    /// A column of `len` nulls.
    #[must_use]
    pub fn nulls_of(data_type: DataType, len: usize) -> Self {
        let mut values = Self::with_capacity(data_type, len);
        (0..len).for_each(|_| values.push_null());
        values
    }

    /// Indices of nulls.
    #[must_use]
    pub fn nulls(&self) -> Vec<usize> {
        for_each_values!(self, vector => {
            let values = vector.iter().enumerate();
            values.filter(|(_, value)| value.is_none()).map(|(index, _)| index).collect()
        })
    }

    /// Returns whether the value at an index is null or out of range.
    #[must_use]
    pub fn is_null(&self, index: usize) -> bool {
        for_each_values!(self, vector => vector.get(index).is_none_or(Option::is_none))
    }

    /// The value at an index as a key; `None` if it is null, out of range or of a type that no key
    /// has.
    #[must_use]
    pub fn key(&self, index: usize) -> Option<KeyValue> {
        match self {
            Self::Text(vector) => vector
                .get(index)?
                .as_ref()
                .map(|text| KeyValue::Text(text.to_string())),
            Self::Integer(vector) => vector.get(index)?.map(KeyValue::Integer),
            Self::Uuid(vector) => vector.get(index)?.map(KeyValue::Uuid),
            _ => None,
        }
    }

    /// The value at an index for comparison; `None` if it is null, out of range or JSON.
    #[must_use]
    pub fn comparable(&self, index: usize) -> Option<ComparableValue<'_>> {
        match self {
            Self::Text(vector) => vector.get(index)?.as_deref().map(ComparableValue::Text),
            Self::Integer(vector) => vector.get(index)?.map(ComparableValue::Integer),
            // -0.0 equals 0.0, in PostgreSQL too.
            Self::Float(vector) => vector
                .get(index)?
                // Its bits, because `f64` is neither `Eq` nor `Hash`.
                .map(|number| ComparableValue::Float((number + 0.0).to_bits())),
            Self::Boolean(vector) => vector.get(index)?.map(ComparableValue::Boolean),
            Self::Datetime(vector) => vector.get(index)?.map(ComparableValue::Datetime),
            Self::Date(vector) => vector.get(index)?.map(ComparableValue::Date),
            Self::Uuid(vector) => vector.get(index)?.map(ComparableValue::Uuid),
            Self::Json(_) => None,
        }
    }

    /// The value at an index; `None` when it is null or out of range.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Scalar> {
        match self {
            Self::Text(vector) => vector
                .get(index)?
                .as_ref()
                .map(|text| Scalar::Text(text.to_string())),
            Self::Integer(vector) => vector.get(index)?.map(Scalar::Integer),
            Self::Float(vector) => vector.get(index)?.map(Scalar::Float),
            Self::Boolean(vector) => vector.get(index)?.map(Scalar::Boolean),
            Self::Datetime(vector) => vector.get(index)?.map(Scalar::Datetime),
            Self::Date(vector) => vector.get(index)?.map(Scalar::Date),
            Self::Uuid(vector) => vector.get(index)?.map(Scalar::Uuid),
            Self::Json(vector) => vector.get(index)?.clone().map(Scalar::Json),
        }
    }

    /// Replaces the value at an index by a key's value of the same type.
    pub fn set_key(&mut self, index: usize, key: KeyValue) {
        match (self, key) {
            (Self::Text(vector), KeyValue::Text(value)) => {
                if let Some(slot) = vector.get_mut(index) {
                    *slot = Some(value.into());
                }
            }
            (Self::Integer(vector), KeyValue::Integer(value)) => {
                if let Some(slot) = vector.get_mut(index) {
                    *slot = Some(value);
                }
            }
            (Self::Uuid(vector), KeyValue::Uuid(value)) => {
                if let Some(slot) = vector.get_mut(index) {
                    *slot = Some(value);
                }
            }
            (_, key) => debug_assert!(false, "{key:?} set in a column of another type"),
        }
    }
}
