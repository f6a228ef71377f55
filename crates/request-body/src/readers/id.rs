//! Readers of ids.

use std::marker::PhantomData;

use serde_json::Value;
use uuid::Uuid;

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
};

/// A UUID, for ids that the specification calls so.
#[derive(Clone, Copy, Debug)]
pub struct UuidReader<T>(PhantomData<fn() -> T>);

/// A UUID, for ids that the specification calls so.
#[must_use]
pub const fn uuid<T: From<Uuid>>() -> UuidReader<T> {
    UuidReader(PhantomData)
}

impl<T: From<Uuid>> Reader for UuidReader<T> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        let Value::String(text) = value else {
            return at.refuse(ProblemKind::uuid_type());
        };
        match text.parse::<Uuid>() {
            Ok(uuid) => Some(uuid.into()),
            Err(error) => at.refuse(ProblemKind::uuid_parsing(&error)),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string").with("format", "uuid")
    }
}

/// An id that the specification calls a string.
#[derive(Clone, Copy, Debug)]
pub struct Id<T>(PhantomData<fn() -> T>);

/// An id that the specification calls a string: a text that is no UUID is an unknown id, not a
/// problem of shape.
#[must_use]
pub const fn id<T: From<Uuid>>() -> Id<T> {
    Id(PhantomData)
}

impl<T: From<Uuid>> Reader for Id<T> {
    type Output = MaybeId<T>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<MaybeId<T>> {
        let Value::String(text) = value else {
            return at.refuse(ProblemKind::string_type());
        };
        Some(MaybeId(text.parse::<Uuid>().ok().map(T::from)))
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string")
    }
}

/// An id, or a text that cannot be one and so belongs to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeId<T>(Option<T>);

impl<T> MaybeId<T> {
    /// The id, where it can be one.
    pub fn known(self) -> Option<T> {
        self.0
    }
}
