//! A walk through segments: the positions of files that may match, the newest first.

use std::collections::VecDeque;

use labdata_domain::page::Cursor;
use roaring::{MultiOps, RoaringBitmap};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    memory::{Posting, Segment, Word},
    reader::Reader,
    words::{extension_word, instrument_word, words_of_part},
};
use crate::{database::errors::Fault, files::conditions::FileConditions};

/// In so many segments words are looked up at first, then in so many times more of them: most searches
/// end in the newest, and others need all.
const SEGMENTS: usize = 2;
const GROWTH: usize = 8;
const MOST_SEGMENTS: usize = 512;

/// What files have that may match.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// All words of a part,
    part: Vec<Box<str>>,
    /// and all of these,
    all: Vec<Box<str>>,
    /// and one of these, where there are any.
    any: Vec<Box<str>>,
}

impl Words {
    pub(super) fn of(conditions: &FileConditions<'_>) -> Self {
        let part = match (conditions.part, conditions.suffixes.as_deref()) {
            (Some(part), _) => words_of_part(part),
            (None, Some([suffix])) => words_of_part(suffix),
            (None, _) => Vec::new(),
        };
        let extensions = conditions.extensions.as_deref().unwrap_or_default();
        let mut all: Vec<Box<str>> = Vec::new();
        all.extend(conditions.instrument.map(|id| instrument_word(id).into()));
        let mut any: Vec<Box<str>> = extensions
            .iter()
            .map(|e| extension_word(e).into())
            .collect();
        if any.len() == 1 {
            all.append(&mut any);
        }
        let part = part.into_iter().map(Into::into).collect();
        Self { part, all, any }
    }

    /// The words of a segment, in this order.
    fn of_segment(&self, segment: i64) -> impl Iterator<Item = Word<'_>> {
        let texts = self.part.iter().chain(&self.all).chain(&self.any);
        texts.map(move |text| Word { segment, text })
    }

    /// Which of the words of a part and of the others that all files have are to be looked up in a
    /// segment, and which of those of which one suffices; nothing where no file has them.
    fn choose<'w>(
        &self,
        files: u32,
        words: Vec<Known<'w>>,
        thorough: bool,
    ) -> Option<(Vec<Known<'w>>, Vec<Known<'w>>)> {
        let mut words = words.into_iter();
        let mut part: Vec<Known<'_>> = words.by_ref().take(self.part.len()).collect();
        let mut all: Vec<Known<'_>> = words.by_ref().take(self.all.len()).collect();
        let any: Vec<Known<'_>> = words.filter(|word| word.frequency() > 0).collect();
        let none = part.iter().chain(&all).any(|word| word.frequency() == 0);
        if none || any.is_empty() && !self.any.is_empty() {
            return None;
        }
        part.sort_unstable_by_key(Known::frequency);
        if !thorough {
            part.truncate(telling(&part, files));
        }
        all.append(&mut part);
        // What all files have tells nothing.
        all.retain(|word| word.frequency() < files);
        Some((all, any))
    }
}

/// A word of a segment, and what is known of it.
#[derive(Debug)]
struct Known<'w> {
    word: Word<'w>,
    posting: Posting,
}

impl Known<'_> {
    fn frequency(&self) -> u32 {
        self.posting.frequency
    }
}

/// How many of a part's words are to be looked up, of which the rarest is the first: until they would
/// leave less than one file, were they independent. More leave hardly fewer, and one that half of the
/// files have takes as long to read as it tells little.
fn telling(part: &[Known<'_>], files: u32) -> usize {
    let mut left = u64::from(files);
    let tells = part.iter().enumerate().take_while(|(which, word)| {
        let frequency = word.frequency();
        let tells = *which == 0 || left > 0 && frequency < files / 2;
        left = left * u64::from(frequency) / u64::from(files.max(1));
        tells
    });
    tells.count()
}

/// A walk through the segments that come after a place.
#[derive(Debug)]
pub(super) struct Walk<'w> {
    words: &'w Words,
    /// Segments that were not looked at yet, and below which position they are to be.
    ahead: VecDeque<(Segment, u32)>,
    /// Segments with positions of files that have the words, of which none is empty.
    ready: VecDeque<(Segment, RoaringBitmap)>,
    /// In how many segments words are looked up next.
    segments: usize,
    thorough: bool,
}

