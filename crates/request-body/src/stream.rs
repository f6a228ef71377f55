//! Reading straight from bytes, without a tree of JSON values; used by [`shape!`](crate::shape!).

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, DeserializeSeed, SeqAccess};
pub use serde::de::{Deserializer, Error, MapAccess, Visitor};
pub use serde_json::Value;

use crate::{Field, Reader};

/// Reads a field's value.
#[derive(Debug)]
pub struct FieldSeed<'f, F>(pub &'f F);

impl<'de, F: Field> DeserializeSeed<'de> for FieldSeed<'_, F> {
    type Value = F::Output;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F::Output, D::Error> {
        self.0.stream(deserializer)
    }
}

/// Reads a value.
#[derive(Debug)]
pub struct ReaderSeed<'r, R>(pub &'r R);

impl<'de, R: Reader> DeserializeSeed<'de> for ReaderSeed<'_, R> {
    type Value = R::Output;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<R::Output, D::Error> {
        self.0.stream(deserializer)
    }
}

/// The next name of an object, borrowed from the body unless it has escapes.
///
/// # Errors
/// The body is not JSON.
pub fn next_name<'de, A: MapAccess<'de>>(
    object: &mut A,
) -> Result<Option<Cow<'de, str>>, A::Error> {
    Ok(object.next_key::<Name<'de>>()?.map(|Name(name)| name))
}

/// A text, borrowed from the body unless it has escapes.
#[derive(Debug)]
pub(crate) struct Name<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        // Most names have no escapes, so they are borrowed from the body instead of copied.
        deserializer.deserialize_str(NameVisitor)
    }
}

/// The value of an unknown field. It is parsed in full, as the reader of all problems does: text
/// that is not UTF-8 and numbers out of range are refused.
#[derive(Debug)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not serde's `IgnoredAny`: it skips values without the other reader's checks, such as a number's range.
        deserializer.deserialize_any(IgnoredVisitor)
    }
}

struct IgnoredVisitor;

impl<'de> Visitor<'de> for IgnoredVisitor {
    type Value = Ignored;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ignored, A::Error> {
        while items.next_element::<Ignored>()?.is_some() {}
        Ok(Ignored)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Ignored, A::Error> {
        while next_name(&mut object)?.is_some() {
            object.next_value::<Ignored>()?;
        }
        Ok(Ignored)
    }
}
