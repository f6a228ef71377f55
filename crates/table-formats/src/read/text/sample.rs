//! The beginning of a text, divided by a delimiter on trial.

/// Number of lines that decide.
const SAMPLE_LINES: usize = 300;

/// A row of a sample that is not blank.
pub(super) struct SampleRow {
    pub(super) fields: Vec<String>,
    /// True if blank lines are in front of it.
    pub(super) follows_blank: bool,
    /// True if text follows the end of a quotation.
    pub(super) has_fault: bool,
}

/// Rows of a sample that are not blank.
#[derive(Default)]
struct SampleRows {
    rows: Vec<SampleRow>,
    row: Vec<String>,
    field: String,
    follows_blank: bool,
    has_fault: bool,
}

impl SampleRows {
    fn end_field(&mut self) {
        self.row.push(std::mem::take(&mut self.field));
    }

    /// Ends a row; false if there are enough.
    fn end_row(&mut self) -> bool {
        self.end_field();
        let fields = std::mem::take(&mut self.row);
        let has_fault = std::mem::take(&mut self.has_fault);
        if fields.iter().all(|field| field.trim().is_empty()) {
            self.follows_blank = true;
        } else {
            self.rows.push(SampleRow {
                fields,
                follows_blank: std::mem::take(&mut self.follows_blank),
                has_fault,
            });
        }
        self.rows.len() < SAMPLE_LINES
    }
}

/// Divides a sample into rows that are not blank, as the reader does.
pub(super) fn split(sample: &str, delimiter: u8, quote: Option<u8>) -> Vec<SampleRow> {
    let delimiter = char::from(delimiter);
    let quote = quote.map(char::from);
    let mut found = SampleRows::default();
    let mut chars = sample.chars().peekable();
    let mut is_quoted = false;
    let mut is_start = true;
    let mut is_behind_quotation = false;
    while let Some(char) = chars.next() {
        if is_quoted {
            if Some(char) != quote {
                found.field.push(char);
            } else if chars.peek() == Some(&char) {
                found.field.push(char);
                chars.next();
            } else {
                is_quoted = false;
                is_behind_quotation = true;
            }
            continue;
        }
        // Blanks between a quotation and the delimiter belong to nothing.
        let is_end = char == delimiter || matches!(char, '\n' | '\r');
        if is_behind_quotation && char != ' ' {
            found.has_fault |= !is_end;
            is_behind_quotation = false;
        }
        if Some(char) == quote && is_start {
            is_quoted = true;
            is_start = false;
        } else if char == delimiter {
            found.end_field();
            is_start = true;
        } else if matches!(char, '\n' | '\r') {
            // Both are one break.
            if char == '\r' && chars.peek() == Some(&'\n') {
                chars.next();
            }
            is_start = true;
            if !found.end_row() {
                return found.rows;
            }
        } else {
            is_start = false;
            found.field.push(char);
        }
    }
    found.end_row();
    found.rows
}

/// Returns the delimiter that a first line `sep=;` names, which Excel reads and writes.
pub(super) fn sep_line(sample: &str) -> Option<u8> {
    let line = sample.lines().next()?.trim_end_matches('\r');
    let line = line.trim_matches('"');
    let start = line.get(..4)?;
    match line.as_bytes().get(4..)? {
        [sign] if start.eq_ignore_ascii_case("sep=") && sign.is_ascii() => Some(*sign),
        _ => None,
    }
}

/// Removes the empty field that ends each row but the header's, as of a program that ends rows with a delimiter.
pub(super) fn without_endings(mut rows: Vec<SampleRow>) -> Vec<SampleRow> {
    let Some((header, others)) = rows.split_first_mut() else {
        return rows;
    };
    let width = header.fields.len();
    let is_ended = |row: &SampleRow| {
        row.fields.len() == width + 1 && row.fields.last().is_some_and(String::is_empty)
    };
    if width > 1 && others.iter().all(is_ended) {
        for row in others {
            row.fields.pop();
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_quotation_marks_within_a_quotation_are_one() {
        let rows = split("\"5\"\" plate\",\"\"\"\"\n", b',', Some(b'"'));
        assert_eq!(rows[0].fields, ["5\" plate", "\""]);
        assert!(!rows[0].has_fault);
    }
}
