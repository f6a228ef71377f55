//! Names and titles that people give to records: one line of text.

use std::fmt;

use crate::refusal::{ErrorCode, Refuse};

/// Returns whether a text is one line of text: not blank, without control characters.
#[must_use]
pub fn is_one_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

/// Record whose name has no other rule than that of all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An API key.
    ApiKey,
    /// A dataset.
    Dataset,
    /// A model.
    Model,
    /// A SQL login.
    SqlLogin,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey => "an API key's name",
            Self::Dataset => "a dataset's name",
            Self::Model => "a model's name",
            Self::SqlLogin => "a SQL login's name",
        })
    }
}

/// Error: a name is not one line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} must not be blank or have control characters")]
pub struct NotOneLine(pub Named);

impl Refuse for NotOneLine {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidName
    }
}

impl Named {
    /// Checks the name of a record of this kind. Its length is bounded besides.
    ///
    /// # Errors
    /// [`NotOneLine`].
    pub fn check(self, name: &str) -> Result<(), NotOneLine> {
        if is_one_line(name) {
            Ok(())
        } else {
            Err(NotOneLine(self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_text() {
        for name in ["wine", " Süd – 2 ", "a b"] {
            assert_eq!(Named::Model.check(name), Ok(()), "{name:?}");
        }
        for name in ["", "  ", "\u{a0}", "a\nb", "a\u{7f}", "\t"] {
            let refused = Named::Dataset.check(name).unwrap_err().to_string();
            assert_eq!(
                refused, "a dataset's name must not be blank or have control characters",
                "{name:?}"
            );
        }
    }
}
