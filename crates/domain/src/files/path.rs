//! The name or path under which a file is recorded.

/// The most characters of a path.
pub const MAX_PATH_CHARS: usize = 1024;

/// The name or path of a file as its uploader gave it, kept to the letter. It is a label, never a
/// place in any file system: `..` has no meaning in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// Why a text cannot be a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilePath {
    /// It is empty, blank, or names a directory.
    #[error("a file name must not be blank, end in a slash, or be . or ..")]
    NoName,
    /// It has NUL or other control characters.
    #[error("a file name must not have control characters")]
    ControlCharacter,
    /// It is too long.
    #[error("a file name has at most {MAX_PATH_CHARS} characters")]
    TooLong,
}

impl FilePath {
    /// Checks a name.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, InvalidFilePath> {
        if text.chars().any(char::is_control) {
            return Err(InvalidFilePath::ControlCharacter);
        }
        if text.chars().nth(MAX_PATH_CHARS).is_some() {
            return Err(InvalidFilePath::TooLong);
        }
        let path = Self(text.to_owned());
        match path.file_name().trim() {
            "" | "." | ".." => Err(InvalidFilePath::NoName),
            _ => Ok(path),
        }
    }

    /// The whole path, as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part behind the last `/` or `\`, as instruments run Windows as often as not.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit(['/', '\\']).next().unwrap_or(&self.0)
    }

    /// The part of the file name behind its last dot, folded; `None` where there is no dot or
    /// nothing behind it.
    #[must_use]
    pub fn extension(&self) -> Option<String> {
        let (_, extension) = self.file_name().rsplit_once('.')?;
        (!extension.is_empty()).then(|| fold(extension))
    }

    /// The path without regard to case; what searches compare.
    #[must_use]
    pub fn folded(&self) -> String {
        fold(&self.0)
    }
}

/// Takes letter case away, character by character, so that a part of a text folds to a part of
/// the folded text. Searches compare what this returned and never a database's idea of case,
/// which depends on how the database was set up.
#[must_use]
pub fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_file_name_is_behind_the_last_separator_of_either_kind() {
        let cases = [
            ("plate.csv", "plate.csv"),
            ("runs/2026/plate.csv", "plate.csv"),
            ("C:\\Data\\plate.csv", "plate.csv"),
            ("../../etc/passwd", "passwd"),
            ("a\\b/c", "c"),
        ];
        for (path, name) in cases {
            assert_eq!(FilePath::parse(path).unwrap().file_name(), name);
        }
    }

    #[test]
    fn a_name_that_names_no_file_is_refused() {
        for text in ["", " ", ".", "..", "a/", "a\\", "a/..", "/"] {
            assert_eq!(
                FilePath::parse(text),
                Err(InvalidFilePath::NoName),
                "{text:?}"
            );
        }
    }

    #[test]
    fn control_characters_and_long_names_are_refused() {
        for text in ["a\0b", "a\r\nSet-Cookie: x", "a\u{7f}", "a\u{85}b"] {
            assert_eq!(
                FilePath::parse(text),
                Err(InvalidFilePath::ControlCharacter)
            );
        }
        assert!(FilePath::parse(&"é".repeat(MAX_PATH_CHARS)).is_ok());
        assert_eq!(
            FilePath::parse(&"é".repeat(MAX_PATH_CHARS + 1)),
            Err(InvalidFilePath::TooLong)
        );
    }

    #[test]
    fn extensions_are_folded() {
        let cases = [
            ("a.CSV", Some("csv")),
            ("a.tar.gz", Some("gz")),
            ("a", None),
            ("a.", None),
            ("d.x/a", None),
        ];
        for (path, extension) in cases {
            assert_eq!(
                FilePath::parse(path).unwrap().extension().as_deref(),
                extension,
                "{path}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_part_of_a_text_folds_to_a_part_of_the_folded_text(a in ".*", b in ".*", c in ".*") {
            let whole = format!("{a}{b}{c}");
            prop_assert!(fold(&whole).contains(&fold(&b)));
        }

        #[test]
        fn an_accepted_path_has_a_name_and_no_control_characters(text in "\\PC*|.*") {
            if let Ok(path) = FilePath::parse(&text) {
                prop_assert!(!path.file_name().trim().is_empty());
                prop_assert!(!path.as_str().chars().any(char::is_control));
                prop_assert_eq!(path.as_str(), text);
            }
        }
    }
}
