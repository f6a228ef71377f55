//! Numbers as files write them: with a decimal point or comma, and with groups of three digits.

use super::exact::{FIRST_INEXACT_DIGITS, keeps_whole_digits};

/// Decimal sign of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// `1.5`
    Point,
    /// `1,5`
    Comma,
}

impl Decimal {
    /// Returns the sign.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Point => ".",
            Self::Comma => ",",
        }
    }

    const fn sign(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }
}

/// Way of writing numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberStyle {
    pub(super) decimal: Decimal,
    pub(super) thousands: Option<char>,
}

/// All styles, in order of preference. A set of them is a byte with a bit for each.
pub(super) const STYLES: [NumberStyle; 8] = [
    NumberStyle::new(Decimal::Point, None),
    NumberStyle::new(Decimal::Comma, None),
    NumberStyle::new(Decimal::Point, Some(',')),
    NumberStyle::new(Decimal::Comma, Some('.')),
    NumberStyle::new(Decimal::Point, Some(' ')),
    NumberStyle::new(Decimal::Comma, Some(' ')),
    NumberStyle::new(Decimal::Point, Some('\'')),
    NumberStyle::new(Decimal::Comma, Some('\'')),
];

/// Reads a float; `None` for numbers that are too large for one, and for those other than zero that are too small.
fn float(text: &str) -> Option<Number> {
    let number: f64 = text.parse().ok()?;
    let is_zero = || {
        let mut digits = text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
        digits.all(|byte| !(b'1'..=b'9').contains(&byte))
    };
    (number.is_finite() && (number != 0.0 || is_zero())).then_some(Number::Float(number))
}

