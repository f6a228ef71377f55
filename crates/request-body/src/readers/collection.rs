//! Readers of lists, maps and nested shapes.

use std::{fmt, marker::PhantomData, ops::RangeInclusive};

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
    shape::Shape,
    stream::ReaderSeed,
};

/// A list of values that one reader reads.
#[derive(Clone, Copy, Debug)]
pub struct List<R> {
    item: R,
    min: usize,
    max: usize,
}

/// A list of values that the reader reads.
pub const fn list<R: Reader>(item: R) -> List<R> {
    List {
        item,
        min: 0,
        max: usize::MAX,
    }
}

impl<R> List<R> {
    /// Bounds the number of items.
    #[must_use]
    pub fn of(self, count: RangeInclusive<usize>) -> Self {
        Self {
            min: *count.start(),
            max: *count.end(),
            ..self
        }
    }
}

impl<R: Reader> Reader for List<R> {
    type Output = Vec<R::Output>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Vec<R::Output>> {
        let Value::Array(items) = value else {
            return at.refuse(ProblemKind::list_type());
        };
        let count = items.len();
        if count < self.min {
            return at.refuse(ProblemKind::too_short(self.min, count));
        }
        // Before the items: a list that is far too long is not read at all.
        if count > self.max {
            return at.refuse(ProblemKind::too_long(self.max, count));
        }
        let read: Vec<R::Output> = items
            .into_iter()
            .enumerate()
            // Continues after an item that does not fit, so that all problems are reported.
            .filter_map(|(index, item)| self.item.read(item, &at.item(index)))
            .collect();
        (read.len() == count).then_some(read)
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        let mut schema = Schema::of("array").with("items", self.item.schema(definitions));
        if self.min > 0 {
            schema = schema.with("minItems", self.min);
        }
        if self.max < usize::MAX {
            schema = schema.with("maxItems", self.max);
        }
        schema
    }

    fn stream<'de, D: Deserializer<'de>>(
        &self,
        deserializer: D,
    ) -> Result<Vec<R::Output>, D::Error> {
        // The size of a streamed list is known at its end only; the limit of the body bounds it.
        let items = deserializer.deserialize_seq(ListVisitor(&self.item))?;
        if (self.min..=self.max).contains(&items.len()) {
            Ok(items)
        } else {
            Err(D::Error::custom("too few or too many items"))
        }
    }
}

struct ListVisitor<'r, R>(&'r R);

impl<'de, R: Reader> Visitor<'de> for ListVisitor<'_, R> {
    type Value = Vec<R::Output>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(ReaderSeed(self.0))? {
            read.push(item);
        }
        Ok(read)
    }
}

/// A map from names to values that one reader reads.
#[derive(Clone, Copy, Debug)]
pub struct MapOf<R>(R);

/// A map from names to values that the reader reads.
pub const fn map_of<R: Reader>(value: R) -> MapOf<R> {
    MapOf(value)
}

impl<R: Reader> Reader for MapOf<R> {
    type Output = Vec<(String, R::Output)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let Value::Object(fields) = value else {
            return at.refuse(ProblemKind::dict_type());
        };
        let count = fields.len();
        let read: Self::Output = fields
            .into_iter()
            .filter_map(|(name, field)| {
                let field = self.0.read(field, &at.field(&name))?;
                Some((name, field))
            })
            .collect();
        (read.len() == count).then_some(read)
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        let values = self.0.schema(definitions);
        Schema::of("object").with("additionalProperties", values)
    }
}

/// A nested shape.
#[derive(Clone, Copy, Debug)]
pub struct ShapeReader<T>(PhantomData<fn() -> T>);

/// A nested shape.
#[must_use]
pub const fn shape<T: Shape>() -> ShapeReader<T> {
    ShapeReader(PhantomData)
}

impl<T: Shape> Reader for ShapeReader<T> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        T::read(value, at)
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        definitions.reference::<T>()
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<T, D::Error> {
        T::stream(deserializer)
    }
}
