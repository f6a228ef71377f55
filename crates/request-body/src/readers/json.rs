//! Readers of JSON whose content is not checked.

use serde_json::{Map, Value};

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
};

/// A JSON object, stored as it is.
#[derive(Clone, Copy, Debug)]
pub struct Object;

/// A JSON object, stored as it is. NUL characters in it are accepted.
#[must_use]
pub const fn object() -> Object {
    Object
}

impl Reader for Object {
    type Output = Map<String, Value>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            _ => at.refuse(ProblemKind::dict_type()),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("object")
    }
}

/// Any JSON, stored as it is.
#[derive(Clone, Copy, Debug)]
pub struct AnyJson;

/// Any JSON, stored as it is. NUL characters in it are accepted.
#[must_use]
pub const fn any() -> AnyJson {
    AnyJson
}

impl Reader for AnyJson {
    type Output = Value;

    fn read(&self, value: Value, _: &FieldPath<'_>) -> Option<Value> {
        Some(value)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::any()
    }
}

/// JSON without NUL characters, which PostgreSQL cannot store.
#[derive(Clone, Copy, Debug)]
pub struct Storable<R>(R);

/// JSON without NUL characters, which PostgreSQL cannot store.
pub const fn storable<R: Reader>(reader: R) -> Storable<R> {
    Storable(reader)
}

impl<R: Reader> Reader for Storable<R> {
    type Output = R::Output;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<R::Output> {
        if has_nul(&value) {
            at.refuse(ProblemKind::no_nul())
        } else {
            self.0.read(value, at)
        }
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        self.0.schema(definitions)
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            // Names too: PostgreSQL's jsonb stores them as texts.
            .any(|(name, field)| name.contains('\0') || has_nul(field)),
        _ => false,
    }
}
