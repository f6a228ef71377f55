//! Durations and times of day as texts.

/// Renders a duration of microseconds as ISO 8601 has it: `PT24H15M`.
pub(in crate::read) fn render_duration(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
    let mut text = format!("{sign}PT");
    for (number, unit) in [(seconds / 3_600, 'H'), (seconds / 60 % 60, 'M')] {
        if number > 0 {
            text.push_str(&number.to_string());
            text.push(unit);
        }
    }
    if seconds % 60 > 0 || fraction > 0 || total == 0 {
        text.push_str(&(seconds % 60).to_string());
        if fraction > 0 {
            let digits = format!(".{fraction:06}");
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push('S');
    }
    text
}

/// Renders a time of day: `08:30:00`.
pub(in crate::read) fn render_clock(micros: i64) -> String {
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let mut text = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if fraction > 0 {
        let digits = format!(".{fraction:06}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}
