//! Readers of single values. They are as lenient as pydantic: a text that is a whole number reads
//! as a number, `"yes"` as true. So one set serves bodies, query strings and paths.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

use crate::{
    path::{FieldPath, fitting},
    schema::{Definitions, Schema},
};

mod choice;
mod collection;
mod file_part;
mod id;
mod json;
mod number;
mod rows;
mod text;

pub use choice::{Choice, choice, choice_of};
pub use collection::{List, MapOf, ShapeReader, list, map_of, shape};
pub use file_part::FilePart;
pub use id::{Id, MaybeId, UuidReader, id, uuid};
pub use json::{AnyJson, Object, Storable, any, object, storable};
pub use number::{
    Boolean, Float, Integer, JsonNumber, Unsigned, boolean, float, integer, number, unsigned,
};
pub(crate) use rows::CellSeed;
pub use rows::{RowsReader, rows};
pub use text::{CursorReader, Datetime, Parsed, Text, cursor, cursor_of, datetime, text};

/// Reads one value and describes what it accepts.
pub trait Reader {
    /// The type that it reads.
    type Output;

    /// Reads a value and reports every problem. `None` if it does not fit.
    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output>;

    /// The JSON schema of the values that it is meant for.
    fn schema(&self, definitions: &mut Definitions) -> Schema;

    /// Reads without a tree of JSON values and stops at the first problem. Accepts what
    /// [`Self::read`] accepts.
    ///
    /// # Errors
    /// The value does not fit.
    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Self::Output, D::Error> {
        let value = Value::deserialize(deserializer)?;
        fitting(|at| self.read(value, at)).ok_or_else(|| D::Error::custom("does not fit"))
    }

    /// Converts what was read.
    fn map<T, F: Fn(Self::Output) -> T>(self, convert: F) -> Mapped<Self, F>
    where
        Self: Sized,
    {
        Mapped {
            reader: self,
            convert,
        }
    }

    /// Adds a keyword to the schema; reading stays the same.
    fn with(self, keyword: &'static str, value: impl Into<Value>) -> Annotated<Self>
    where
        Self: Sized,
    {
        Annotated {
            reader: self,
            keyword,
            value: value.into(),
        }
    }

    /// Adds an example to the schema.
    fn example(self, example: impl Into<Value>) -> Annotated<Self>
    where
        Self: Sized,
    {
        self.with("examples", vec![example.into()])
    }
}

/// A reader whose result is converted.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<R, F> {
    reader: R,
    convert: F,
}

impl<R: Reader, T, F: Fn(R::Output) -> T> Reader for Mapped<R, F> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        self.reader.read(value, at).map(&self.convert)
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        self.reader.schema(definitions)
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<T, D::Error> {
        self.reader.stream(deserializer).map(&self.convert)
    }
}

/// A reader with a keyword added to its schema.
#[derive(Clone, Debug)]
pub struct Annotated<R> {
    reader: R,
    keyword: &'static str,
    value: Value,
}

impl<R: Reader> Reader for Annotated<R> {
    type Output = R::Output;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<R::Output> {
        self.reader.read(value, at)
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        self.reader
            .schema(definitions)
            .with(self.keyword, self.value.clone())
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<R::Output, D::Error> {
        self.reader.stream(deserializer)
    }
}
