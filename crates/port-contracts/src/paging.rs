//! Reading of lists page by page.

use std::fmt::Debug;

use labdata_domain::page::{Cursor, Page, PageRequest};
use labdata_ports::PortError;

/// Requests the whole list in one page.
pub const ALL: PageRequest = PageRequest {
    limit: None,
    after: None,
};

/// Requests the first page of `limit` items.
#[must_use]
pub const fn first(limit: u32) -> PageRequest {
    PageRequest {
        limit: Some(limit),
        after: None,
    }
}

/// Reads a list to its end, `limit` items a page. `read` gets the page's number and request, and
/// may change the list after it has read the page.
pub async fn read_to_the_end<T>(
    limit: u32,
    mut read: impl AsyncFnMut(usize, PageRequest) -> Result<Page<T>, PortError>,
) -> Vec<T> {
    let mut items = Vec::new();
    let mut after: Option<Cursor> = None;
    for number in 0..1000 {
        let page = read(
            number,
            PageRequest {
                limit: Some(limit),
                after,
            },
        )
        .await
        .unwrap();
        let full = usize::try_from(limit).unwrap();
        assert!(
            page.items.len() <= full,
            "a page holds at most {limit} items"
        );
        assert!(
            page.next.is_none() || page.items.len() == full,
            "a page that is not the last one is full"
        );
        items.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return items,
        }
    }
    panic!("the list has no end");
}

/// Fails unless a list reads as expected with each of these numbers of items a page.
pub async fn assert_pages<T: Debug + PartialEq>(
    limits: impl IntoIterator<Item = u32>,
    expected: &[T],
    mut read: impl AsyncFnMut(PageRequest) -> Result<Page<T>, PortError>,
) {
    for limit in limits {
        let items = read_to_the_end(limit, async |_, page| read(page).await).await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
}
