//! Lists, newest first, a page at a time.

use std::cmp::Reverse;

use labdata_domain::page::{Cursor, Page, PageRequest};

/// The page that is asked for, of things in any order; `place` tells where each stands.
pub(crate) fn page<T>(
    things: impl Iterator<Item = T>,
    request: PageRequest,
    place: impl Fn(&T) -> Cursor,
) -> Page<T> {
    let key = |thing: &T| {
        let Cursor { at, id } = place(thing);
        (at, id)
    };
    let mut items: Vec<T> = things
        .filter(|thing| {
            request
                .after
                .is_none_or(|after| key(thing) < (after.at, after.id))
        })
        .collect();
    items.sort_by_key(|thing| Reverse(key(thing)));
    let overfetched = request
        .limit
        .and_then(|limit| usize::try_from(limit).ok())
        .map_or(usize::MAX, |limit| limit.saturating_add(1));
    items.truncate(overfetched);
    Page::from_overfetched(items, request.limit, place)
}
