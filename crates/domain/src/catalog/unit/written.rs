//! Units as people write them, as terms of UCUM.

use super::{
    PREFIXES, is_symbol, is_ucum,
    signs::plain_signs,
    spellings::{exact, is_other_letter, per, phrase, word},
};

/// Maximum number of digits of a number in a unit.
const MAX_DIGITS: usize = 7;

/// The UCUM code of a unit as people write it (`µl`, `°C`, `hours`, `mM`, `10³ cells/mL`), of several
/// spellings the same one; `None` for what is not known as a unit.
#[must_use]
pub fn ucum_of(text: &str) -> Option<String> {
    let code = Unit::of(text)?.to_string();
    is_ucum(&code).then_some(code)
}

/// A unit: a power of ten, and symbols with exponents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit {
    power: i32,
    terms: Vec<Term>,
}

/// A symbol of UCUM, a number or an annotation, with its exponent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    symbol: String,
    exponent: i32,
}

/// Sign between a component of a unit and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Blank,
    Product,
    Quotient,
}

impl Unit {
    /// Reads a unit as people write it, or a code.
    pub(super) fn of(text: &str) -> Option<Self> {
        let text = plain_signs(text);
        if let Some(code) = phrase(&text) {
            return Self::of_code(code);
        }
        // Letters as in `Volume (b)` rather distinguish columns.
        if text.is_empty() || is_other_letter(&text) {
            return None;
        }
        if let Some(share) = share(&text) {
            return Some(share);
        }
        let text = text.replace("**", "^");
        Self::of_components(&slashes(text.trim_end_matches('.')))
    }

    fn of_components(text: &str) -> Option<Self> {
        let components = components(text)?;
        let mut unit = Self::default();
        let mut is_divided = false;
        for (index, (operator, component)) in components.iter().enumerate() {
            let next = components.get(index + 1);
            // The sign of a product in front of a number: `x 10^6`.
            if matches!(*component, "x" | "X")
                && next
                    .is_some_and(|(_, next)| next.starts_with(|sign: char| sign.is_ascii_digit()))
            {
                continue;
            }
            // The first day, and no unit: `day 1`.
            if *operator == Operator::Blank && *component == "1" {
                return None;
            }
            let is_divisor = *operator == Operator::Quotient;
            let own = Self::of_component(component, is_divisor)?;
            let is_multiplied = own.terms.iter().any(|term| term.exponent > 0);
            // Behind a quotient people mean either side of the slash: `mg/mL h`.
            if *operator == Operator::Blank && (is_divided && is_multiplied || unit.is_number()) {
                return None;
            }
            is_divided |= is_divisor;
            unit.multiply(own, if is_divisor { -1 } else { 1 })?;
        }
        // A number alone, as in `Volume (2)`, is no unit.
        (!unit.is_number()).then_some(unit)
    }

