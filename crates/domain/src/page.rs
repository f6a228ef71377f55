//! Keyset pagination: lists are read page by page from a position in a total order, newest first.

use std::cmp::Reverse;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use time::OffsetDateTime;
use uuid::Uuid;

/// Default number of items of a page.
pub const DEFAULT_LIMIT: u32 = 50;
/// Maximum number of items of a page.
pub const MAX_LIMIT: u32 = 1000;

/// Position in a list that is ordered by creation time, then id, newest first; the next page starts
/// after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Creation time of the last item seen, to the microsecond.
    pub at: OffsetDateTime,
    /// Id.
    pub id: Uuid,
}

impl Cursor {
    const fn order(&self) -> (OffsetDateTime, Uuid) {
        (self.at, self.id)
    }

    /// Encodes the cursor as an opaque, URL-safe text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend_from_slice(&self.at.unix_timestamp_nanos().to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a text written by [`Cursor::encode`]; `None` for any other text.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let bytes: [u8; 32] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (at, id) = bytes.split_at(16);
        Some(Self {
            at: OffsetDateTime::from_unix_timestamp_nanos(i128::from_be_bytes(at.try_into().ok()?))
                .ok()?,
            id: Uuid::from_slice(id).ok()?,
        })
    }
}

/// Request for a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Maximum number of items; `None` for all that match (only where the contract says so).
    pub limit: Option<u32>,
    /// The page starts after this position.
    pub after: Option<Cursor>,
}

/// Page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Start of the next page, if more items follow.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Makes a page from up to `limit + 1` items: the extra one only shows that more follow.
    #[must_use]
    pub fn from_overfetched(
        mut items: Vec<T>,
        limit: Option<u32>,
        place: impl Fn(&T) -> Cursor,
    ) -> Self {
        let limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX);
        // One item beyond the limit proves that there is a next page; a count would read all rows.
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(place) } else { None };
        Self { items, next }
    }

    /// Makes a page from all items, in any order, of a list that is short enough to be read as a whole.
    #[must_use]
    pub fn of_all(mut items: Vec<T>, request: PageRequest, place: impl Fn(&T) -> Cursor) -> Self {
        let order = |item: &T| Reverse(place(item).order());
        items.sort_by_key(order);
        if let Some(after) = request.after {
            items.retain(|item| place(item).order() < after.order());
        }
        Self::from_overfetched(items, request.limit, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_garbage_does_not() {
        let cursor = Cursor {
            at: OffsetDateTime::UNIX_EPOCH,
            id: Uuid::from_u128(7),
        };
        assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        assert_eq!(Cursor::decode("x"), None);
        assert_eq!(Cursor::decode(&"A".repeat(10_000)), None);
    }

    #[test]
    fn pages_of_a_short_list_hold_each_item_once_newest_first() {
        let cursor = |second, id| Cursor {
            at: OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(second),
            id: Uuid::from_u128(id),
        };
        let all = vec![cursor(1, 2), cursor(2, 1), cursor(1, 1), cursor(3, 9)];
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let limit = Some(2);
            let page = Page::of_all(all.clone(), PageRequest { limit, after }, |it| *it);
            seen.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let expected = [cursor(3, 9), cursor(2, 1), cursor(1, 2), cursor(1, 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_page_has_a_next_one_only_while_more_items_follow() {
        let place = |item: &u128| Cursor {
            at: OffsetDateTime::UNIX_EPOCH,
            id: Uuid::from_u128(*item),
        };
        let page = |items: Vec<u128>, limit| Page::from_overfetched(items, limit, place);
        let more = page(vec![1, 2, 3], Some(2));
        assert_eq!((more.items, more.next), (vec![1, 2], Some(place(&2))));
        let full = page(vec![1, 2], Some(2));
        assert_eq!((full.items, full.next), (vec![1, 2], None));
        let partial = page(vec![1], Some(2));
        assert_eq!((partial.items, partial.next), (vec![1], None));
        let unlimited = page(vec![1, 2, 3], None);
        assert_eq!((unlimited.items, unlimited.next), (vec![1, 2, 3], None));
    }
}
