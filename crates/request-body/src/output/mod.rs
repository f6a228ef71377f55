//! Types that a response holds, and their declaration.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Map;

use crate::schema::{Definitions, Property, Schema, prose};

mod names;
mod object;
mod timestamp;
mod values;

#[doc(hidden)]
pub use serde;
pub use timestamp::Timestamp;

/// A value of a response: it serializes, and describes what it serializes to.
pub trait Output: Serialize {
    /// The JSON schema of the value; named schemas are added to the definitions.
    fn schema(definitions: &mut Definitions) -> Schema;
}

/// The type of a field that is left out where it has no value.
#[doc(hidden)]
pub trait Optional {
    /// The type of its values.
    type Given: Output;
}

impl<T: Output> Optional for Option<T> {
    type Given = T;
}

/// An object of a response. Declared by [`output!`](crate::output!).
pub trait OutputObject {
    /// Describes its fields. One that is required is always present, null or not; another is left out
    /// where it has no value.
    fn properties(definitions: &mut Definitions) -> Vec<Property>;

    /// Adds its fields to an object.
    ///
    /// # Errors
    /// Those of the serializer.
    fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// The name of a field in JSON: `type` of `r#type`.
#[doc(hidden)]
#[must_use]
pub const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// Serializes an object.
///
/// # Errors
/// Those of the serializer.
#[doc(hidden)]
pub fn serialize_object<T: OutputObject, S: Serializer>(
    object: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    object.serialize_fields(&mut map)?;
    map.end()
}

/// The schema of an object with these fields.
#[doc(hidden)]
#[must_use]
pub fn object_schema(description: &str, properties: Vec<Property>) -> Schema {
    let mut required = Vec::new();
    let mut described = Map::new();
    for property in properties {
        if property.is_required {
            required.push(property.name);
        }
        let schema = property.schema.described(&property.description);
        described.insert(property.name.to_owned(), schema.into());
    }
    let mut schema = Schema::of("object").with("properties", described);
    if !required.is_empty() {
        schema = schema.with("required", required);
    }
    schema.described(&prose(description))
}
