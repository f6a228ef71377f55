//! Conversions of numbers and JSON that cells share.

use serde_json::Value;

/// Reads a whole number that was written with a point or an exponent.
pub(super) fn exact_integer(number: f64) -> Option<i64> {
    // Beyond 2^53 neighboring integers share one double.
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "whole and within ±2^53"
    )]
    (number.fract() == 0.0 && number.abs() <= LIMIT).then_some(number as i64)
}

/// The double nearest to an integer, which a float column stores for it.
#[must_use]
pub fn integer_to_float(number: i64) -> f64 {
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "rounding is what a float column does"
    )]
    {
        number as f64
    }
}

/// Returns whether a float equals an integer: it has 53 bits between the first and the last that is set.
#[must_use]
pub fn has_exact_float(number: i64) -> bool {
    let magnitude = number.unsigned_abs();
    let zeros = magnitude.leading_zeros() + magnitude.trailing_zeros();
    u64::BITS.saturating_sub(zeros) <= f64::MANTISSA_DIGITS
}

/// Returns whether a float shows the digits of an integer, as a program writes them that has only floats.
pub(super) fn keeps_digits(number: i64) -> bool {
    has_exact_float(number) || integer_to_float(number).to_string() == number.to_string()
}

/// The double nearest to an integer beyond `i64`.
#[must_use]
pub fn large_to_float(number: u64) -> f64 {
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "rounding is what a float column does"
    )]
    {
        number as f64
    }
}

/// Returns whether any text in a value, keys included, holds a NUL, which jsonb cannot store.
pub(super) fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(list) => list.iter().any(holds_nul),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
