//! Options as JSON objects and as the fields of a form.

use encoding_rs::Encoding;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{FileFormat, NULL_VALUES, OptionProblem, ReadOptions, Reading};
use crate::read::{date::DateFormat, number::Decimal};

/// Names of the options.
const NAMES: [&str; 16] = [
    "format",
    "encoding",
    "delimiter",
    "quote",
    "decimal",
    "thousands",
    "sheet",
    "header_row",
    "last_row",
    "null_values",
    "timezone",
    "date_format",
    "text_numbers",
    "error_cells",
    "invalid_bytes",
    "duplicate_headers",
];

/// Maximum number of characters of an option.
const MAX_LENGTH: usize = 200;

/// Maximum number of `null_values`.
const MAX_NULL_VALUES: usize = 100;

impl ReadOptions {
    /// Names of all options.
    pub const NAMES: &'static [&'static str] = &NAMES;

    /// Reads the options of an object. Null means that an option is not given; other members, such
    /// as the counts of a reading, are ignored.
    ///
    /// # Errors
    /// The problem of each option that cannot be used.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, Vec<OptionProblem>> {
        let mut options = Self::default();
        let mut problems = Vec::new();
        for name in NAMES {
            let set = match object.get(name) {
                None | Some(Value::Null) => Ok(()),
                Some(Value::Array(list)) if name == "null_values" => {
                    // An empty list is a choice, too: only empty cells are null.
                    options.null_values = Some(Vec::new());
                    list.iter().try_for_each(|value| {
                        let text = value.as_str().ok_or("takes a list of texts")?;
                        options.set(name, text)
                    })
                }
                Some(Value::String(text)) => options.set(name, text),
                // As a text, because the field of a form has only that.
                Some(Value::Number(number)) => options.set(name, &number.to_string()),
                Some(_) => Err("takes a text or a number"),
            };
            if let Err(message) = set {
                let message = message.to_owned();
                problems.push(OptionProblem { name, message });
            }
        }
        if problems.is_empty() {
            Ok(options)
        } else {
            Err(problems)
        }
    }

    /// Sets the option of a form's field; false if no option has that name. A repeated field
    /// `null_values` adds to the list; an empty field of another option means that it is not given,
    /// but for `quote`, `thousands` and `null_values`.
    ///
    /// # Errors
    /// The problem of an option that cannot be used.
    pub fn set_field(&mut self, name: &str, text: &str) -> Result<bool, OptionProblem> {
        let Some(name) = NAMES.into_iter().find(|known| *known == name) else {
            return Ok(false);
        };
        if text.is_empty() && !matches!(name, "quote" | "thousands" | "null_values") {
            return Ok(true);
        }
        self.set(name, text).map_err(|message| OptionProblem {
            name,
            message: message.to_owned(),
        })?;
        Ok(true)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), &'static str> {
        if text.chars().count() > MAX_LENGTH {
            return Err("is too long");
        }
        match name {
            "format" => {
                let formats = [FileFormat::Csv, FileFormat::Xlsx, FileFormat::Parquet];
                let found = formats.into_iter().find(|format| format.as_str() == text);
                self.format = Some(found.ok_or("must be \"csv\", \"xlsx\" or \"parquet\"")?);
            }
            "encoding" => {
                let found = Encoding::for_label(text.as_bytes());
                self.encoding = Some(found.ok_or("must be the name of an encoding, as \"utf-8\"")?);
            }
            "delimiter" => self.delimiter = Some(character(text)?),
            "quote" if text.is_empty() => self.quote = Some(None),
            "quote" => self.quote = Some(Some(character(text)?)),
            "decimal" => {
                self.decimal = Some(match text {
                    "." => Decimal::Point,
                    "," => Decimal::Comma,
                    _ => return Err("must be \".\" or \",\""),
                });
            }
            "thousands" => {
                self.thousands = Some(match text {
                    "" => None,
                    "." => Some('.'),
                    "," => Some(','),
                    "'" | "\u{2019}" => Some('\''),
                    " " | "\u{a0}" | "\u{202f}" | "\u{2009}" => Some(' '),
                    _ => return Err("must be \".\", \",\", \"'\", a blank, or empty for none"),
                });
            }
            "sheet" => self.sheet = Some(text.to_owned()),
            "header_row" => self.header_row = Some(whole(text)?),
            "last_row" => self.last_row = Some(whole(text)?),
            "null_values" => {
                let values = self.null_values.get_or_insert_default();
                if values.len() >= MAX_NULL_VALUES {
                    return Err("takes at most 100 texts");
                }
                values.push(text.to_owned());
            }
            "timezone" => {
                let found = TimeZone::get(text).ok();
                self.timezone =
                    Some(found.ok_or("must be a time zone of IANA, as \"Europe/Berlin\"")?);
            }
            "date_format" => self.date_format = Some(DateFormat::parse(text)?),
            "text_numbers" => self.text_numbers_are_null = Some(choice(text, "null")?),
            "error_cells" => self.error_cells_are_null = Some(choice(text, "null")?),
            "invalid_bytes" => self.replaces_invalid_bytes = Some(choice(text, "replace")?),
            _ => self.numbers_duplicate_headers = Some(choice(text, "number")?),
        }
        Ok(())
    }

    /// Renders all options; null where one is not given or does not apply.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let byte = |byte: u8| Value::from(char::from(byte).to_string());
        let chosen = |chosen: Option<bool>, word: &str| {
            chosen.map_or(Value::Null, |chosen| {
                Value::from(if chosen { word } else { "refuse" })
            })
        };
        let values = [
            json!(self.format.map(FileFormat::as_str)),
            json!(
                self.encoding
                    .map(|encoding| encoding.name().to_ascii_lowercase())
            ),
            self.delimiter.map_or(Value::Null, byte),
            self.quote.map_or(Value::Null, |quote| {
                quote.map_or(Value::from(String::new()), byte)
            }),
            json!(self.decimal.map(Decimal::as_str)),
            json!(
                self.thousands
                    .map(|sign| sign.map(String::from).unwrap_or_default())
            ),
            json!(self.sheet),
            json!(self.header_row),
            json!(self.last_row),
            json!(self.null_values),
            json!(self.timezone.as_ref().and_then(TimeZone::iana_name)),
            json!(self.date_format.as_ref().map(DateFormat::as_str)),
            chosen(self.text_numbers_are_null, "null"),
            chosen(self.error_cells_are_null, "null"),
            chosen(self.replaces_invalid_bytes, "replace"),
            chosen(self.numbers_duplicate_headers, "number"),
        ];
        NAMES.map(str::to_owned).into_iter().zip(values).collect()
    }

    /// Fills in the defaults of the options that do not depend on the file.
    pub(in crate::read) fn with_defaults(mut self) -> Self {
        self.null_values
            .get_or_insert_with(|| NULL_VALUES.map(str::to_owned).to_vec());
        self.text_numbers_are_null.get_or_insert(false);
        self.error_cells_are_null.get_or_insert(false);
        self.replaces_invalid_bytes.get_or_insert(false);
        self.numbers_duplicate_headers.get_or_insert(false);
        self
    }
}

