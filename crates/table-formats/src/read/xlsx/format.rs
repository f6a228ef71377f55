//! Number formats of cells.

/// Format of a cell, as far as its value depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellFormat {
    /// True for a time without a date: `h:mm:ss`, `mm:ss.0`.
    pub(super) is_time: bool,
    /// Sections for numbers, each for some of them.
    sections: Vec<Section>,
}

/// Form in which a number is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Shown {
    #[default]
    Number,
    /// A whole number with leading zeros up to that number of digits: `00000`.
    Padded(u8),
    /// A number with leading zeros in another form: `00.00`.
    Zeros,
    /// A hundred times the number, with a percent sign.
    Percent,
    /// The number among other characters, such as ` mg`. Where it is not the number that is shown among them, they
    /// are the code of the section: `000-00`, `"n.d."`, `0.0,"k"`.
    Labeled(Box<str>),
}

impl CellFormat {
    /// Reads the code of a format.
    pub(super) fn of(code: &str) -> Self {
        let parts: Vec<Parts> = split(code).into_iter().map(Parts::of).collect();
        let signs = parts.first().map_or("", |first| &first.signs);
        let numbers = parts.iter().enumerate();
        // Behind three sections, and in the last one with an `@`, is the form of texts.
        let numbers = numbers.filter(|(index, it)| *index == 0 || !it.signs.contains('@'));
        Self {
            // `e` and `g` are Japanese years and eras; `m` decides nothing, as it is a month or a minute.
            is_time: signs.contains(['h', 's']) && !signs.contains(['d', 'y', 'e', 'g']),
            sections: numbers.take(3).map(|(_, parts)| parts.section()).collect(),
        }
    }

    /// Returns how a number is shown.
    pub(super) fn shown(&self, number: f64) -> &Shown {
        let last = self.sections.len().saturating_sub(1);
        let sections = self.sections.iter().enumerate();
        let mut fitting = sections.filter(|(index, section)| match section.condition {
            _ if *index == last => true,
            Some(condition) => condition.holds(number),
            None if *index == 1 => number < 0.0,
            None if last == 1 => number >= 0.0,
            None => number > 0.0,
        });
        fitting
            .next()
            .map_or(&Shown::Number, |(_, section)| section.shown(number))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Section {
    condition: Option<Condition>,
    shown: Shown,
    /// Form of numbers above zero if the section shows them as negative ones: `"-"0`, `(0)`, `0-`.
    as_negative: Option<Shown>,
}

impl Section {
    fn shown(&self, number: f64) -> &Shown {
        let as_negative = self.as_negative.as_ref().filter(|_| number > 0.0);
        as_negative.unwrap_or(&self.shown)
    }
}

/// Condition of a section, such as `[<0.01]`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Condition {
    is_below: bool,
    is_equal: bool,
    is_above: bool,
    limit: f64,
}

impl Condition {
    fn of(text: &str) -> Option<Self> {
        let limit = text.trim_start_matches(['<', '=', '>']);
        let operator = text
            .strip_suffix(limit)
            .filter(|operator| !operator.is_empty())?;
        Some(Self {
            is_below: operator.contains('<'),
            is_equal: operator.contains('='),
            is_above: operator.contains('>'),
            limit: limit.trim().parse().ok()?,
        })
    }

    fn holds(self, number: f64) -> bool {
        self.is_below && number < self.limit
            || self.is_above && number > self.limit
            || self.is_equal && number.to_bits() == self.limit.to_bits()
    }
}

/// Divides the code of a format into its sections.
fn split(code: &str) -> Vec<&str> {
    let (mut sections, mut start) = (Vec::new(), 0);
    let mut chars = code.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            ';' => {
                sections.push(code.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            '"' => {
                chars.by_ref().find(|(_, char)| *char == '"');
            }
            '[' => {
                chars.by_ref().find(|(_, char)| *char == ']');
            }
            // The next character has no meaning.
            '\\' | '_' | '*' => {
                chars.next();
            }
            _ => {}
        }
    }
    sections.push(code.get(start..).unwrap_or_default());
    sections
}

/// Parts of a section, without colors, languages and fillers.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact about the characters so far"
)]
struct Parts<'c> {
    code: &'c str,
    /// In lower case.
    signs: String,
    /// Characters that are shown as they are.
    literals: String,
    condition: Option<Condition>,
    has_digits: bool,
    /// True if a character that belongs to a label, or divides numbers, follows the first digit.
    has_break: bool,
    /// True if digits follow it, or if the number is shown with digits or a point besides its own.
    is_broken: bool,
    /// True if the number is shown with a sign of negative ones.
    has_minus: bool,
    last: Last,
}

