//! The index by which files are searched for a part of their path: confirmed files lie in segments,
//! runs of an organization's list, and of each word a segment knows the positions of the files that
//! have it. What was confirmed last is in no segment yet and is looked through. See docs/adr/0009.

mod build;
mod draft;
mod memory;
mod plan;
mod positions;
mod reader;
mod search;
mod walk;
mod words;

use time::OffsetDateTime;
use uuid::Uuid;

pub use build::Segments;
pub(crate) use build::index_new;
pub(crate) use memory::Memory;
pub(crate) use search::search;

/// A place in the list, which is ordered by it, the greatest first.
type Place = (OffsetDateTime, Uuid);

/// How many files a page of a segment has; a position tells the page and the number in it.
const PAGE: u16 = 64;
