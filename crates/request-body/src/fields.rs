//! Presence of a field: whether it may be left out, and what that means.

use labdata_domain::page::{Cursor, MAX_LIMIT, PageRequest};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::Value;

use crate::{
    field::{Field, Fields},
    path::fitting,
    problem::ProblemKind,
    readers::{Reader, Unsigned, cursor, unsigned},
    schema::{Definitions, Property},
    shape::Shape,
};

/// A field that must be given.
#[derive(Clone, Copy, Debug)]
pub struct Required<R>(R);

/// A field that must be given.
pub const fn required<R: Reader>(reader: R) -> Required<R> {
    Required(reader)
}

impl<R: Reader> Field for Required<R> {
    type Output = R::Output;

    fn take(&self, name: &'static str, fields: &mut Fields<'_>) -> Option<R::Output> {
        let path = fields.path().field(name);
        // An explicit `null` goes to the reader, which may accept it or say what it expects.
        match fields.remove(name) {
            Some(value) => self.0.read(value, &path),
            None => path.refuse(ProblemKind::missing()),
        }
    }

    fn properties(
        &self,
        name: &'static str,
        description: String,
        definitions: &mut Definitions,
    ) -> Vec<Property> {
        vec![Property {
            name,
            description,
            schema: self.0.schema(definitions),
            is_required: true,
            default: None,
        }]
    }

    fn absent(&self) -> Option<R::Output> {
        None
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<R::Output, D::Error> {
        self.0.stream(deserializer)
    }
}

/// A field that may be left out or null: `None`.
#[derive(Clone, Copy, Debug)]
pub struct Optional<R>(R);

/// A field that may be left out or null: `None`.
pub const fn optional<R: Reader>(reader: R) -> Optional<R> {
    Optional(reader)
}

impl<R: Reader> Field for Optional<R> {
    type Output = Option<R::Output>;

    fn take(&self, name: &'static str, fields: &mut Fields<'_>) -> Option<Option<R::Output>> {
        let path = fields.path().field(name);
        match fields.given(name) {
            Some(value) => self.0.read(value, &path).map(Some),
            None => Some(None),
        }
    }

    fn properties(
        &self,
        name: &'static str,
        description: String,
        definitions: &mut Definitions,
    ) -> Vec<Property> {
        vec![Property {
            name,
            description,
            schema: self.0.schema(definitions),
            is_required: false,
            default: None,
        }]
    }

    fn absent(&self) -> Option<Option<R::Output>> {
        Some(None)
    }

    fn stream<'de, D: Deserializer<'de>>(
        &self,
        deserializer: D,
    ) -> Result<Option<R::Output>, D::Error> {
        deserializer.deserialize_option(OptionVisitor(&self.0))
    }
}

/// A field that may be left out or null: a default.
#[derive(Clone, Debug)]
pub struct OrDefault<D, R> {
    default: D,
    reader: R,
}

/// A field that may be left out or null: `default`, which is written as a client would write it.
pub const fn or<D: Into<Value> + Clone, R: Reader>(default: D, reader: R) -> OrDefault<D, R> {
    OrDefault { default, reader }
}

impl<D: Into<Value> + Clone, R: Reader> OrDefault<D, R> {
    fn default(&self) -> Value {
        self.default.clone().into()
    }
}

impl<V: Into<Value> + Clone, R: Reader> Field for OrDefault<V, R> {
    type Output = R::Output;

    fn take(&self, name: &'static str, fields: &mut Fields<'_>) -> Option<R::Output> {
        let path = fields.path().field(name);
        let value = fields.given(name).unwrap_or_else(|| self.default());
        self.reader.read(value, &path)
    }

    fn properties(
        &self,
        name: &'static str,
        description: String,
        definitions: &mut Definitions,
    ) -> Vec<Property> {
        vec![Property {
            name,
            description,
            schema: self.reader.schema(definitions),
            is_required: false,
            default: Some(self.default()),
        }]
    }

    fn absent(&self) -> Option<R::Output> {
        // The default is written as a client would write it, so the same reader reads it (ADR 18).
        fitting(|at| self.reader.read(self.default(), at))
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<R::Output, D::Error> {
        deserializer
            .deserialize_option(OptionVisitor(&self.reader))?
            .or_else(|| self.absent())
            .ok_or_else(|| D::Error::custom("the default does not fit"))
    }
}

struct OptionVisitor<'r, R>(&'r R);

impl<'de, R: Reader> Visitor<'de> for OptionVisitor<'_, R> {
    type Value = Option<R::Output>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.stream(deserializer).map(Some)
    }
}

/// Fields that several shapes share, beside the fields of the shape itself.
#[derive(Clone, Copy, Debug)]
pub struct Group<T>(std::marker::PhantomData<fn() -> T>);

/// The fields of `T`, beside the fields of the shape itself.
#[must_use]
pub const fn group<T: Shape>() -> Group<T> {
    Group(std::marker::PhantomData)
}

impl<T: Shape> Field for Group<T> {
    type Output = T;

    fn take(&self, _: &'static str, fields: &mut Fields<'_>) -> Option<T> {
        T::take(fields)
    }

    fn properties(
        &self,
        _: &'static str,
        _: String,
        definitions: &mut Definitions,
    ) -> Vec<Property> {
        T::properties(definitions)
    }

    fn absent(&self) -> Option<T> {
        None
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<T, D::Error> {
        not_streamed(deserializer)
    }
}

/// `limit` and `cursor` of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    default_limit: Option<u32>,
}

/// `limit` and `cursor` of a list. Without a default limit, all items are listed unless one is
/// given.
#[must_use]
pub const fn page(default_limit: Option<u32>) -> Page {
    Page { default_limit }
}

const LIMIT: &str = "limit";
const CURSOR: &str = "cursor";

impl Page {
    fn limit() -> Unsigned {
        unsigned(1..=MAX_LIMIT)
    }
}

impl Field for Page {
    type Output = PageRequest;

    fn take(&self, _: &'static str, fields: &mut Fields<'_>) -> Option<PageRequest> {
        let limit = optional(Self::limit()).take(LIMIT, fields);
        // Both are read before either is refused, so that both problems are reported.
        let after: Option<Option<Cursor>> = optional(cursor()).take(CURSOR, fields);
        Some(PageRequest {
            limit: limit?.or(self.default_limit),
            after: after?,
        })
    }

    fn properties(
        &self,
        _: &'static str,
        _: String,
        definitions: &mut Definitions,
    ) -> Vec<Property> {
        vec![
            Property {
                name: LIMIT,
                description: format!("Maximum number of items, 1 to {MAX_LIMIT}"),
                schema: Self::limit().schema(definitions),
                is_required: false,
                default: self.default_limit.map(Value::from),
            },
            Property {
                name: CURSOR,
                description: "Where the page starts: from the previous page's `Link` header"
                    .to_owned(),
                schema: cursor().schema(definitions),
                is_required: false,
                default: None,
            },
        ]
    }

    fn absent(&self) -> Option<PageRequest> {
        None
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<PageRequest, D::Error> {
        not_streamed(deserializer)
    }
}

/// A group has no value under its name: the reader of all problems takes its fields.
fn not_streamed<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<T, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom("not read by streaming"))
}