impl<'w> Walk<'w> {
    pub(super) async fn begin(
        reader: &mut Reader<'_>,
        words: &'w Words,
        standing: &[Segment],
        after: Option<Cursor>,
    ) -> Result<Self, Fault> {
        let mut ahead = VecDeque::with_capacity(standing.len());
        for segment in standing {
            let below = match after {
                Some(after) if segment.oldest >= (after.at, after.id) => 0,
                Some(after) => reader.below(segment, after).await?,
                None => segment.files,
            };
            if below > 0 {
                ahead.push_back((*segment, below));
            }
        }
        Ok(Self {
            words,
            ahead,
            ready: VecDeque::new(),
            segments: SEGMENTS,
            thorough: false,
        })
    }

    /// The next positions, and so many of them, unless there are no more.
    pub(super) async fn next(
        &mut self,
        reader: &mut Reader<'_>,
        wanted: usize,
    ) -> Result<Vec<(i64, u32)>, Fault> {
        let mut taken = Vec::with_capacity(wanted);
        while taken.len() < wanted {
            let Some((segment, positions)) = self.ready.front_mut() else {
                if self.ahead.is_empty() {
                    break;
                }
                self.look_up(reader).await?;
                continue;
            };
            let before = taken.len();
            let newest_first = positions.iter().rev().take(wanted - before);
            taken.extend(newest_first.map(|position| (segment.id, position)));
            if let Some((_, last)) = taken.get(before..).and_then(<[_]>::last) {
                positions.remove_range(last..);
            }
            if positions.is_empty() {
                self.ready.pop_front();
            }
        }
        Ok(taken)
    }

    pub(super) fn is_at_its_end(&self) -> bool {
        self.ready.is_empty() && self.ahead.is_empty()
    }

    /// Leaves out segments all of whose files are older than a place.
    pub(super) fn end_at(&mut self, (at, id): (Option<OffsetDateTime>, Uuid)) {
        let may_follow = |segment: &Segment| (Some(segment.newest.0), segment.newest.1) >= (at, id);
        self.ready.retain(|(segment, _)| may_follow(segment));
        self.ahead.retain(|(segment, _)| may_follow(segment));
    }

    /// Looks up all words from here on.
    pub(super) fn be_thorough(&mut self) {
        self.thorough = true;
        for (segment, positions) in self.ready.drain(..).rev() {
            let below = positions.max().map_or(0, |newest| newest + 1);
            self.ahead.push_front((segment, below));
        }
    }

    pub(super) fn is_thorough(&self) -> bool {
        self.thorough
    }

    /// Finds the positions of the files of the next segments that have the words.
    async fn look_up(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        let segments = self.segments.min(self.ahead.len());
        let segments: Vec<(Segment, u32)> = self.ahead.drain(..segments).collect();
        self.segments = (GROWTH * self.segments).min(MOST_SEGMENTS);
        let words = segments
            .iter()
            .flat_map(|(segment, _)| self.words.of_segment(segment.id));
        let words: Vec<Word<'_>> = words.collect();
        let in_each = words.len() / segments.len().max(1);
        let postings = reader.frequencies(&words).await?;
        let mut words = words
            .into_iter()
            .zip(postings)
            .map(|(word, posting)| Known { word, posting });
        let mut chosen = Vec::with_capacity(segments.len());
        for (segment, below) in segments {
            let words = words.by_ref().take(in_each).collect();
            if let Some((all, any)) = self.words.choose(segment.files, words, self.thorough) {
                chosen.push((segment, below, all, any));
            }
        }
        let words = chosen
            .iter_mut()
            .flat_map(|(_, _, all, any)| all.iter_mut().chain(any));
        let unread: Vec<&mut Known<'_>> = words
            .filter(|word| word.posting.positions.is_none())
            .collect();
        if !unread.is_empty() {
            let words: Vec<Word<'_>> = unread.iter().map(|known| known.word).collect();
            let postings = reader.positions(&words).await?;
            for (known, posting) in unread.into_iter().zip(postings) {
                known.posting = posting;
            }
        }
        for (segment, below, all, any) in chosen {
            let positions = in_all(&all, &any, below);
            if !positions.is_empty() {
                self.ready.push_back((segment, positions));
            }
        }
        Ok(())
    }
}

