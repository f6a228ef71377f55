//! Number formats of cells.

/// Form in which a cell is shown, as far as its value depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellFormat {
    Plain,
    /// A time without a date: `h:mm:ss`, `mm:ss.0`.
    Time,
    /// A whole number with leading zeros up to that number of digits: `00000`.
    Padded(u8),
    /// A number with leading zeros or letters, in another form: `000-00`, `"PL"0`.
    Labeled,
}

impl CellFormat {
    /// Reads the code of a format.
    pub(super) fn of(code: &str) -> Self {
        let FirstSection { signs, literals } = FirstSection::of(code);
        // `e` and `g` are Japanese years and eras; `m` decides nothing, as it is a month or a minute.
        if signs.contains(['h', 's']) && !signs.contains(['d', 'y', 'e', 'g']) {
            return Self::Time;
        }
        // Behind the point, and in an exponent, zeros are decimals.
        let whole = signs.split(['.', 'e']).next().unwrap_or_default();
        let zeros = whole.matches('0').count();
        let has_zeros_only = literals.is_empty() && signs.bytes().all(|sign| sign == b'0');
        match u8::try_from(zeros) {
            Ok(digits @ 2..) if has_zeros_only => Self::Padded(digits),
            Ok(0 | 1) if !literals.contains(char::is_alphanumeric) => Self::Plain,
            _ => Self::Labeled,
        }
    }
}

/// First section of a format, for positive numbers, without colors, languages and fillers.
#[derive(Default)]
struct FirstSection {
    /// In lower case.
    signs: String,
    /// Characters that are shown as they are.
    literals: String,
}

impl FirstSection {
    fn of(code: &str) -> Self {
        let mut section = Self::default();
        let mut chars = code.chars();
        while let Some(char) = chars.next() {
            match char {
                ';' => break,
                '"' => {
                    let text = chars.by_ref().take_while(|char| *char != '"');
                    section.literals.extend(text);
                }
                '[' => {
                    chars.by_ref().find(|char| *char == ']');
                }
                '\\' => section.literals.extend(chars.next()),
                // Marks the next character for its width, or as a filler.
                '_' | '*' => {
                    chars.next();
                }
                _ => section.signs.push(char.to_ascii_lowercase()),
            }
        }
        section
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_times_have_no_date() {
        for code in [
            "h:mm",
            "h:mm:ss",
            "mm:ss.0",
            "h:mm:ss AM/PM",
            "hh:mm;@",
            "[$-409]h:mm",
        ] {
            assert_eq!(CellFormat::of(code), CellFormat::Time, "{code}");
        }
        for code in [
            "m/d/yy h:mm",
            "yyyy-mm-dd",
            "0.00",
            "dd/mm hh:mm",
            "General",
            "0\"s\"",
        ] {
            assert_ne!(CellFormat::of(code), CellFormat::Time, "{code}");
        }
    }

    #[test]
    fn formats_that_show_more_than_the_number_are_known() {
        for (code, expected) in [
            ("00000", CellFormat::Padded(5)),
            ("00", CellFormat::Padded(2)),
            ("[Red]000;-000", CellFormat::Padded(3)),
            ("000_)", CellFormat::Padded(3)),
            ("000-00-0000", CellFormat::Labeled),
            ("000\\-00", CellFormat::Labeled),
            ("\"PL\"0", CellFormat::Labeled),
            ("\\S0", CellFormat::Labeled),
            ("0\" mg\"", CellFormat::Labeled),
            ("00.00", CellFormat::Labeled),
            ("General", CellFormat::Plain),
            ("0", CellFormat::Plain),
            ("0.000", CellFormat::Plain),
            ("#,##0.00", CellFormat::Plain),
            ("0.00E+00", CellFormat::Plain),
            ("0%", CellFormat::Plain),
            ("_-* #,##0.00\\ \"\u{20ac}\"_-", CellFormat::Plain),
            ("@", CellFormat::Plain),
        ] {
            assert_eq!(CellFormat::of(code), expected, "{code}");
        }
    }
}
