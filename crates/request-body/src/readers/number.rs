//! Readers of numbers and truth values.

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
    underflow::underflows,
};

/// A whole number within bounds, both included.
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    min: i64,
    max: i64,
}

/// A whole number within bounds, both included.
#[must_use]
pub const fn integer(range: RangeInclusive<i64>) -> Integer {
    Integer {
        min: *range.start(),
        max: *range.end(),
    }
}

impl Reader for Integer {
    type Output = i64;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<i64> {
        // In 128 bits, so that a number beyond 64 bits is reported as out of bounds, not as no number.
        let number = match whole(&value) {
            Ok(number) => number,
            Err(kind) => return at.refuse(kind),
        };
        if number > i128::from(self.max) {
            return at.refuse(ProblemKind::less_than_equal(self.max));
        }
        if number < i128::from(self.min) {
            return at.refuse(ProblemKind::greater_than_equal(self.min));
        }
        match i64::try_from(number) {
            Ok(number) => Some(number),
            Err(_) => at.refuse(ProblemKind::int_parsing()),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        let mut schema = Schema::of("integer");
        if self.min > i64::MIN {
            schema = schema.with("minimum", self.min);
        }
        if self.max < i64::MAX {
            schema = schema.with("maximum", self.max);
        }
        schema
    }
}

/// A whole number of 32 bits, not negative, within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned(Integer);

/// A whole number of 32 bits, not negative, within bounds, both included.
#[must_use]
pub fn unsigned(range: RangeInclusive<u32>) -> Unsigned {
    Unsigned(integer(i64::from(*range.start())..=i64::from(*range.end())))
}

impl Reader for Unsigned {
    type Output = u32;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<u32> {
        u32::try_from(self.0.read(value, at)?).ok()
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        self.0.schema(definitions)
    }
}

/// The whole number that a value means; the nearest one for numbers beyond 128 bits.
fn whole(value: &Value) -> Result<i128, ProblemKind> {
    match value {
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Ok(whole),
            #[expect(
                clippy::as_conversions,
                clippy::cast_possible_truncation,
                reason = "it has no fraction, and `as` gives the nearest beyond the limits"
            )]
            (None, Some(float)) if float.fract() == 0.0 => Ok(float as i128),
            _ => Err(ProblemKind::int_from_float()),
        },
        Value::String(text) => {
            let text = text.trim();
            // `5.0` is the whole number 5, as a text too.
            let text = match text.split_once('.') {
                Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
                _ => text,
            };
            text.parse().or_else(|_| {
                // Digits beyond 128 bits are a number out of bounds, not a text that is no number.
                if is_long_number(text) {
                    Ok(if text.starts_with('-') {
                        i128::MIN
                    } else {
                        i128::MAX
                    })
                } else {
                    Err(ProblemKind::int_parsing())
                }
            })
        }
        // As pydantic reads it: true is 1.
        Value::Bool(truth) => Ok(i128::from(*truth)),
        _ => Err(ProblemKind::int_type()),
    }
}

fn is_long_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of double precision.
#[derive(Clone, Copy, Debug)]
pub struct Float;

/// A number of double precision.
#[must_use]
pub const fn float() -> Float {
    Float
}

impl Reader for Float {
    type Output = f64;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<f64> {
        match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.trim().parse::<f64>() {
                // Rust also parses `inf` and `nan`, for which JSON has no numbers.
                Ok(number) if number.is_finite() && !underflows(text.trim()) => Some(number),
                _ => at.refuse(ProblemKind::float_parsing()),
            },
            _ => at.refuse(ProblemKind::float_type()),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("number")
    }
}

/// A JSON number, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct JsonNumber;

/// A JSON number, as it is written.
#[must_use]
pub const fn number() -> JsonNumber {
    JsonNumber
}

impl Reader for JsonNumber {
    type Output = Number;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Number> {
        match value {
            Value::Number(number) => Some(number),
            _ => at.refuse(ProblemKind::float_type()),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("number")
    }
}

/// True or false.
#[derive(Clone, Copy, Debug)]
pub struct Boolean;

/// True or false, also as 1, 0, `yes`, `no`, `on`, `off`, `t`, `f`, `y`, `n`.
#[must_use]
pub const fn boolean() -> Boolean {
    Boolean
}

impl Reader for Boolean {
    type Output = bool;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<bool> {
        match &value {
            Value::Bool(truth) => Some(*truth),
            Value::String(text) => match text.to_ascii_lowercase().as_str() {
                // The texts that pydantic takes.
                "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
                "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
                _ => at.refuse(ProblemKind::bool_parsing()),
            },
            Value::Number(number) => match number.as_f64() {
                Some(1.0) => Some(true),
                Some(0.0) => Some(false),
                // pydantic distinguishes 2, a wrong value, from 0.5, a wrong type.
                Some(float) if float.fract() == 0.0 => at.refuse(ProblemKind::bool_parsing()),
                _ => at.refuse(ProblemKind::bool_type()),
            },
            _ => at.refuse(ProblemKind::bool_type()),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("boolean")
    }
}