/// The positions below one that are in all of some postings and in one of others, where there are
/// any.
fn in_all(all: &[Known<'_>], any: &[Known<'_>], below: u32) -> RoaringBitmap {
    let positions = |known: &Known<'_>| known.posting.positions.clone();
    let mut sets: Vec<_> = all.iter().filter_map(positions).collect();
    // The smallest first: what is left gets no larger.
    sets.sort_unstable_by_key(|set| set.len());
    let any: Vec<_> = any.iter().filter_map(positions).collect();
    let one_of = (!any.is_empty()).then(|| any.iter().map(|set| &**set).union());
    let mut sets = sets.iter();
    let mut left = match (one_of, sets.next()) {
        (Some(one_of), Some(first)) => &**first & one_of,
        (Some(one_of), None) => one_of,
        (None, Some(first)) => (**first).clone(),
        (None, None) => {
            let mut all = RoaringBitmap::new();
            all.insert_range(..below);
            all
        }
    };
    for set in sets {
        left &= &**set;
    }
    left.remove_range(below..);
    left
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const FILES: u32 = 1_600;

    fn words(part: &[&str], all: &[&str], any: &[&str]) -> Words {
        let texts = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect();
        Words {
            part: texts(part),
            all: texts(all),
            any: texts(any),
        }
    }

    fn known(text: &str, frequency: u32) -> Known<'_> {
        let (word, positions) = (Word { segment: 1, text }, None);
        let posting = Posting {
            frequency,
            positions,
        };
        Known { word, posting }
    }

    fn chosen(words: &Words, frequencies: &[u32], thorough: bool) -> Option<[Vec<String>; 2]> {
        let of_segment = words.of_segment(1).zip(frequencies);
        let of_segment = of_segment.map(|(word, frequency)| known(word.text, *frequency));
        let (all, any) = words.choose(FILES, of_segment.collect(), thorough)?;
        let sorted = |words: Vec<Known<'_>>| {
            let words = words.into_iter().map(|known| known.word.text.to_owned());
            let mut words: Vec<String> = words.collect();
            words.sort();
            words
        };
        Some([sorted(all), sorted(any)])
    }

    #[test]
    fn the_rarest_words_of_a_part_are_looked_up_and_all_others() {
        let words = words(&["a", "b", "c", "d", "e", "f"], &["g"], &["h", "i"]);
        let choice = |frequencies: [u32; 9], thorough| {
            chosen(&words, &frequencies, thorough).map(|choice| choice.map(|words| words.concat()))
        };
        let found = |all: &str, any: &str| Some([all.to_owned(), any.to_owned()]);
        // So many that less than one file would be left,
        assert_eq!(
            choice([155, 99, 160, 160, 160, 150, 800, 1, 1], false),
            found("abfg", "hi")
        );
        // fewer where they are rarer,
        assert_eq!(
            choice([5, 99, 3, 1, 2, 4, 800, 1, 1], false),
            found("deg", "hi")
        );
        // none that half of the files have but where there is no other,
        assert_eq!(
            choice([900, 50, 800, 60, 850, 900, 800, 1, 1], false),
            found("bdg", "hi")
        );
        assert_eq!(
            choice([900, 800, 700, 800, 900, 999, 1, 1, 0], false),
            found("cg", "h")
        );
        // and all of them where those left too many. What all files have tells nothing.
        assert_eq!(
            choice([900, 5, 800, 3, 1_600, 9, 1_600, 1, 1], true),
            found("abcdf", "hi")
        );
    }

    #[test]
    fn a_segment_without_one_of_the_words_has_none_of_the_files() {
        let words = words(&["a", "b"], &["c"], &["d", "e"]);
        assert!(chosen(&words, &[1, 1, 1, 0, 1], false).is_some());
        for without in [
            [0, 1, 1, 1, 1],
            [1, 0, 1, 1, 1],
            [1, 1, 0, 1, 1],
            [1, 1, 1, 0, 0],
        ] {
            assert_eq!(chosen(&words, &without, false), None, "{without:?}");
        }
    }

    #[test]
    fn files_have_all_of_some_words_and_one_of_others() {
        let found = |all: &[&[u32]], any: &[&[u32]]| {
            let with = |positions: &&[u32]| {
                let mut known = known("abc", 1);
                known.posting.positions = Some(Arc::new(positions.iter().copied().collect()));
                known
            };
            let all: Vec<Known<'_>> = all.iter().map(with).collect();
            let any: Vec<Known<'_>> = any.iter().map(with).collect();
            in_all(&all, &any, 8).into_iter().collect::<Vec<u32>>()
        };
        let (some, others): (&[u32], &[u32]) = (&[1, 2, 3, 7], &[2, 3, 4, 7, 9]);
        let (one, two): (&[u32], &[u32]) = (&[2, 9], &[7]);
        assert_eq!(found(&[], &[]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(found(&[some], &[]), [1, 2, 3, 7]);
        assert_eq!(found(&[others, some], &[]), [2, 3, 7]);
        assert_eq!(found(&[], &[one, two]), [2, 7]);
        assert_eq!(found(&[some, others], &[two, one]), [2, 7]);
    }
}