    fn of_component(text: &str, is_divisor: bool) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('(') {
            return Self::of_components(inner.strip_suffix(')')?);
        }
        if let Some(number) = number(text) {
            return Some(number);
        }
        let (text, note) = match text.split_once('{') {
            Some((text, note)) => (text, Some(note.strip_suffix('}')?)),
            None => (text, None),
        };
        let mut unit = if text.is_empty() {
            Self::default()
        } else if let Some(number) = number(text) {
            number
        } else {
            let (symbol, exponent) = exponent(text)?;
            let code = symbol_code(symbol, is_divisor)?;
            let mut unit = Self::default();
            unit.multiply(Self::of_code(&code)?, exponent)?;
            unit
        };
        if let Some(note) = note {
            // A column's own annotation is the same as the word in a header.
            let known = word(note).or_else(|| per(note).filter(|_| is_divisor));
            let known = known.filter(|code| code.starts_with('{'));
            unit.push(known.unwrap_or_else(|| format!("{{{note}}}")), 1);
        }
        Some(unit)
    }

    /// Reads a code of the tables: symbols between slashes.
    fn of_code(code: &str) -> Option<Self> {
        let mut unit = Self::default();
        for (index, part) in code.split('/').enumerate() {
            let sign = if index == 0 { 1 } else { -1 };
            if let Some(number) = number(part) {
                unit.multiply(number, sign)?;
            } else if !part.is_empty() {
                let (symbol, exponent) = exponent(part)?;
                unit.push(symbol.to_owned(), exponent * sign);
            }
        }
        Some(unit)
    }

    fn push(&mut self, symbol: String, exponent: i32) {
        self.terms.push(Term { symbol, exponent });
    }

    fn multiply(&mut self, other: Self, exponent: i32) -> Option<()> {
        self.power = self.power.checked_add(other.power.checked_mul(exponent)?)?;
        for term in other.terms {
            // An annotation stands for no quantity that could be squared.
            if term.is_note() && exponent.abs() != 1 {
                return None;
            }
            self.push(term.symbol, term.exponent.checked_mul(exponent)?);
        }
        Some(())
    }

    /// Returns whether a unit ends in a number that is no power of ten: `600 nm` is rather a wavelength.
    fn is_number(&self) -> bool {
        let is_number = |term: &Term| term.symbol.starts_with(|sign: char| sign.is_ascii_digit());
        self.terms.last().is_some_and(is_number)
    }

    /// The unit without what it counts: of `{cells}/mL` it is `/mL`.
    fn uncounted(&self) -> Self {
        let terms = self.terms.iter();
        let terms = terms.filter(|term| !(term.is_note() && term.exponent > 0));
        Self {
            power: self.power,
            terms: terms.cloned().collect(),
        }
    }

    /// Returns whether two units are the same, where one may say besides what it counts.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (self.uncounted(), other.uncounted());
        self == other || one == two && (one == *self || two == *other)
    }
}

impl Term {
    fn is_note(&self) -> bool {
        self.symbol.starts_with('{')
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut is_first = true;
        if self.power != 0 {
            is_first = false;
            write!(f, "10*{}", self.power)?;
        }
        for Term { symbol, exponent } in self.terms.iter().filter(|term| term.exponent > 0) {
            // An annotation belongs to what precedes it.
            if !is_first && !symbol.starts_with('{') {
                f.write_str(".")?;
            }
            is_first = false;
            f.write_str(symbol)?;
            if *exponent != 1 {
                write!(f, "{exponent}")?;
            }
        }
        let divisors = self.terms.iter().filter(|term| term.exponent < 0);
        for Term { symbol, exponent } in divisors.clone() {
            write!(f, "/{symbol}")?;
            if *exponent != -1 {
                write!(f, "{}", exponent.unsigned_abs())?;
            }
        }
        if is_first && divisors.count() == 0 {
            f.write_str("1")?;
        }
        Ok(())
    }
}

/// A per cent of something: `% v/v`, `% RH`, `%CV`.
fn share(text: &str) -> Option<Unit> {
    let rest = text.strip_prefix('%')?.trim();
    let rest = rest.trim_start_matches('(').trim_end_matches(')').trim();
    let is_words = |text: &str| text.chars().all(|sign| sign.is_alphabetic() || sign == ' ');
    // Letters around a slash are what is divided; words may be a unit below it: `%/min`.
    let is_parts = |(one, other): (&str, &str)| one.len() == 1 && other.len() == 1;
    let is_note = match rest.split_once('/') {
        Some(parts) => is_parts(parts),
        None => is_words(rest) && !rest.split(' ').any(|word| word.eq_ignore_ascii_case("per")),
    };
    (is_note && !rest.is_empty()).then(|| {
        let mut unit = Unit::default();
        unit.push("%".to_owned(), 1);
        unit.push(format!("{{{rest}}}"), 1);
        unit
    })
}

