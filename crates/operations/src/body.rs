//! Request bodies: how they are read and described.

use std::marker::PhantomData;

use bytes::Bytes;
use labdata_request_body::{Definitions, FieldPath, Property, Schema, Shape, json};
use serde_json::Value;

/// Form in which a body is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// A body that is sent is ignored.
    None,
    /// JSON.
    Json,
    /// JSON, which may be left out.
    OptionalJson,
}

/// A body that an operation describes. That of an operation with a separate handler may be in any form.
pub trait DescribeBody: 'static {
    /// Describes the body; `None` if there is none.
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription>;

    /// Describes the body in its other form, if it has one.
    #[must_use]
    fn describe_other(_: &mut Definitions) -> Option<BodyDescription> {
        None
    }
}

/// The kind of body that an operation reads; the second parameter of [`crate::Call`].
pub trait Body: DescribeBody {
    /// Value that is read from it.
    type Value: Send;
    /// Way in which it is received.
    const KIND: BodyKind;

    /// Reads what was received. `None` if it does not fit; the problems are reported.
    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<Self::Value>;

    /// The body as a document, in which the values of problems are looked up.
    fn document(received: &Bytes) -> Value;

    /// Describes the fields of the body.
    fn fields(definitions: &mut Definitions) -> Vec<Property>;
}

/// The description of a body.
#[derive(Debug)]
pub struct BodyDescription {
    /// Its Content-Type.
    pub content_type: &'static str,
    /// Its schema.
    pub schema: Schema,
    /// True if it cannot be left out.
    pub is_required: bool,
    /// An example of it.
    pub example: Option<Value>,
}

pub(crate) const JSON: &str = "application/json";

/// The Content-Type of forms with files.
pub const MULTIPART: &str = "multipart/form-data";

/// The operation reads no body.
#[derive(Debug)]
pub enum NoBody {}

impl DescribeBody for NoBody {
    fn describe(_: &mut Definitions) -> Option<BodyDescription> {
        None
    }
}

impl Body for NoBody {
    type Value = ();
    const KIND: BodyKind = BodyKind::None;

    fn read(_: &Bytes, _: &FieldPath<'_>) -> Option<()> {
        Some(())
    }

    fn document(_: &Bytes) -> Value {
        Value::Null
    }

    fn fields(_: &mut Definitions) -> Vec<Property> {
        Vec::new()
    }
}

/// The operation reads a JSON body.
#[derive(Debug)]
pub struct JsonBody<T>(PhantomData<fn() -> T>);

impl<T: Shape + 'static> DescribeBody for JsonBody<T> {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: JSON,
            schema: definitions.reference::<T>(),
            is_required: true,
            example: T::example(),
        })
    }
}

impl<T: Shape + Send + 'static> Body for JsonBody<T> {
    type Value = T;
    const KIND: BodyKind = BodyKind::Json;

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<T> {
        json::read(received, at)
    }

    fn document(received: &Bytes) -> Value {
        json::document(received)
    }

    fn fields(definitions: &mut Definitions) -> Vec<Property> {
        T::properties(definitions)
    }
}

/// The operation reads a JSON body, which may be empty or null.
#[derive(Debug)]
pub struct OptionalJson<T>(PhantomData<fn() -> T>);

impl<T: Shape + 'static> DescribeBody for OptionalJson<T> {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: JSON,
            schema: definitions.reference::<T>().or_null(),
            is_required: false,
            example: T::example(),
        })
    }
}

impl<T: Shape + Send + 'static> Body for OptionalJson<T> {
    type Value = Option<T>;
    const KIND: BodyKind = BodyKind::OptionalJson;

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<Option<T>> {
        json::read_optional(received, at)
    }

    fn document(received: &Bytes) -> Value {
        json::document(received)
    }

    fn fields(definitions: &mut Definitions) -> Vec<Property> {
        T::properties(definitions)
    }
}

/// The operation reads a form, whose parts are the fields of a shape. Its handler is written by hand.
#[derive(Debug)]
pub struct FormBody<T>(PhantomData<fn() -> T>);

impl<T: Shape + 'static> DescribeBody for FormBody<T> {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: MULTIPART,
            schema: definitions.reference::<T>(),
            is_required: true,
            example: T::example(),
        })
    }
}