/// Value of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl NumberStyle {
    pub(super) const fn new(decimal: Decimal, thousands: Option<char>) -> Self {
        Self { decimal, thousands }
    }

    /// Reads a number; `None` for other texts, and for numbers that no float holds.
    pub(super) fn read(self, text: &str) -> Option<Number> {
        // First, as it is the same in every style and the most frequent form.
        if let Some(number) = plain_integer(text) {
            return Some(Number::Integer(number));
        }
        if self.decimal == Decimal::Point && text.bytes().all(is_plain) {
            // The parser refuses what else can be spelled with these bytes, such as `1-2`.
            return float(text);
        }
        let parts = self.split(text)?;
        let mut plain = String::with_capacity(text.len());
        if parts.is_negative {
            plain.push('-');
        }
        plain.extend(parts.whole.chars().filter(char::is_ascii_digit));
        let is_whole = parts.fraction.is_none() && parts.exponent.is_none();
        // More digits than 64 bits hold become a float.
        if is_whole && let Ok(number) = plain.parse() {
            return Some(Number::Integer(number));
        }
        plain.push('.');
        plain.push_str(parts.fraction.unwrap_or_default());
        if let Some(exponent) = parts.exponent {
            plain.push('e');
            plain.push_str(exponent);
        }
        float(&plain)
    }

    /// Reads a whole number that is written with decimals or an exponent by its digits, which a float may not hold.
    pub(super) fn read_whole(self, text: &str) -> Option<i64> {
        let parts = self.split(text)?;
        let exponent: i64 = parts.exponent.unwrap_or("0").parse().ok()?;
        let fraction = parts.fraction.unwrap_or_default().trim_end_matches('0');
        let zeros = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        // 64 bits have at most 19 digits, so there is no need for more zeros.
        let zeros = usize::try_from(zeros).ok().filter(|zeros| *zeros < 19)?;
        let sign = if parts.is_negative { "-" } else { "" };
        let whole: String = parts.whole.chars().filter(char::is_ascii_digit).collect();
        format!("{sign}{whole}{fraction}{}", "0".repeat(zeros))
            .parse()
            .ok()
    }

    /// Returns whether a float changes digits in front of the decimal sign, as it may beyond 2^53. A number with an
    /// exponent states a magnitude, which is rounded as usual.
    pub(super) fn loses_digits(self, text: &str) -> bool {
        // Most long numbers have their digits behind the sign.
        let mut first = text.bytes().take(FIRST_INEXACT_DIGITS);
        if text.len() < FIRST_INEXACT_DIGITS
            || first.any(|byte| char::from(byte) == self.decimal.sign())
        {
            return false;
        }
        let Some(parts) = self.split(text).filter(|parts| parts.exponent.is_none()) else {
            return false;
        };
        let whole: String = parts.whole.chars().filter(char::is_ascii_digit).collect();
        let whole = whole.trim_start_matches('0');
        let fraction = parts.fraction.unwrap_or_default().trim_end_matches('0');
        !keeps_whole_digits(whole, fraction)
    }

    /// Divides a number into its parts; `None` if it is none of this style.
    fn split(self, text: &str) -> Option<Parts<'_>> {
        let (is_negative, rest) = match text.chars().next()? {
            '-' | '\u{2212}' => (true, text.trim_start_matches(['-', '\u{2212}'])),
            '+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        // All signs were trimmed: `--5` is no number.
        if is_negative && text.chars().nth(1).is_none_or(|next| !starts_number(next)) {
            return None;
        }
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, Some(rest.get(at + 1..)?)),
            None => (rest, None),
        };
        if exponent.is_some_and(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !are_digits(digits)
        }) {
            return None;
        }
        let (whole, fraction) = match mantissa.split_once(self.decimal.sign()) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        // A second sign, as in `1.2.3`, is in the fraction here.
        if fraction.is_some_and(|fraction| !fraction.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        let has_digits = match whole {
            "" => fraction.is_some_and(|fraction| !fraction.is_empty()),
            _ if are_digits(whole) => true,
            _ => exponent.is_none() && self.is_grouped(whole),
        };
        has_digits.then_some(Parts {
            is_negative,
            whole,
            fraction,
            exponent,
        })
    }

    /// Returns whether a whole number is divided into groups of three digits.
    fn is_grouped(self, whole: &str) -> bool {
        let Some(sign) = self.thousands else {
            return false;
        };
        let is_sign = |found: char| match sign {
            // Locales write a common, a no-break, a narrow or a thin space.
            ' ' => matches!(found, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'),
            // Swiss numbers, as typed and as typeset.
            '\'' => matches!(found, '\'' | '\u{2019}'),
            _ => found == sign,
        };
        let mut groups = whole.split(is_sign);
        let first = groups.next().unwrap_or_default();
        // `0.050` has no groups: no number begins with a group of zero.
        (1..=3).contains(&first.len())
            && are_digits(first)
            && !first.starts_with('0')
            && groups.all(|group| group.len() == 3 && are_digits(group))
    }
}

struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: Option<&'t str>,
    exponent: Option<&'t str>,
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e' | b'E')
}

const fn starts_number(first: char) -> bool {
    first.is_ascii_digit() || matches!(first, '.' | ',')
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    are_digits(digits).then(|| text.parse().ok()).flatten()
}

/// Returns whether a text stands for infinity, or for a number that no float holds.
pub(super) fn is_infinite(text: &str, style: NumberStyle) -> bool {
    let unsigned = text.strip_prefix(['+', '-', '\u{2212}']).unwrap_or(text);
    let is_word = ["inf", "infinity", "\u{221e}", "1.#inf"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word));
    is_word || style.split(text).is_some() && style.read(text).is_none()
}

/// Form of a text as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberForm {
    /// Styles in which the text is a number.
    pub(super) numbers: u8,
    /// Styles in which it is a whole number.
    pub(super) integers: u8,
    /// True for digits that a number would not keep: leading zeros, or more than 64 bits hold.
    pub(super) is_id: bool,
    /// True if a float would change digits in front of the decimal sign.
    pub(super) is_rounded: bool,
    /// The sign of a text such as `1.234`, which separates decimals in one style and groups in another.
    pub(super) ambiguous: Option<Decimal>,
    /// True if the text itself shows which sign separates decimals.
    pub(super) is_decided: bool,
}

