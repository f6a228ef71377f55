//! Numbers of a report.

use crate::numbers::grouped;

/// Shows a value with about four digits.
pub(super) fn display(value: f64) -> String {
    let size = value.abs();
    let text = if size == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e6).contains(&size) {
        format!("{value:.3e}")
    } else if size >= 1_000.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    };
    // Zeros of an exponent count: `1.000e10` must not become `1.000e1`.
    if text.contains('.') && !text.contains('e') {
        let text = text.trim_end_matches('0');
        return text.trim_end_matches('.').to_owned();
    }
    text
}

/// Shows a duration.
pub(super) fn displayed_seconds(seconds: f64) -> String {
    if seconds >= 120.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds >= 10.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{} s", display((seconds * 1_000.0).round() / 1_000.0))
    }
}

/// Shows a count with its digits in groups.
pub(super) fn counted(count: u64) -> String {
    usize::try_from(count).map_or_else(|_| count.to_string(), grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_about_four_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.972_222, "0.9722"),
            (1.0, "1"),
            (-0.01, "-0.01"),
            (57.126, "57.13"),
            (1_234.56, "1235"),
            (0.000_012_3, "1.230e-5"),
            (1.5e9, "1.500e9"),
        ] {
            assert_eq!(display(value), expected);
        }
    }

    #[test]
    fn durations_are_shown_in_seconds_or_minutes() {
        assert_eq!(displayed_seconds(0.0123), "0.012 s");
        assert_eq!(displayed_seconds(42.4), "42 s");
        assert_eq!(displayed_seconds(600.0), "10 min");
    }
}
