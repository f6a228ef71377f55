//! Patterns of file names.

use crate::files::FilePath;

/// The most characters of a pattern.
pub const MAX_PATTERN_LENGTH: usize = 1_000;

/// A pattern in which `*` stands for any characters, separators too, and `?` for any one
/// character. Everything else stands for itself; case matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(Vec<char>);

impl NamePattern {
    /// Reads a pattern; `None` when it is empty or too long.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut pattern: Vec<char> = text.chars().collect();
        let fits = !pattern.is_empty() && pattern.len() <= MAX_PATTERN_LENGTH;
        // `**` matches the same as `*`, and `reach` looks only one star ahead.
        pattern.dedup_by(|next, one| *next == '*' && *one == '*');
        fits.then_some(Self(pattern))
    }

    /// Returns true if the pattern fits the whole path, or the part after any `/` or `\` in it. Takes
    /// steps in the order of the pattern's length times the path's.
    #[must_use]
    pub fn matches(&self, path: &FilePath) -> bool {
        self.fits_a_part(path.as_str())
    }

    /// Walks all parts at once: `reached[i]` says whether some part fits the first `i` characters
    /// of the pattern so far.
    fn fits_a_part(&self, path: &str) -> bool {
        // Follows all alternatives at once: backtracking takes exponential time for `*a*a*a*b`.
        let mut reached = vec![false; self.0.len() + 1];
        let mut begins = true;
        for character in path.chars() {
            if begins {
                self.begin(&mut reached);
            }
            let mut next = vec![false; reached.len()];
            for (place, wanted) in self.0.iter().enumerate() {
                if reached.get(place) != Some(&true) {
                    continue;
                }
                let after = match wanted {
                    '*' => Some(place),
                    '?' => Some(place + 1),
                    wanted => (*wanted == character).then_some(place + 1),
                };
                if let Some(after) = after {
                    self.reach(&mut next, after);
                }
            }
            reached = next;
            // Paths come from Windows and elsewhere, so both separators begin a part.
            begins = matches!(character, '/' | '\\');
        }
        if begins {
            self.begin(&mut reached);
        }
        reached.last() == Some(&true)
    }

    fn begin(&self, reached: &mut [bool]) {
        self.reach(reached, 0);
    }

    /// Marks the place, and the one behind it where `*` may stand for nothing.
    fn reach(&self, reached: &mut [bool], place: usize) {
        let mut mark = |place| {
            if let Some(reached) = reached.get_mut(place) {
                *reached = true;
            }
        };
        mark(place);
        if self.0.get(place) == Some(&'*') {
            mark(place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let path = FilePath::parse(path).unwrap();
        NamePattern::parse(pattern).unwrap().matches(&path)
    }

    #[test]
    fn a_star_crosses_separators_and_a_question_mark_is_one_character() {
        for (pattern, path) in [
            ("*", "a"),
            ("*.csv", "plate.csv"),
            ("*.csv", "runs/2026/plate.csv"),
            ("runs/*.csv", "runs/2026/plate.csv"),
            ("runs*csv", "runs/2026/plate.csv"),
            ("plate?.csv", "plate1.csv"),
            ("plate?.csv", "plateü.csv"),
            ("a?b", "a/b"),
            ("?", "ü"),
            ("a**b", "ab"),
            ("[1].csv", "[1].csv"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.CSV", "plate.csv"),
            ("plate.csv", "my plate.csv"),
            ("plate?.csv", "plate.csv"),
            ("plate.cs", "plate.csv"),
            ("[1].csv", "1.csv"),
            ("runs", "runs/plate.csv"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn the_part_after_any_separator_may_fit() {
        for pattern in ["a/b\\c.csv", "b\\c.csv", "c.csv", "?\\c.csv", "b*"] {
            assert!(matches(pattern, "a/b\\c.csv"), "{pattern}");
        }
        for pattern in ["a", "b", "/b\\c.csv", ".csv", "b/c.csv"] {
            assert!(!matches(pattern, "a/b\\c.csv"), "{pattern}");
        }
    }

    #[test]
    fn patterns_have_a_length() {
        assert_eq!(NamePattern::parse(""), None);
        assert!(NamePattern::parse(&"*".repeat(MAX_PATTERN_LENGTH)).is_some());
        assert_eq!(
            NamePattern::parse(&"*".repeat(MAX_PATTERN_LENGTH + 1)),
            None
        );
    }

    /// A plain reference implementation of the matching.
    fn fits(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=text.len()).any(|taken| fits(rest, &text[taken..])),
            (Some(('?', rest)), Some((_, after))) => fits(rest, after),
            (Some((wanted, rest)), Some((character, after))) => {
                wanted == character && fits(rest, after)
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    fn parts(path: &str) -> Vec<Vec<char>> {
        let mut parts = vec![path.chars().collect()];
        for (at, _) in path.match_indices(['/', '\\']) {
            parts.push(path[at + 1..].chars().collect());
        }
        parts
    }

    proptest! {
        #[test]
        fn it_matches_what_its_meaning_says(
            pattern in "[ab/*?\\\\ü]{1,8}",
            path in "[ab/\\\\ü]{0,10}",
        ) {
            let wanted: Vec<char> = pattern.chars().collect();
            let expected = parts(&path).iter().any(|part| fits(&wanted, part));
            let pattern = NamePattern::parse(&pattern).unwrap();
            prop_assert_eq!(pattern.fits_a_part(&path), expected);
        }

        #[test]
        fn a_path_always_fits_itself_and_every_star(path in "[^*?\\pC]{1,40}x") {
            let whole = FilePath::parse(&path).unwrap();
            prop_assert!(NamePattern::parse(&path).unwrap().matches(&whole));
            for at in path.char_indices().map(|(at, _)| at) {
                let starred = format!("{}*", &path[..at]);
                prop_assert!(NamePattern::parse(&starred).unwrap().matches(&whole));
            }
        }
    }
}
