//! Filters of file lists.

use super::{
    Attribution,
    path::{FilePath, fold},
};
use crate::ids::{ExecutionId, InstrumentId};

/// Filter of confirmed files; a file must match every part that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFilter {
    /// Only files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Only files of this execution.
    pub execution: Option<ExecutionId>,
    /// Only files with one of these extensions.
    pub extensions: Option<ExtensionFilter>,
    /// Only files whose path contains this.
    pub query: Option<NameQuery>,
}

/// Set of file extensions, such as `csv,.TXT`.
///
/// A file matches when its folded path ends in a dot and one of the extensions. A repository that
/// retains [`FilePath::extension`] in an indexed column finds the candidates by
/// [`ExtensionFilter::last_parts`], and needs [`ExtensionFilter::suffixes`] only where
/// [`ExtensionFilter::has_compound`] says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFilter(Vec<String>);

impl ExtensionFilter {
    /// Reads a comma-separated list; case and a leading dot are ignored. `None` if it names no
    /// extension. An extension that no file name can have matches no file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut named = false;
        let mut extensions = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let part = part.strip_prefix('.').unwrap_or(part);
            if part.is_empty() {
                continue;
            }
            named = true;
            let extension = fold(part);
            // No stored extension has such characters: this kind of filter is valid and matches nothing.
            let possible = !extension
                .chars()
                .any(|c| c.is_control() || matches!(c, '/' | '\\'));
            if possible && !extension.ends_with('.') && !extensions.contains(&extension) {
                extensions.push(extension);
            }
        }
        // `,` alone names nothing and filters nothing; `/` names something that no file has.
        named.then_some(Self(extensions))
    }

    /// Returns the part of each extension after its last dot: `gz` of `tar.gz`. Empty if no file
    /// can match.
    #[must_use]
    pub fn last_parts(&self) -> Vec<&str> {
        self.0
            .iter()
            // The index holds last parts; `tar.gz` narrows by `gz` and is compared whole afterwards.
            .map(|e| e.rsplit('.').next().unwrap_or(e))
            .collect()
    }

    /// Returns each extension with a leading dot; a matching file's folded path ends in one of
    /// them.
    #[must_use]
    pub fn suffixes(&self) -> Vec<String> {
        self.0.iter().map(|e| format!(".{e}")).collect()
    }

    /// Returns true if an extension contains a dot, so that [`ExtensionFilter::last_parts`] do not
    /// suffice.
    #[must_use]
    pub fn has_compound(&self) -> bool {
        self.0.iter().any(|e| e.contains('.'))
    }

    /// Returns true if the file matches.
    #[must_use]
    pub fn matches(&self, path: &FilePath) -> bool {
        let folded = path.folded();
        self.suffixes()
            .iter()
            .any(|suffix| folded.ends_with(suffix))
    }
}

/// Substring of a path to search for, ignoring case. Every character is literal: a repository that
/// searches by a pattern escapes `%`, `_` and its escape character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameQuery(String);

/// Error: the query has control characters, which no file name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no file name has control characters")]
pub struct MatchesNothing;

impl NameQuery {
    /// Reads a search text; an empty one is no query (`Ok(None)`).
    ///
    /// # Errors
    /// [`MatchesNothing`] if no file can match.
    pub fn parse(text: &str) -> Result<Option<Self>, MatchesNothing> {
        // No path has control characters, and PostgreSQL cannot compare with NUL.
        if text.chars().any(char::is_control) {
            return Err(MatchesNothing);
        }
        Ok((!text.is_empty()).then(|| Self(fold(text))))
    }

    /// Returns the text to search for in [`FilePath::folded`].
    #[must_use]
    pub fn folded(&self) -> &str {
        &self.0
    }

    /// Returns true if the file matches.
    #[must_use]
    pub fn matches(&self, path: &FilePath) -> bool {
        path.folded().contains(&self.0)
    }
}