/// Writes the word `per` as a slash.
fn slashes(text: &str) -> String {
    let words = text.split(' ');
    let words: Vec<&str> = words
        .map(|word| {
            if word.eq_ignore_ascii_case("per") {
                "/"
            } else {
                word
            }
        })
        .collect();
    words.join(" ")
}

/// Divides a text at its signs of products and quotients, and at blanks, outside brackets.
fn components(text: &str) -> Option<Vec<(Operator, &str)>> {
    let mut found = Vec::new();
    let (mut rest, mut operator) = (text, Operator::Product);
    loop {
        let end = component_end(rest);
        let (component, behind) = rest.split_at_checked(end)?;
        // A code may begin with a quotient: `/uL`.
        if !component.is_empty() {
            found.push((operator, component));
        } else if !found.is_empty() || behind.is_empty() {
            return None;
        }
        if behind.is_empty() {
            return Some(found);
        }
        let is_operator = |sign: char| "/.* ".contains(sign);
        let after = behind.trim_start_matches(is_operator);
        let (signs, _) = behind.split_at_checked(behind.len() - after.len())?;
        let is_digit = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_digit());
        operator = match signs.trim() {
            "" => Operator::Blank,
            // A fraction is no power of ten.
            "." if is_digit(component.chars().last()) && is_digit(after.chars().next()) => {
                return None;
            }
            "." | "*" => Operator::Product,
            // `min./mL`
            "/" | "./" => Operator::Quotient,
            _ => return None,
        };
        rest = after;
    }
}

/// Length of the first component.
fn component_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|(index, sign)| {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // The power of ten in UCUM: `10*3`.
            '*' if text.get(..*index) == Some("10") => {}
            '/' | '.' | '*' | ' ' => return depth == 0,
            _ => {}
        }
        false
    });
    end.map_or(text.len(), |(index, _)| index)
}

/// Reads a number: `1000`, `10*3`, `10^3`, `1e3`, `x1000`, `1x10^3`.
fn number(text: &str) -> Option<Unit> {
    let text = text.strip_prefix(['x', 'X']).unwrap_or(text);
    let text = text.strip_prefix("1x").unwrap_or(text);
    let power = ["10*", "10^", "1e", "1E"]
        .iter()
        .find_map(|base| text.strip_prefix(base));
    if let Some(power) = power {
        return Some(Unit {
            power: power.parse().ok()?,
            terms: Vec::new(),
        });
    }
    let is_number = !text.is_empty() && text.chars().all(|sign| sign.is_ascii_digit());
    if !is_number || text.len() > MAX_DIGITS {
        return None;
    }
    let mut unit = Unit::default();
    match text
        .strip_prefix('1')
        .map(|zeros| zeros.trim_end_matches('0'))
    {
        Some("") => unit.power = i32::try_from(text.len() - 1).ok()?,
        _ => unit.push(text.to_owned(), 1),
    }
    Some(unit)
}

/// Divides a component into its symbol and its exponent.
fn exponent(text: &str) -> Option<(&str, i32)> {
    let base = text.trim_end_matches(|sign: char| sign.is_ascii_digit());
    if base.len() == text.len() {
        return Some((text, 1));
    }
    let base = base.strip_suffix(['-', '+']).unwrap_or(base);
    let (symbol, digits) = text.split_at_checked(base.len())?;
    let exponent = digits.parse().ok()?;
    // An exponent of one is not written: `A1` is rather a well.
    let is_one = digits.trim_start_matches('+') == "1";
    let symbol = symbol.strip_suffix('^').unwrap_or(symbol);
    (exponent != 0 && !is_one).then_some((symbol, exponent))
}

fn symbol_code(symbol: &str, is_divisor: bool) -> Option<String> {
    exact(symbol, &PREFIXES)
        .or_else(|| is_symbol(symbol).then(|| symbol.to_owned()))
        .or_else(|| word(symbol))
        .or_else(|| per(symbol).filter(|_| is_divisor))
}
