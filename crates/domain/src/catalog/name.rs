//! Names of tables and columns.

use std::fmt;

/// Maximum length of a name: PostgreSQL's limit for identifiers, less the terminator.
const MAX_LENGTH: usize = 63;

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
