//! Names of tables and columns.

use std::{borrow::Cow, fmt};

/// Maximum length of a name: PostgreSQL's limit for identifiers, less the terminator.
const MAX_LENGTH: usize = 63;

/// Words that PostgreSQL reads as a value wherever they stand alone, with another way to write it.
const VALUES: [(&str, Option<&str>); 12] = [
    ("current_catalog", None),
    ("current_date", Some("now()::date")),
    ("current_role", None),
    ("current_schema", None),
    ("current_time", Some("now()::time")),
    ("current_timestamp", Some("now()")),
    ("current_user", None),
    ("localtime", Some("now()::time")),
    ("localtimestamp", Some("now()::timestamp")),
    ("session_user", None),
    ("system_user", None),
    ("user", None),
];

/// Constants of SQL.
const CONSTANTS: [&str; 3] = ["false", "null", "true"];

/// Returns why a query may not have a word that PostgreSQL reads as a value; `None` for other words.
#[must_use]
pub(crate) fn refuse_value(word: &str) -> Option<String> {
    let (_, instead) = VALUES.iter().find(|(value, _)| *value == word)?;
    let instead = instead.map(|instead| format!("; for the value, write {instead}"));
    Some(format!(
        "PostgreSQL reads \"{word}\" as a value, never as a name: a column or table \"{word}\" is \
         called \"{word}_\" in SQL{}",
        instead.unwrap_or_default()
    ))
}

/// The name of a table or column in SQL. One that PostgreSQL reads as a value ends in `_` there: a
/// query would read the value without an error.
#[must_use]
pub fn sql_name(name: &str) -> Cow<'_, str> {
    let is_value = VALUES.iter().any(|(value, _)| *value == name);
    if is_value || CONSTANTS.contains(&name) {
        Cow::Owned(format!("{name}_"))
    } else {
        Cow::Borrowed(name)
    }
}

/// A table's or column's name: `[a-z][a-z0-9_]{0,62}`. It may be an SQL keyword: adapters quote
/// names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no valid name: a lower-case letter, then at most 62 lower-case letters, digits or underscores"
)]
pub struct InvalidName(String);

impl Name {
    /// Regular expression of names.
    pub const PATTERN: &'static str = "^[a-z][a-z0-9_]{0,62}$";

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidName`], quoting the beginning of the text.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let mut bytes = text.bytes();
        let fits = text.len() <= MAX_LENGTH
            && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
            // Without capitals, a name needs no quotation marks in SQL, where PostgreSQL folds it.
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(80).collect()))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_keywords_are_names_like_any_other() {
        for text in ["select", "user", "order", "a", "x_1"] {
            assert!(Name::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_that_are_values_in_sql_have_another_name_there() {
        for name in ["user", "current_date", "localtime", "null", "true"] {
            assert_eq!(sql_name(name), format!("{name}_"));
        }
        for name in ["users", "user_", "order", "date", "current"] {
            assert_eq!(sql_name(name), name);
        }
    }

    #[test]
    fn refuses_what_would_need_folding_or_cutting() {
        for text in [
            "",
            "Sample",
            "1a",
            "_a",
            "a b",
            "a\"b",
            "é",
            &"a".repeat(64),
        ] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
        assert!(Name::parse(&"a".repeat(63)).is_ok());
        assert!(Name::PATTERN.contains(&format!("{{0,{}}}", MAX_LENGTH - 1)));
    }
}
