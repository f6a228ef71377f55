//! Numbers whose digits a float holds.

/// First whole number that a float may hold in place of another one.
pub(super) const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Number of its digits.
pub(super) const FIRST_INEXACT_DIGITS: usize = 16;

/// Returns whether a float is a whole number, and stands for no other one.
pub(super) fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < FIRST_INEXACT
}

/// Renders a whole number with leading zeros.
pub(super) fn render_padded(number: i64, digits: u8) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!(
        "{sign}{:0>width$}",
        number.unsigned_abs(),
        width = digits.into()
    )
}

/// Returns whether a float holds all digits of a number with a decimal point.
pub(super) fn is_exact_float(text: &str) -> bool {
    let digits = |text: &str| {
        // Zeros at the end are no digits that a float could lose.
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (whole, fraction) = (
            whole.trim_start_matches('+'),
            fraction.trim_end_matches('0'),
        );
        format!("{whole}.{fraction}")
    };
    let number: Option<f64> = text.parse().ok();
    number.is_some_and(|number| digits(&number.to_string()) == digits(text))
}

/// Returns whether a float has the digits of a number in front of its decimal sign. Both parts are digits without
/// zeros at their outer ends.
pub(super) fn keeps_whole_digits(whole: &str, fraction: &str) -> bool {
    let plain = format!("{whole}.{fraction}");
    let is_below = |number: f64| number < FIRST_INEXACT;
    // The shortest digits of a float may be others than those of its value.
    let has_digits =
        |number: f64| format!("{number}.") == plain || format!("{number:.0}.") == plain;
    let number: Option<f64> = plain.parse().ok();
    number.is_some_and(|number| is_below(number) || has_digits(number))
}
