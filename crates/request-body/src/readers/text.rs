//! Readers of texts.

use std::{
    fmt::Display,
    ops::{Bound, RangeBounds},
};

use labdata_domain::{page::Cursor, timestamp};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;
use time::OffsetDateTime;

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
};

/// A text of a bounded number of characters.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    min: usize,
    max: usize,
}

/// A text of that many characters. NUL is refused: PostgreSQL cannot store it.
#[must_use]
pub fn text(characters: impl RangeBounds<usize>) -> Text {
    let min = match characters.start_bound() {
        Bound::Included(min) => *min,
        Bound::Excluded(below) => below.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let max = match characters.end_bound() {
        Bound::Included(max) => *max,
        Bound::Excluded(above) => above.saturating_sub(1),
        Bound::Unbounded => usize::MAX,
    };
    Text { min, max }
}

impl Text {
    fn check(self, text: &str) -> Result<(), ProblemKind> {
        if text.contains('\0') {
            return Err(ProblemKind::no_nul());
        }
        // Characters, as JSON Schema counts `maxLength`; bytes would depend on the alphabet.
        let length = text.chars().count();
        if length < self.min {
            return Err(ProblemKind::string_too_short(self.min));
        }
        if length > self.max {
            return Err(ProblemKind::string_too_long(self.max));
        }
        Ok(())
    }

    /// Parses the text; an error becomes a `value_error` with its message.
    pub const fn parsed<T, E: Display, F: Fn(&str) -> Result<T, E>>(self, parse: F) -> Parsed<F> {
        Parsed { text: self, parse }
    }
}

impl Reader for Text {
    type Output = String;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<String> {
        let Value::String(text) = value else {
            return at.refuse(ProblemKind::string_type());
        };
        match self.check(&text) {
            Ok(()) => Some(text),
            Err(kind) => at.refuse(kind),
        }
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        match self.check(&text) {
            Ok(()) => Ok(text),
            Err(_) => Err(D::Error::custom("does not fit")),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        let mut schema = Schema::of("string");
        if self.min > 0 {
            schema = schema.with("minLength", self.min);
        }
        if self.max < usize::MAX {
            schema = schema.with("maxLength", self.max);
        }
        schema
    }
}

/// A text with a syntax.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<F> {
    text: Text,
    parse: F,
}

impl<T, E: Display, F: Fn(&str) -> Result<T, E>> Reader for Parsed<F> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        let text = self.text.read(value, at)?;
        match (self.parse)(&text) {
            Ok(parsed) => Some(parsed),
            Err(error) => at.refuse(ProblemKind::value_error(&error.to_string())),
        }
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        self.text.schema(definitions)
    }
}

/// A point in time with its offset (RFC 3339).
#[derive(Clone, Copy, Debug)]
pub struct Datetime;

/// A point in time with its offset (RFC 3339).
#[must_use]
pub const fn datetime() -> Datetime {
    Datetime
}

impl Reader for Datetime {
    type Output = OffsetDateTime;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<OffsetDateTime> {
        let Value::String(text) = value else {
            return at.refuse(ProblemKind::datetime_type());
        };
        if let Some(parsed) = timestamp::parse(&text) {
            return Some(parsed);
        }
        // A missing offset is the usual mistake, so it has its own message.
        let only_offset_missing = timestamp::parse(&format!("{text}Z")).is_some();
        at.refuse(
            if only_offset_missing || timestamp::parse_date(&text).is_some() {
                ProblemKind::timezone_aware()
            } else if text.len() < 10 {
                ProblemKind::datetime_from_date_parsing("input is too short")
            } else {
                ProblemKind::datetime_from_date_parsing(
                    "expected a form such as 2026-03-01T12:00:00Z",
                )
            },
        )
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string").with("format", "date-time")
    }
}

/// The start of a page, from a `Link` header.
#[derive(Clone, Copy, Debug)]
pub struct CursorReader<T> {
    decode: fn(&str) -> Option<T>,
}

/// The start of a page of a list ordered by creation.
#[must_use]
pub fn cursor() -> CursorReader<Cursor> {
    cursor_of(Cursor::decode)
}

/// The start of a page of a list in another order.
#[must_use]
pub const fn cursor_of<T>(decode: fn(&str) -> Option<T>) -> CursorReader<T> {
    CursorReader { decode }
}

impl<T> Reader for CursorReader<T> {
    type Output = T;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<T> {
        let cursor = value.as_str().and_then(self.decode);
        cursor.or_else(|| at.refuse(ProblemKind::value_error("not a cursor of this list")))
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string").with("minLength", 1)
    }
}