/// Character in front of the next one, as far as it belongs to a number that is shown.
#[derive(Clone, Copy, Default, PartialEq)]
enum Last {
    #[default]
    Other,
    Letter,
    /// A digit or the decimal sign of the number.
    Own,
    /// A digit or a point in front of the number that is shown as it is.
    Literal,
}

impl<'c> Parts<'c> {
    fn of(code: &'c str) -> Self {
        let mut parts = Self {
            code,
            ..Self::default()
        };
        let is_fraction = code.contains('/');
        let mut chars = code.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '"' => {
                    let text = chars.by_ref().take_while(|char| *char != '"');
                    text.for_each(|char| parts.push_literal(char));
                }
                '[' => {
                    let text: String = chars.by_ref().take_while(|char| *char != ']').collect();
                    parts.condition = parts.condition.or(Condition::of(&text));
                }
                '\\' => chars
                    .next()
                    .into_iter()
                    .for_each(|char| parts.push_literal(char)),
                // Marks the next character for its width, or as a filler.
                '_' | '*' => {
                    chars.next();
                }
                'E' | 'e' if chars.next_if(|next| matches!(next, '+' | '-')).is_some() => {
                    parts.signs.push('e');
                }
                'G' | 'g' if code.to_ascii_lowercase().contains("general") => {
                    parts.push_digit();
                    // The other letters of `General`.
                    chars.by_ref().take(6).for_each(drop);
                }
                '0' | '#' | '?' => {
                    parts.push_digit();
                    parts.signs.push(char);
                }
                // The other number of a fraction, as in `# ?/16`.
                '1'..='9' if is_fraction => {}
                _ => {
                    parts.signs.push(char.to_ascii_lowercase());
                    if is_label(char) && char != '%' {
                        parts.push_literal(char);
                    } else {
                        parts.note_minus(char);
                        parts.last = match (char, parts.last) {
                            ('.' | ',', Last::Literal) => Last::Literal,
                            ('.' | ',', _) => Last::Own,
                            _ => Last::Other,
                        };
                    }
                    parts.has_break |= parts.has_digits && matches!(char, '-' | ':');
                }
            }
        }
        parts
    }

    fn push_digit(&mut self) {
        self.has_digits = true;
        self.is_broken |= self.has_break || self.last == Last::Literal;
        self.last = Last::Own;
    }

    fn push_literal(&mut self, char: char) {
        self.literals.push(char);
        let is_point = matches!(char, '.' | ',');
        let divides = is_label(char) || is_point || matches!(char, '-' | ':' | '/');
        self.has_break |= self.has_digits && divides;
        self.note_minus(char);
        self.is_broken |= self.last == Last::Own && char.is_numeric();
        // The point of an abbreviation is none of a number.
        let is_in_number = char.is_numeric() || is_point && self.last != Last::Letter;
        self.last = match self.last {
            Last::Own if is_point => Last::Own,
            _ if is_in_number && !self.has_digits => Last::Literal,
            _ if char.is_alphabetic() => Last::Letter,
            _ => Last::Other,
        };
    }

    /// Notes a sign in front of the number or directly behind it; that in a unit, as in `min-1`, is none.
    fn note_minus(&mut self, char: char) {
        self.has_minus |= match char {
            '-' | '\u{2212}' if self.has_digits => self.last == Last::Own,
            '-' | '\u{2212}' => !matches!(self.last, Last::Letter | Last::Literal),
            '(' => !self.has_digits,
            _ => false,
        };
    }

    fn section(&self) -> Section {
        Section {
            condition: self.condition,
            shown: self.shown(),
            as_negative: self.has_minus.then(|| self.as_code()),
        }
    }

    fn as_code(&self) -> Shown {
        Shown::Labeled(self.code.trim().into())
    }

    fn shown(&self) -> Shown {
        let has_label = self.literals.contains(is_label);
        let percents = self.signs.matches('%').count();
        let is_other_number = self.is_broken
            || self.is_scaled()
            || percents > 1
            || percents == 1 && has_label
            || has_label && !self.has_digits;
        if is_other_number {
            return self.as_code();
        }
        if has_label {
            return Shown::Labeled(self.literals.trim().into());
        }
        if percents == 1 {
            return Shown::Percent;
        }
        // Behind the point, and in an exponent, zeros are decimals.
        let whole = self.signs.split(['.', 'e']).next().unwrap_or_default();
        let zeros = whole.matches('0').count();
        let has_zeros_only =
            self.literals.is_empty() && self.signs.bytes().all(|sign| sign == b'0');
        match u8::try_from(zeros) {
            Ok(0 | 1) => Shown::Number,
            Ok(digits) if has_zeros_only => Shown::Padded(digits),
            _ => Shown::Zeros,
        }
    }

    /// Returns whether thousands are shown: a comma behind the digits divides by a thousand.
    fn is_scaled(&self) -> bool {
        let is_digit = |sign: char| matches!(sign, '0' | '#' | '?');
        let mut rest = self.signs.as_str();
        while let Some((before, after)) = rest.split_once(',') {
            let follows_digit = before.ends_with(is_digit);
            if follows_digit && !after.trim_start_matches(',').starts_with(is_digit) {
                return true;
            }
            rest = after;
        }
        false
    }
}

