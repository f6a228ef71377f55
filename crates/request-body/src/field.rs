//! A field of an object, and the object's fields while it is read.

use serde::de::Deserializer;
use serde_json::{Map, Value};

use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Property},
};

/// The fields of an object, taken one by one.
#[derive(Debug)]
pub struct Fields<'a> {
    fields: Map<String, Value>,
    path: &'a FieldPath<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of an object at that path.
    #[must_use]
    pub const fn new(fields: Map<String, Value>, path: &'a FieldPath<'a>) -> Self {
        Self { fields, path }
    }

    /// The path of the object.
    #[must_use]
    pub const fn path(&self) -> &'a FieldPath<'a> {
        self.path
    }

    /// Removes a field's value; `None` if it is absent.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    /// Reports each field that was not taken.
    pub fn refuse_rest(&mut self) {
        for name in std::mem::take(&mut self.fields)
            .into_iter()
            .map(|(name, _)| name)
        {
            self.path
                .field(&name)
                .report(ProblemKind::extra_forbidden());
        }
    }

    /// Removes a field's value; `None` if it is absent or null.
    pub(crate) fn given(&mut self, name: &str) -> Option<Value> {
        self.remove(name).filter(|value| !value.is_null())
    }
}

/// A field of a [`shape!`](crate::shape!): a reader, and what the absence of a value means.
pub trait Field {
    /// The field's type.
    type Output;

    /// Takes the field's value and reports every problem. `None` if it does not fit.
    fn take(&self, name: &'static str, fields: &mut Fields<'_>) -> Option<Self::Output>;

    /// Describes the field, or the fields of a group.
    fn properties(
        &self,
        name: &'static str,
        description: String,
        definitions: &mut Definitions,
    ) -> Vec<Property>;

    /// The value of an absent field; `None` if the field is required.
    fn absent(&self) -> Option<Self::Output>;

    /// Reads a given value without a tree of JSON values.
    ///
    /// # Errors
    /// The value does not fit.
    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Self::Output, D::Error>;
}

/// Infers the types of a declared field from the type of the struct's field.
#[doc(hidden)]
pub fn typed<T, F: Field<Output = T>>(field: F) -> F {
    field
}
