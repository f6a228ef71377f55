//! What a server remembers of segments. A segment does not change as long as it stands, and its
//! identifier is never given again, so what was once read of one stays true.

use std::{fmt, sync::Arc};

use quick_cache::{Equivalent, Weighter, sync::Cache};
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::Place;

/// How many bytes are remembered of lists of segments, of postings and of pages: the whole index of
/// about a million files.
const STANDING: u64 = 4 << 20;
const POSTINGS: u64 = 48 << 20;
const PAGES: u64 = 16 << 20;

/// What an entry takes beside its text and its positions or files, about, in bytes.
const ENTRY: usize = 192;

/// Which segments of an organization stand, the newest first.
#[derive(Debug)]
pub(super) struct Standing {
    /// What these segments have in common with no others.
    pub(super) version: i64,
    pub(super) segments: Vec<Segment>,
}

/// A segment: its files lie from the oldest to the newest place in the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) id: i64,
    pub(super) files: u32,
    pub(super) oldest: Place,
    pub(super) newest: Place,
}

/// How many files of a segment have a word, and in which positions they are, where that was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Posting {
    pub(super) frequency: u32,
    pub(super) positions: Option<Arc<RoaringBitmap>>,
}

/// A word of a segment.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Word<'w> {
    pub(super) segment: i64,
    pub(super) text: &'w str,
}

/// A word that is remembered; it hashes like a [`Word`].
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KeptWord {
    segment: i64,
    text: Box<str>,
}

impl Equivalent<KeptWord> for Word<'_> {
    fn equivalent(&self, kept: &KeptWord) -> bool {
        self.segment == kept.segment && *self.text == *kept.text
    }
}

impl From<Word<'_>> for KeptWord {
    fn from(word: Word<'_>) -> Self {
        Self {
            segment: word.segment,
            text: word.text.into(),
        }
    }
}

/// A page of a segment, by its number.
pub(super) type Page = (i64, u32);

/// The memory of one server; bounded, and shared by its connections.
pub(crate) struct Memory {
    pub(super) standing: Cache<Uuid, Arc<Standing>, Bytes>,
    pub(super) postings: Cache<KeptWord, Posting, Bytes>,
    pub(super) pages: Cache<Page, Arc<[Uuid]>, Bytes>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            standing: Cache::with_weighter(1_024, STANDING, Bytes),
            postings: Cache::with_weighter(1_024, POSTINGS, Bytes),
            pages: Cache::with_weighter(1_024, PAGES, Bytes),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.standing.weight() + self.postings.weight() + self.pages.weight();
        formatter
            .debug_struct("Memory")
            .field("bytes", &bytes)
            .finish()
    }
}

/// Entries weigh what they take in memory, about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes;

impl Weighter<Uuid, Arc<Standing>> for Bytes {
    fn weight(&self, _: &Uuid, standing: &Arc<Standing>) -> u64 {
        weight(size_of_val(standing.segments.as_slice()))
    }
}

impl Weighter<KeptWord, Posting> for Bytes {
    fn weight(&self, word: &KeptWord, posting: &Posting) -> u64 {
        let positions = posting.positions.as_deref();
        weight(word.text.len() + positions.map_or(0, RoaringBitmap::serialized_size))
    }
}

impl Weighter<Page, Arc<[Uuid]>> for Bytes {
    fn weight(&self, _: &Page, files: &Arc<[Uuid]>) -> u64 {
        weight(size_of_val(&**files))
    }
}

fn weight(bytes: usize) -> u64 {
    u64::try_from(ENTRY + bytes).unwrap_or(u64::MAX)
}
