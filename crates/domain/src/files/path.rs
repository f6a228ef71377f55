//! Names and paths of files.

use unicode_normalization::UnicodeNormalization;

/// Maximum number of characters of a path.
pub const MAX_PATH_CHARS: usize = 1024;

/// Name or path of a file exactly as its uploader gave it. It is a label, never a location in a
/// file system: `..` has no meaning in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// Reason why a text is no file name.
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
        // Ends at the limit, however long the text is.
        if text.chars().nth(MAX_PATH_CHARS).is_some() {
            return Err(InvalidFilePath::TooLong);
        }
        let path = Self(text.to_owned());
        match path.file_name().trim() {
            // A client that saves under this name would write a directory, or beside its own.
            "" | "." | ".." => Err(InvalidFilePath::NoName),
            _ => Ok(path),
        }
    }

    /// Makes a file name of any text and an extension such as `.parquet`. Characters that file names may
    /// not have become `_`; a text that is too long is cut.
    #[must_use]
    pub fn named(text: &str, extension: &'static str) -> Self {
        let is_forbidden = |letter: char| letter.is_control() || matches!(letter, '/' | '\\');
        // Room for the extension, which decides how the file is opened.
        let letters = text.chars().take(MAX_PATH_CHARS - extension.len());
        let letters = letters.map(|letter| if is_forbidden(letter) { '_' } else { letter });
        Self(letters.chain(extension.chars()).collect())
    }

    /// Returns the whole path, as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part after the last `/` or `\`, because many instruments run Windows.
    #[must_use]
    pub fn file_name(&self) -> &str {
        // Instruments run on Windows and elsewhere; the path is stored as sent, so both separators count.
        self.0.rsplit(['/', '\\']).next().unwrap_or(&self.0)
    }

    /// Returns the part of the file name after its last dot, folded; `None` if there is no dot or
    /// nothing after it.
    #[must_use]
    pub fn extension(&self) -> Option<String> {
        let (_, extension) = self.file_name().rsplit_once('.')?;
        (!extension.is_empty()).then(|| fold(extension))
    }

    /// Returns the path folded for searches.
    #[must_use]
    pub fn folded(&self) -> String {
        fold(&self.0)
    }
}

/// Removes letter case character by character, and composes accents (NFC), so that a part of a name
/// folds to a part of the folded name. Searches compare folded texts and do not depend on the
/// database's locale.
#[must_use]
pub fn fold(text: &str) -> String {
    // Names from macOS have their accents behind the letters; people type them composed.
    // Not `str::to_lowercase`: its rule for a final sigma would make a substring fold differently.
    let lower: String = text.nfc().flat_map(char::to_lowercase).collect();
    // The lower case of some letters is a letter and an accent.
    lower.nfc().collect()
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
        fn a_part_of_a_path_folds_to_a_part_of_the_folded_path(a in ".*", b in ".*", c in ".*") {
            let whole = format!("{a}/{b}/{c}");
            prop_assert!(fold(&whole).contains(&fold(&b)));
        }

        #[test]
        fn every_spelling_of_accents_folds_to_one(text in ".*") {
            let decomposed: String = text.nfd().collect();
            prop_assert_eq!(fold(&decomposed), fold(&text));
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
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
