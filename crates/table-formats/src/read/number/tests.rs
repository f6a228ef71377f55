use proptest::prelude::*;

use super::*;
use crate::read::exact::is_exact_float;

const POINT: NumberStyle = NumberStyle::new(Decimal::Point, None);
const COMMA: NumberStyle = NumberStyle::new(Decimal::Comma, None);
const ENGLISH: NumberStyle = NumberStyle::new(Decimal::Point, Some(','));
const GERMAN: NumberStyle = NumberStyle::new(Decimal::Comma, Some('.'));
const FRENCH: NumberStyle = NumberStyle::new(Decimal::Comma, Some(' '));
const SWISS: NumberStyle = NumberStyle::new(Decimal::Point, Some('\''));

#[test]
fn numbers_are_read_in_their_style() {
    for (style, text, number) in [
        (POINT, "1.5", 1.5),
        (POINT, "-.5", -0.5),
        (POINT, "5.", 5.0),
        (POINT, "+1.5E-3", 0.0015),
        (POINT, "\u{2212}2.5", -2.5),
        (COMMA, "0,05", 0.05),
        (COMMA, "1,5e2", 150.0),
        (ENGLISH, "12,345,678.5", 12_345_678.5),
        (GERMAN, "-1.234,5", -1_234.5),
        (FRENCH, "1 234 567,5", 1_234_567.5),
        (FRENCH, "1\u{202f}234\u{a0}567,5", 1_234_567.5),
        (SWISS, "1'234\u{2019}567.5", 1_234_567.5),
        (SWISS, "0.5", 0.5),
    ] {
        assert_eq!(style.read(text), Some(Number::Float(number)), "{text}");
    }
    for (style, text, number) in [
        (POINT, "9007199254740993", 9_007_199_254_740_993),
        (POINT, "-7", -7),
        (ENGLISH, "1,234", 1_234),
        (GERMAN, "1.234.567", 1_234_567),
        (FRENCH, "-12 345", -12_345),
    ] {
        assert_eq!(style.read(text), Some(Number::Integer(number)), "{text}");
    }
}

#[test]
fn groups_have_three_digits() {
    for text in [
        "12,34", "1234,567", ",123", "1,,234", "0,123", "1,234,56", "1,234e3", "1.5,000", "1,23.4",
    ] {
        assert_eq!(ENGLISH.read(text), None, "{text}");
    }
    for text in [
        "",
        "-",
        "--1",
        "+-1",
        "-+1",
        "1.2.3",
        "1e",
        "1e+",
        "e5",
        ".",
        "1 2",
        "0x10",
        "87 %",
        "<0.01",
        "n.d.",
        "inf",
        "nan",
        "1e999",
        "1e-999",
        "-0.5e-400",
        "1_000",
        "1,5",
        "- 1",
        "\u{2212}\u{2212}1",
    ] {
        assert_eq!(POINT.read(text), None, "{text}");
    }
}

#[test]
fn floats_hold_fifteen_digits_and_some_longer_numbers() {
    for text in [
        "1.5",
        "+1.50",
        "0.1",
        "10",
        "-0.005",
        "9007199254740992",
        "100000000000000000000",
    ] {
        assert!(is_exact_float(text), "{text}");
    }
    for text in [
        "9007199254740993",
        "0.12345678901234567891",
        "text",
        "",
        "1,5",
    ] {
        assert!(!is_exact_float(text), "{text}");
    }
}

#[test]
fn long_numbers_are_numbers_if_a_float_holds_them() {
    for (digits, is_number) in [(290, true), (300, true), (308, true), (310, false)] {
        for (whole, fraction) in [(digits, 1), (digits - 100, 100)] {
            let text = format!("{}.{}", "9".repeat(whole), "9".repeat(fraction));
            let is_number = is_number || whole <= 308;
            assert_eq!(POINT.read(&text).is_some(), is_number, "{whole} {fraction}");
            assert_eq!(NumberForm::of(&text).numbers != 0, is_number, "{whole}");
        }
    }
}

#[test]
fn infinity_is_known_in_any_form() {
    for text in [
        "inf",
        "-Infinity",
        "+inf",
        "\u{2212}inf",
        "\u{221e}",
        "1e999",
        "-1E400",
    ] {
        assert!(is_infinite(text, POINT), "{text}");
    }
    for text in ["1e300", "info", "", "1.5", "n.d."] {
        assert!(!is_infinite(text, POINT), "{text}");
    }
}

#[test]
fn a_text_shows_the_styles_in_which_it_is_a_number() {
    let styles = |text: &str| {
        let form = NumberForm::of(text);
        let all = STYLES.into_iter();
        all.filter(|style| form.numbers & bit(*style) != 0)
            .collect::<Vec<_>>()
    };
    assert_eq!(styles("1,234.5"), [ENGLISH]);
    assert_eq!(styles("1.234.567"), [GERMAN]);
    assert_eq!(styles("5").len(), 8);
    assert!(!styles("0,05").contains(&ENGLISH));
    assert!(styles("text").is_empty());
    assert_eq!(NumberForm::of("1.234").ambiguous, Some(Decimal::Point));
    assert_eq!(NumberForm::of("12,345").ambiguous, Some(Decimal::Comma));
    // With a minus of its own in Unicode, which is no sign to the shorter way.
    let minus = |text: &str| NumberForm::of(&format!("\u{2212}{text}"));
    assert_eq!(minus("1.234").ambiguous, Some(Decimal::Point));
    assert_eq!(minus("12,345").ambiguous, Some(Decimal::Comma));
    for (text, is_decided) in [
        ("1,234", false),
        ("1,23", true),
        ("1.23", true),
        ("5", false),
    ] {
        assert_eq!(minus(text).is_decided, is_decided, "{text}");
    }
    for text in ["0.123", "1.23", "1.2345", "1234.567", "1,234.5", "5"] {
        assert_eq!(NumberForm::of(text).ambiguous, None, "{text}");
    }
    for (text, is_id) in [("007", true), ("0", false), ("12345678901234567890", true)] {
        assert_eq!(NumberForm::of(text).is_id, is_id, "{text}");
    }
}

proptest! {
    /// The form says the same as the reading.
    #[test]
    fn form_and_reading_agree(text in "[-+]?[0-9]{0,4}[.,' ]?[0-9]{0,4}[.,' ]?[0-9]{0,4}(e[0-9])?") {
        let form = NumberForm::of(&text);
        for style in STYLES {
            let read = style.read(&text);
            prop_assert_eq!(form.numbers & bit(style) != 0, read.is_some(), "{:?}", style);
            if !form.is_id {
                let is_whole = matches!(read, Some(Number::Integer(_)));
                prop_assert_eq!(form.integers & bit(style) != 0, is_whole, "{:?}", style);
            }
        }
    }

    #[test]
    fn every_float_is_read_as_it_is_written(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
        let text = format!("{number:?}");
        let read = match POINT.read(&text) {
            Some(Number::Float(read)) => read,
            Some(Number::Integer(read)) => read.to_string().parse().unwrap(),
            None => f64::NAN,
        };
        // Zero has a sign as a float, and none as an integer.
        prop_assert_eq!((read + 0.0).to_bits(), (number + 0.0).to_bits());
        let comma = text.replace('.', ",");
        prop_assert_eq!(COMMA.read(&comma), POINT.read(&text));
    }
}
