//! Names and titles that people give to records: one line of text.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    files::path::fold,
    refusal::{ErrorCode, Refuse},
};

/// Returns whether a text is one line of text: not blank, without control characters.
#[must_use]
pub fn is_one_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

/// Name of a record as it is stored: one line of text, in Unicode's composed form (NFC) and without white space around it.
/// Names that look the same are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName(String);

impl RecordName {
    /// The name of a text; `None` unless that is one line of text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let name: String = text.trim().nfc().collect();
        is_one_line(&name).then_some(Self(name))
    }

    /// The name of a text, if it has at most the given number of characters.
    #[must_use]
    pub fn parse_up_to(text: &str, characters: usize) -> Option<Self> {
        Self::parse(text).filter(|name| name.0.chars().count() <= characters)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name by which a request that gives this text finds a record: the text itself if a record with it
    /// `exists`, since earlier versions stored names as they were given.
    #[must_use]
    pub fn find(text: &str, exists: impl Fn(&str) -> bool) -> String {
        match Self::parse(text) {
            Some(name) if !exists(text) => name.into(),
            _ => text.to_owned(),
        }
    }

    /// Returns whether two names differ in case at most, or in what is not stored.
    #[must_use]
    pub fn are_twins(one: &str, other: &str) -> bool {
        fold(one.trim()) == fold(other.trim())
    }
}

impl From<RecordName> for String {
    fn from(name: RecordName) -> Self {
        name.0
    }
}

/// Record whose name has no other rule than that of all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An API key.
    ApiKey,
    /// A dataset.
    Dataset,
    /// A group of users.
    Group,
    /// An instrument.
    Instrument,
    /// A model.
    Model,
    /// A saved view.
    SavedView,
    /// A SQL login.
    SqlLogin,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey => "an API key's name",
            Self::Dataset => "a dataset's name",
            Self::Group => "a group's name",
            Self::Instrument => "an instrument's name",
            Self::Model => "a model's name",
            Self::SavedView => "a view's name",
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
    /// Reads the name of a record of this kind. Its length is bounded besides.
    ///
    /// # Errors
    /// [`NotOneLine`].
    pub fn parse(self, name: &str) -> Result<RecordName, NotOneLine> {
        RecordName::parse(name).ok_or(NotOneLine(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_text() {
        for (text, name) in [
            ("wine", "wine"),
            ("\u{a0}Su\u{308}d – 2 \n", "Süd – 2"),
            ("a b", "a b"),
        ] {
            let parsed = Named::Model.parse(text).unwrap();
            assert_eq!(parsed.as_str(), name, "{text:?}");
        }
        for name in ["", "  ", "\u{a0}", "a\nb", "a\u{7f}", "\t"] {
            let refused = Named::Dataset.parse(name).unwrap_err().to_string();
            assert_eq!(
                refused, "a dataset's name must not be blank or have control characters",
                "{name:?}"
            );
        }
    }

    #[test]
    fn names_that_differ_in_case_or_in_what_is_not_stored_are_twins() {
        for (one, other) in [
            ("g1", "G1"),
            ("Süd", "SU\u{308}D"),
            (" g1", "g1\u{a0}"),
            ("g1", "g1"),
        ] {
            assert!(RecordName::are_twins(one, other), "{one:?} {other:?}");
        }
        assert!(!RecordName::are_twins("g1", "g 1"));
    }

    #[test]
    fn a_record_is_found_by_its_name_as_it_was_given_or_as_it_is_stored() {
        let stored = |name: &str| [" old", "new", "Süd"].contains(&name);
        for (given, found) in [
            (" old", " old"),
            (" new ", "new"),
            ("Su\u{308}d", "Süd"),
            ("old", "old"),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(RecordName::find(given, stored), found);
        }
    }
}