/// Returns whether a character makes another value of a number for a person. Signs of currencies do not.
fn is_label(char: char) -> bool {
    char.is_alphanumeric() || "<>\u{2264}\u{2265}~\u{2248}\u{b1}%\u{2030}\u{b0}".contains(char)
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
            // What stands in brackets divides no sections.
            "[$;-409]h:mm",
            "HH:MM",
        ] {
            assert!(CellFormat::of(code).is_time, "{code}");
        }
        for code in [
            "m/d/yy h:mm",
            "yyyy-mm-dd",
            "0.00",
            "dd/mm hh:mm",
            "General",
            "0\"s\"",
        ] {
            assert!(!CellFormat::of(code).is_time, "{code}");
        }
    }

    #[test]
    fn formats_that_show_more_than_the_number_are_known() {
        let labeled = |label: &str| Shown::Labeled(label.into());
        for (code, expected) in [
            ("00000", Shown::Padded(5)),
            ("00", Shown::Padded(2)),
            ("[Red]000;-000", Shown::Padded(3)),
            ("000_)", Shown::Padded(3)),
            ("000-00-0000", labeled("000-00-0000")),
            ("000\\-00", labeled("000\\-00")),
            ("00:00", labeled("00:00")),
            ("\"PL\"0", labeled("PL")),
            ("\\S0", labeled("S")),
            ("0\" mg\"", labeled("mg")),
            ("0.0 \\m\\L", labeled("mL")),
            ("0.0\" \u{b5}L\";-0.0\" \u{b5}L\"", labeled("\u{b5}L")),
            ("General\" mL\"", labeled("mL")),
            ("0 x", labeled("x")),
            ("\"<\"0.0", labeled("<")),
            ("\\<0.0", labeled("<")),
            ("\"\u{2265}\"0", labeled("\u{2265}")),
            ("\"~\"0", labeled("~")),
            ("0\"\u{b1}0.1\"", labeled("\u{b1}0.1")),
            ("0.0\"%\"", labeled("%")),
            ("\"n.d.\"", labeled("\"n.d.\"")),
            ("\"mL\"", labeled("\"mL\"")),
            ("0\"e3\"", labeled("e3")),
            ("0\"m\"0", labeled("0\"m\"0")),
            // Digits and signs that a person takes for those of the number.
            ("\"1\"0", labeled("\"1\"0")),
            ("0\"000\"", labeled("0\"000\"")),
            ("General\"00\"", labeled("General\"00\"")),
            ("0.\"5\"", labeled("0.\"5\"")),
            ("\"1\".0", labeled("\"1\".0")),
            ("0\".5\"", labeled("0\".5\"")),
            ("\"0.\"0", labeled("\"0.\"0")),
            ("\\.00", labeled("\\.00")),
            ("0\\.00", labeled("0\\.00")),
            ("0\",\"00", labeled("0\",\"00")),
            ("\"-\"0", labeled("\"-\"0")),
            ("-0", labeled("-0")),
            ("\\\u{2212}0.0", labeled("\\\u{2212}0.0")),
            ("0-", labeled("0-")),
            ("(0)", labeled("(0)")),
            ("\"No.\"0", labeled("No.")),
            ("0\" mL min-1\"", labeled("mL min-1")),
            ("\"U-\"0", labeled("U-")),
            ("0\" (mL)\"", labeled("(mL)")),
            ("0\".\"", Shown::Number),
            ("0\"'\"000", Shown::Zeros),
            ("0.0,", labeled("0.0,")),
            ("#,##0,,\" mL\"", labeled("#,##0,,\" mL\"")),
            ("0%\" v/v\"", labeled("0%\" v/v\"")),
            ("0%", Shown::Percent),
            ("0.00%;[Red]-0.00%", Shown::Percent),
            ("0 %", Shown::Percent),
            ("00.00", Shown::Zeros),
            ("00 00", Shown::Zeros),
            ("General", Shown::Number),
            ("0", Shown::Number),
            ("0.000", Shown::Number),
            ("#,##0.00", Shown::Number),
            ("#,##0.00_);(#,##0.00)", Shown::Number),
            ("# ##0", Shown::Number),
            ("# ?/?", Shown::Number),
            ("# ??/16", Shown::Number),
            ("0.00E+00", Shown::Number),
            ("##0.0E-0", Shown::Number),
            ("_-* #,##0.00\\ \"\u{20ac}\"_-", Shown::Number),
            ("[$\u{20ac}-407]#,##0.00", Shown::Number),
            ("@", Shown::Number),
            ("", Shown::Number),
        ] {
            assert_eq!(CellFormat::of(code).shown(7.0), &expected, "{code}");
        }
        assert_eq!(CellFormat::default().shown(7.0), &Shown::Number);
    }

    #[test]
    fn a_number_is_shown_by_the_section_that_is_for_it() {
        let limit = "[<0.01]\"<0.01\";0.00";
        let both = "[<1]\"low\";[>=100]\"high\";0.0";
        let accounts = "_-* #,##0_-;-* #,##0_-;_-* \"-\"_-;_-@_-";
        for (code, number, is_labeled) in [
            (limit, 0.003, true),
            (limit, 5.0, false),
            (both, 0.5, true),
            (both, 100.0, true),
            (both, 50.0, false),
            ("0.0;0.0\" below\";\"n.d.\"", 0.0, true),
            ("0.0;0.0\" below\";\"n.d.\"", -1.0, true),
            ("0.0;0.0\" below\";\"n.d.\"", 1.0, false),
            ("0.0;\"<\"0.0", -1.0, true),
            ("0.0;\"<\"0.0", 0.0, false),
            ("0.0;@\" x\"", -1.0, false),
            ("0;-0;0;\"x\"@", 0.0, false),
            (accounts, 0.0, false),
            (accounts, -5.0, false),
            (accounts, 5.0, false),
            ("0;(0);\"-\"", -5.0, false),
            ("0;(0);\"-\"", 0.0, false),
            ("0;0-", -5.0, false),
            ("-0;0", 5.0, true),
            ("-0;0", -5.0, false),
            ("[<0]-0;0", -5.0, false),
            ("[<0]-0;0", 5.0, false),
            ("0\";\"", 1.0, false),
            ("[=0]\"none\";0", 0.0, true),
            ("[<>0]0;\"none\"", 1.0, false),
        ] {
            let format = CellFormat::of(code);
            let found = matches!(format.shown(number), Shown::Labeled(_));
            assert_eq!(found, is_labeled, "{code} {number}");
        }
    }
}
