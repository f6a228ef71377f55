//! Readers of one value out of a few.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
    stream::Name,
};

/// One of the named values.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T, const N: usize>([(&'static str, T); N]);

/// One of the named values.
pub const fn choice<T: Clone, const N: usize>(choices: [(&'static str, T); N]) -> Choice<T, N> {
    Choice(choices)
}

/// One of the values, by its name.
pub fn choice_of<T: Copy, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> Choice<T, N> {
    Choice(values.map(|value| (name(value), value)))
}

impl<T: Clone, const N: usize> Choice<T, N> {
    fn find(&self, name: &str) -> Option<T> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, choice)| choice.clone())
    }

    fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

impl<T: Clone, const N: usize> Reader for Choice<T, N> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        let found = value.as_str().and_then(|name| self.find(name));
        found.or_else(|| at.refuse(ProblemKind::choice(&self.names())))
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string").with("enum", self.names())
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<T, D::Error> {
        let Name(name) = Name::deserialize(deserializer)?;
        self.find(&name)
            .ok_or_else(|| D::Error::custom("none of the names"))
    }
}