const ALL: u8 = 0xff;

/// The styles with a decimal point, and those with a decimal comma.
const POINTS: u8 = 0b0101_0101;
const COMMAS: u8 = 0b1010_1010;

/// The styles in which a comma, and a point, separates groups.
const COMMA_GROUPS: u8 = 0b0000_0100;
const POINT_GROUPS: u8 = 0b0000_1000;

impl NumberForm {
    pub(super) fn of(text: &str) -> Self {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if are_digits(unsigned) {
            return Self {
                numbers: ALL,
                integers: ALL,
                is_id: unsigned.len() > 1 && unsigned.starts_with('0')
                    || text.parse::<i64>().is_err(),
                is_rounded: NumberStyle::new(Decimal::Point, None).loses_digits(text),
                ..Self::default()
            };
        }
        if !unsigned.starts_with(|first| starts_number(first) || first == '\u{2212}') {
            return Self::default();
        }
        if let Some(form) = Self::of_decimal(unsigned) {
            return form;
        }
        let mut form = Self::default();
        for (index, style) in STYLES.into_iter().enumerate() {
            let Some(parts) = style.split(text) else {
                continue;
            };
            // Only an exponent makes a number that no float holds, but for absurd lengths.
            let may_overflow = parts.exponent.is_some() || text.len() > 300;
            if may_overflow && style.read(text).is_none() {
                continue;
            }
            form.numbers |= 1 << index;
            form.is_rounded |= style.loses_digits(text);
            if parts.fraction.is_none() && parts.exponent.is_none() {
                form.integers |= 1 << index;
            }
        }
        let is_under = |style: NumberStyle| form.numbers & bit(style) != 0;
        let (point, comma) = (
            is_under(NumberStyle::new(Decimal::Point, None)),
            is_under(NumberStyle::new(Decimal::Comma, None)),
        );
        form.ambiguous = match (point, comma) {
            (true, false) if is_under(NumberStyle::new(Decimal::Comma, Some('.'))) => {
                Some(Decimal::Point)
            }
            (false, true) if is_under(NumberStyle::new(Decimal::Point, Some(','))) => {
                Some(Decimal::Comma)
            }
            _ => None,
        };
        form.is_decided = form.numbers != 0 && form.numbers != ALL && form.ambiguous.is_none();
        form
    }
}

impl NumberForm {
    /// The form of digits with one sign among them, which most numbers have; `None` for other texts.
    fn of_decimal(unsigned: &str) -> Option<Self> {
        let at = unsigned.find(['.', ','])?;
        let (whole, fraction) = (unsigned.get(..at)?, unsigned.get(at + 1..)?);
        let are_all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = are_all_digits(whole)
            && are_all_digits(fraction)
            && !(whole.is_empty() && fraction.is_empty())
            // Longer ones may exceed the largest float.
            && unsigned.len() <= 300;
        if !is_number {
            return None;
        }
        let is_group =
            (1..=3).contains(&whole.len()) && !whole.starts_with('0') && fraction.len() == 3;
        let (decimal, numbers, groups) = if unsigned.as_bytes().get(at) == Some(&b'.') {
            (Decimal::Point, POINTS, POINT_GROUPS)
        } else {
            (Decimal::Comma, COMMAS, COMMA_GROUPS)
        };
        let groups = if is_group { groups } else { 0 };
        Some(Self {
            numbers: numbers | groups,
            integers: groups,
            is_id: false,
            is_rounded: NumberStyle::new(decimal, None).loses_digits(unsigned),
            ambiguous: is_group.then_some(decimal),
            is_decided: !is_group,
        })
    }
}

/// The bit of a style.
pub(super) fn bit(style: NumberStyle) -> u8 {
    let index = STYLES.iter().position(|known| *known == style);
    index.map_or(0, |index| 1 << index)
}

#[cfg(test)]
mod tests;
