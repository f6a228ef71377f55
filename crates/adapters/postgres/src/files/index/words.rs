//! The words by which files are found. They are kept as texts: nothing but what has a word matches
//! it.

use std::collections::HashMap;

use uuid::Uuid;

/// The longest groups of neighbouring characters that are words.
const GRAM: usize = 3;

/// The most words that a part is looked up by: some already leave few files.
const MOST_OF_PART: usize = 16;

/// The word of an instrument's files; longer than any group of characters.
pub(super) fn instrument_word(instrument: Uuid) -> String {
    format!("instrument {instrument}")
}

/// The word of the files with an extension, as its column has it; likewise.
pub(super) fn extension_word(extension: &str) -> String {
    format!("extension {extension}")
}

/// Words that all paths have which have that part.
pub(super) fn words_of_part(part: &str) -> Vec<String> {
    let characters: Vec<char> = part.chars().collect();
    if characters.is_empty() {
        return Vec::new();
    }
    let mut words: Vec<String> = characters
        .windows(characters.len().min(GRAM))
        .map(|gram| gram.iter().collect())
        .collect();
    words.sort_unstable();
    words.dedup();
    let step = words.len().div_ceil(MOST_OF_PART);
    words.into_iter().step_by(step).collect()
}

/// In which positions of a segment there are files that have a word, ascending.
#[derive(Debug, Default)]
pub(super) struct Postings {
    words: HashMap<Box<str>, Vec<u16>>,
    /// Where the characters of a path begin, and its end; kept for its memory.
    bounds: Vec<usize>,
}

impl Postings {
    /// Adds the words of a file at a position that is greater than all before.
    pub(super) fn add(
        &mut self,
        position: u16,
        path: &str,
        instrument: Option<Uuid>,
        extension: Option<&str>,
    ) {
        let mut bounds = std::mem::take(&mut self.bounds);
        bounds.clear();
        bounds.extend(path.char_indices().map(|(at, _)| at));
        bounds.push(path.len());
        for (first, from) in bounds.iter().enumerate() {
            for to in bounds.iter().skip(first + 1).take(GRAM) {
                if let Some(gram) = path.get(*from..*to) {
                    self.note(gram, position);
                }
            }
        }
        self.bounds = bounds;
        if let Some(instrument) = instrument {
            self.note(&instrument_word(instrument), position);
        }
        if let Some(extension) = extension {
            self.note(&extension_word(extension), position);
        }
    }

    fn note(&mut self, word: &str, position: u16) {
        match self.words.get_mut(word) {
            // The word is in the path more than once.
            Some(positions) if positions.last() == Some(&position) => {}
            Some(positions) => positions.push(position),
            None => {
                self.words.insert(word.into(), vec![position]);
            }
        }
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Every word with its positions, in the order of the words.
    pub(super) fn into_sorted(self) -> Vec<(Box<str>, Vec<u16>)> {
        let mut words: Vec<_> = self.words.into_iter().collect();
        words.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> Vec<Box<str>> {
        let mut postings = Postings::default();
        postings.add(3, path, None, None);
        let words = postings.into_sorted();
        assert!(words.iter().all(|(_, positions)| *positions == [3]));
        words.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_path_has_its_groups_of_up_to_three_characters_once_each() {
        let expected = ["a", "ab", "aba", "aß", "b", "ba", "bab", "baß", "ß"];
        assert_eq!(words("ababaß"), expected.map(Box::from));
        assert!(words("").is_empty());
    }

    #[test]
    fn whatever_has_a_part_has_its_words() {
        let path = "runs/2026-03/plate_0012345_µl ready.csv";
        let known = words(path);
        let characters: Vec<char> = path.chars().collect();
        for length in 1..=characters.len() {
            for part in characters.windows(length) {
                let part: String = part.iter().collect();
                let wanted = words_of_part(&part);
                assert!((1..=MOST_OF_PART).contains(&wanted.len()), "{part}");
                for word in wanted {
                    assert!(known.contains(&word.as_str().into()), "{part}: {word}");
                }
            }
        }
    }

    #[test]
    fn instrument_and_extension_are_words_that_no_path_has() {
        let mut postings = Postings::default();
        let instrument = Uuid::from_u128(7);
        postings.add(0, "a", Some(instrument), Some("b"));
        postings.add(1, "a", None, Some("b"));
        let words = postings.into_sorted();
        let words: Vec<(&str, &[u16])> = words.iter().map(|(w, p)| (&**w, p.as_slice())).collect();
        let expected: [(&str, &[u16]); 3] = [
            ("a", &[0, 1]),
            ("extension b", &[0, 1]),
            ("instrument 00000000-0000-0000-0000-000000000007", &[0]),
        ];
        assert_eq!(words, expected);
    }
}
