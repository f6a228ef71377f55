//! Texts that a spreadsheet would take for formulas.

use std::borrow::Cow;

/// First characters of texts that spreadsheets compute when they open a CSV file.
const BEGINNINGS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Puts an apostrophe before a text that a spreadsheet would take for a formula.
#[must_use]
pub fn neutralized(text: &str) -> Cow<'_, str> {
    if text.starts_with(BEGINNINGS) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_begins_as_a_formula_gets_an_apostrophe() {
        for text in ["=1+1", "+49 30", "-80 °C", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(neutralized(text), format!("'{text}"));
        }
        for text in ["", "a=1", " =1", "'=1", "A1", "\n=1"] {
            assert_eq!(neutralized(text), text);
        }
    }
}
