//! Null values that are numbers, such as `-999`: they hold for every cell of that value, however it is written.

use labdata_domain::data::write::FileCell;

use super::number::{Decimal, Number, NumberForm, NumberStyle, STYLES};

/// Numbers among the null values.
#[derive(Clone, Debug, Default)]
pub(super) struct NullNumbers(Vec<NullNumber>);

/// A null value that is a number.
#[derive(Clone, Debug)]
struct NullNumber {
    /// The number in each style of texts.
    by_style: [Option<Number>; STYLES.len()],
    /// The number among cells that the file stores as numbers.
    typed: Option<Number>,
}

impl NullNumbers {
    /// Finds the numbers among null values.
    pub(super) fn new(null_values: &[String]) -> Self {
        Self(
            null_values
                .iter()
                .filter_map(|text| NullNumber::of(text.trim()))
                .collect(),
        )
    }

    /// Returns whether a text is one of the numbers in a style.
    pub(super) fn has_text(&self, text: &str, style: NumberStyle) -> bool {
        // The value is not read twice for most tables, which have no such null values.
        if self.0.is_empty() {
            return false;
        }
        let index = STYLES.iter().position(|known| *known == style);
        let number = exact(text, style);
        index.is_some_and(|index| {
            self.0
                .iter()
                .any(|null| is_same(number, null.by_style.get(index).copied().flatten()))
        })
    }

    /// Returns whether a text is one of the numbers in every style in which it is a number, so that the style of the
    /// table does not matter.
    pub(super) fn has_text_in_each_style(&self, text: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut styles = styles_of(text).peekable();
        styles.peek().is_some() && styles.all(|style| self.has_text(text, style))
    }

    /// Returns whether a text is one of the numbers in a style in which it is a number.
    pub(super) fn has_text_in_some_style(&self, text: &str) -> bool {
        !self.0.is_empty() && styles_of(text).any(|style| self.has_text(text, style))
    }

    /// Returns whether a cell that the file stores as a number is one of them.
    pub(super) fn has_cell(&self, cell: &FileCell) -> bool {
        let number = match cell {
            FileCell::Integer(number) => Number::Integer(*number),
            FileCell::Float(number) | FileCell::InexactNumber(number) => whole_or_float(*number),
            _ => return false,
        };
        self.0.iter().any(|null| is_same(Some(number), null.typed))
    }
}

impl NullNumber {
    fn of(text: &str) -> Option<Self> {
        let point = NumberStyle::new(Decimal::Point, None);
        // `1,234` may have decimals or groups.
        let is_ambiguous = NumberForm::of(text).ambiguous.is_some();
        let comma =
            || exact(text, NumberStyle::new(Decimal::Comma, None)).filter(|_| !is_ambiguous);
        let typed = exact(text, point).or_else(comma);
        // As the file writes numbers, or else as programs do.
        let by_style = STYLES.map(|style| exact(text, style).or(typed));
        by_style
            .iter()
            .any(Option::is_some)
            .then_some(Self { by_style, typed })
    }
}

/// The styles in which a text is a number.
fn styles_of(text: &str) -> impl Iterator<Item = NumberStyle> {
    let numbers = NumberForm::of(text).numbers;
    let styles = STYLES.into_iter().enumerate();
    styles
        .filter(move |(index, _)| numbers >> index & 1 == 1)
        .map(|(_, style)| style)
}

/// The number of a text: a whole one by its digits, which a float may not hold.
fn exact(text: &str, style: NumberStyle) -> Option<Number> {
    match style.read(text)? {
        Number::Float(number) => {
            let whole = style.read_whole(text).map(Number::Integer);
            Some(whole.unwrap_or_else(|| whole_or_float(number)))
        }
        integer @ Number::Integer(_) => Some(integer),
    }
}

/// The whole number that a float is, if 64 bits hold it.
fn whole_or_float(number: f64) -> Number {
    let whole = (number.fract() == 0.0).then(|| format!("{number:.0}").parse().ok());
    whole
        .flatten()
        .map_or(Number::Float(number), Number::Integer)
}

fn is_same(one: Option<Number>, other: Option<Number>) -> bool {
    one.is_some() && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nulls(texts: &[&str]) -> NullNumbers {
        NullNumbers::new(&texts.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_of_one_value_are_one_null() {
        for (null, cell, is_null) in [
            ("-999", FileCell::Integer(-999), true),
            ("-999.0", FileCell::Integer(-999), true),
            (" -999 ", FileCell::Integer(-999), true),
            ("-9.99e2", FileCell::Float(-999.0), true),
            ("-999", FileCell::Float(-999.0), true),
            ("-999", FileCell::Float(-999.1), false),
            ("0", FileCell::Float(-0.0), true),
            ("-99,9", FileCell::Float(-99.9), true),
            ("1,234", FileCell::Integer(1_234), false),
            ("1,234", FileCell::Float(1.234), false),
            (
                "9007199254740993",
                FileCell::Integer(9_007_199_254_740_993),
                true,
            ),
            (
                "9007199254740993",
                FileCell::Integer(9_007_199_254_740_992),
                false,
            ),
            (
                "9007199254740993.0",
                FileCell::Integer(9_007_199_254_740_992),
                false,
            ),
            ("-9223372036854775808", FileCell::Integer(i64::MIN), true),
            ("1e300", FileCell::InexactNumber(1e300), true),
            ("", FileCell::Integer(0), false),
            ("NA", FileCell::Integer(0), false),
            ("0", FileCell::Boolean(false), false),
        ] {
            assert_eq!(nulls(&[null]).has_cell(&cell), is_null, "{null} {cell:?}");
        }
    }

    #[test]
    fn a_text_is_compared_as_its_table_writes_numbers() {
        let point = NumberStyle::new(Decimal::Point, Some(','));
        let comma = NumberStyle::new(Decimal::Comma, Some('.'));
        for (null, text, style, is_null) in [
            ("-999", "-999.0", point, true),
            ("-999", "-999,0", comma, true),
            ("-99.5", "-99,5", comma, true),
            ("-99,5", "-99,50", comma, true),
            ("1.234", "1.234", comma, true),
            ("1.234", "1234", comma, true),
            ("1.234", "1,234", comma, false),
            ("9999", "9,999", point, true),
            ("9999", "9.999", point, false),
            ("0", "0.00", point, true),
            ("0", "x", point, false),
        ] {
            assert_eq!(
                nulls(&[null]).has_text(text, style),
                is_null,
                "{null} {text}"
            );
        }
        assert!(nulls(&["-999"]).has_text_in_each_style("-999.0"));
        assert!(!nulls(&["9999"]).has_text_in_each_style("9.999"));
        assert!(!nulls(&["9999"]).has_text_in_each_style("x"));
    }
}