impl Reading {
    /// Renders the options, which can be sent back, and the counts.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let mut object = self.options.to_json();
        for (name, value) in [
            ("lines_above", json!(self.lines_above)),
            ("units_row", json!(self.units_row)),
            ("lines_below", json!(self.lines_below)),
            ("blank_lines", json!(self.blank_lines)),
            ("short_rows", json!(self.short_rows)),
            ("null_text_numbers", json!(self.null_text_numbers)),
            ("null_error_cells", json!(self.null_error_cells)),
        ] {
            object.insert(name.to_owned(), value);
        }
        object
    }
}

fn character(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        _ if text == "\\t" || text == "tab" => Ok(b'\t'),
        // Line breaks end records; other characters could be a part of one in UTF-8.
        [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n' | 0) => Ok(*byte),
        _ => Err("must be one ASCII character"),
    }
}

fn whole(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "must be the number of a line")
}

fn choice(text: &str, other: &str) -> Result<bool, &'static str> {
    match text {
        "refuse" => Ok(false),
        _ if text == other => Ok(true),
        _ if other == "replace" => Err("must be \"refuse\" or \"replace\""),
        _ if other == "number" => Err("must be \"refuse\" or \"number\""),
        _ => Err("must be \"refuse\" or \"null\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_sent_back_are_the_same() {
        let given = json!({
            "format": "csv", "encoding": "windows-1252", "delimiter": ";", "quote": "",
            "decimal": ",", "thousands": ".", "sheet": "Plate 1", "header_row": 3,
            "last_row": 9, "null_values": ["", "n.d."], "timezone": "Europe/Berlin",
            "date_format": "%d.%m.%Y %H:%M", "text_numbers": "null", "error_cells": "null",
            "invalid_bytes": "replace", "duplicate_headers": "number",
        });
        let object = given.as_object().unwrap();
        let options = ReadOptions::from_json(object).unwrap();
        assert_eq!(&options.to_json(), object);
        let defaults = ReadOptions::default().with_defaults();
        assert_eq!(
            ReadOptions::from_json(&defaults.to_json()).unwrap(),
            defaults
        );
    }

    #[test]
    fn each_wrong_option_is_named() {
        let given = json!({
            "format": "ods", "encoding": "klingon", "delimiter": ";;", "decimal": "x",
            "thousands": "_", "header_row": -1, "timezone": "Mars/Base", "date_format": "%q",
            "text_numbers": "keep", "null_values": [1], "sheet": {}, "quote": "\n",
            "lines_above": 7,
        });
        let problems = ReadOptions::from_json(given.as_object().unwrap()).unwrap_err();
        let names: Vec<&str> = problems.iter().map(|problem| problem.name).collect();
        let expected = [
            "format",
            "encoding",
            "delimiter",
            "quote",
            "decimal",
            "thousands",
            "sheet",
            "header_row",
            "null_values",
            "timezone",
            "date_format",
            "text_numbers",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn fields_of_a_form_are_options() {
        let mut options = ReadOptions::default();
        for (name, text) in [
            ("null_values", ""),
            ("null_values", "n.d."),
            ("delimiter", ""),
            ("thousands", " "),
            ("header_row", "2"),
        ] {
            assert_eq!(options.set_field(name, text), Ok(true));
        }
        assert_eq!(options.set_field("table", "sample"), Ok(false));
        assert!(options.set_field("header_row", "two").is_err());
        let expected = ReadOptions {
            null_values: Some(vec![String::new(), "n.d.".to_owned()]),
            thousands: Some(Some(' ')),
            header_row: Some(2),
            ..ReadOptions::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn signs_have_several_spellings() {
        let read = |name: &str, text: &str| {
            let mut options = ReadOptions::default();
            options
                .set_field(name, text)
                .map(|_| options.to_json()[name].clone())
        };
        for (name, text, expected) in [
            ("delimiter", "tab", "\t"),
            ("delimiter", "\\t", "\t"),
            ("delimiter", "|", "|"),
            ("quote", "", ""),
            ("quote", "'", "'"),
            ("decimal", ".", "."),
            ("decimal", ",", ","),
            ("thousands", "", ""),
            ("thousands", ".", "."),
            ("thousands", ",", ","),
            ("thousands", "\u{2019}", "'"),
            ("thousands", "\u{a0}", " "),
            ("thousands", "\u{202f}", " "),
            ("thousands", "\u{2009}", " "),
            ("format", "xlsx", "xlsx"),
            ("format", "parquet", "parquet"),
            ("encoding", "latin1", "windows-1252"),
            ("text_numbers", "refuse", "refuse"),
            ("error_cells", "null", "null"),
            ("invalid_bytes", "replace", "replace"),
            ("duplicate_headers", "number", "number"),
        ] {
            assert_eq!(read(name, text), Ok(json!(expected)), "{name} {text}");
        }
        for (name, text, message) in [
            ("delimiter", "\n", "one ASCII character"),
            ("delimiter", "\r", "one ASCII character"),
            ("delimiter", "\0", "one ASCII character"),
            ("delimiter", "\u{b5}", "one ASCII character"),
            ("quote", "''", "one ASCII character"),
            ("text_numbers", "number", "\"refuse\" or \"null\""),
            ("invalid_bytes", "null", "\"refuse\" or \"replace\""),
            ("duplicate_headers", "null", "\"refuse\" or \"number\""),
            ("last_row", "1.5", "the number of a line"),
        ] {
            let problem = read(name, text).unwrap_err();
            assert_eq!(problem.name, name);
            assert!(problem.message.contains(message), "{}", problem.message);
        }
    }

    #[test]
    fn options_have_limits() {
        let mut options = ReadOptions::default();
        // In characters, which may be of two bytes.
        assert_eq!(options.set_field("sheet", &"\u{b5}".repeat(200)), Ok(true));
        assert!(options.set_field("sheet", &"x".repeat(201)).is_err());
        for _ in 0..100 {
            assert_eq!(options.set_field("null_values", "x"), Ok(true));
        }
        assert!(options.set_field("null_values", "x").is_err());
        let none = json!({"null_values": [], "header_row": null, "sheet": "2"});
        let read = ReadOptions::from_json(none.as_object().unwrap()).unwrap();
        assert_eq!(read.null_values, Some(Vec::new()));
        assert_eq!((read.header_row, read.sheet.as_deref()), (None, Some("2")));
    }
}