impl FileFilter {
    /// Returns true if a file of that path, instrument and execution matches.
    #[must_use]
    pub fn matches(&self, path: &FilePath, attribution: Attribution) -> bool {
        self.instrument
            .is_none_or(|wanted| attribution.instrument() == Some(wanted))
            && self
                .execution
                .is_none_or(|wanted| attribution.execution() == Some(wanted))
            && self
                .extensions
                .as_ref()
                .is_none_or(|extensions| extensions.matches(path))
            && self.query.as_ref().is_none_or(|query| query.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn extensions_ignore_case_and_the_dot_in_front() {
        let filter = ExtensionFilter::parse("csv, .TXT,,csv").unwrap();
        assert_eq!(filter.last_parts(), ["csv", "txt"]);
        for (name, matches) in [
            ("a.CSV", true),
            ("b.txt", true),
            ("c.xlsx", false),
            ("csv", false),
        ] {
            assert_eq!(filter.matches(&path(name)), matches, "{name}");
        }
    }

    #[test]
    fn a_compound_extension_matches_the_whole_of_it() {
        let filter = ExtensionFilter::parse("tar.gz").unwrap();
        assert!(filter.has_compound());
        assert_eq!(filter.last_parts(), ["gz"]);
        assert!(filter.matches(&path("x.tar.gz")));
        assert!(!filter.matches(&path("x.gz")));
    }

    #[test]
    fn naming_no_extension_asks_for_every_file_and_an_impossible_one_for_none() {
        assert_eq!(ExtensionFilter::parse(""), None);
        assert_eq!(ExtensionFilter::parse(" , ."), None);
        let impossible = ExtensionFilter::parse("c\0sv").unwrap();
        assert!(impossible.last_parts().is_empty());
        assert!(!impossible.matches(&path("a.csv")));
    }

    #[test]
    fn a_query_is_a_literal_substring_without_regard_to_case() {
        let query = |text: &str| NameQuery::parse(text).unwrap().unwrap();
        assert!(query("PLATE_1").matches(&path("my plate_1.csv")));
        assert!(!query("plate_1").matches(&path("plateX1.csv")));
        assert!(!query("%").matches(&path("plate.csv")));
        assert!(query("ÄÖ").matches(&path("xäöy.csv")));
        // As macOS spells names, and as people type them.
        assert!(query("réactif").matches(&path("Re\u{301}actif 3.csv")));
        assert!(query("re\u{301}actif").matches(&path("Réactif 3.csv")));
        assert_eq!(NameQuery::parse(""), Ok(None));
        assert_eq!(NameQuery::parse("a\0"), Err(MatchesNothing));
    }

    #[test]
    fn a_plain_extension_is_not_compound() {
        assert!(!ExtensionFilter::parse("csv,txt").unwrap().has_compound());
    }

    #[test]
    fn a_query_is_folded_as_paths_are() {
        let query = NameQuery::parse("Plate_Ä").unwrap().unwrap();
        assert_eq!(query.folded(), "plate_ä");
        assert!(path("my PLATE_Ä.csv").folded().contains(query.folded()));
    }

    #[test]
    fn a_file_must_meet_every_part_of_the_filter() {
        let id = uuid::Uuid::from_u128;
        let of = |instrument: u128, execution: u128| {
            let instrument = InstrumentId::new(id(instrument));
            let execution = ExecutionId::new(id(execution));
            Attribution::new(Some(instrument), Some(execution)).unwrap()
        };
        let captured = Attribution::new(Some(InstrumentId::new(id(1))), None).unwrap();
        let made = Attribution::new(None, Some(ExecutionId::new(id(2)))).unwrap();
        let filter = FileFilter {
            instrument: Some(InstrumentId::new(id(1))),
            execution: Some(ExecutionId::new(id(2))),
            extensions: ExtensionFilter::parse("csv"),
            query: NameQuery::parse("plate").unwrap(),
        };
        assert!(filter.matches(&path("plate.csv"), of(1, 2)));
        for other in [of(3, 2), of(1, 3), captured, made] {
            assert!(!filter.matches(&path("plate.csv"), other), "{other:?}");
        }
        assert!(!filter.matches(&path("plate.txt"), of(1, 2)));
        assert!(!filter.matches(&path("rack.csv"), of(1, 2)));
        assert!(FileFilter::default().matches(&path("rack.txt"), made));
    }
}
