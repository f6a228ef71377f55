//! Pages of lists that are ordered by a time, then an id, both descending.

use labdata_domain::page::PageRequest;

/// Number of rows to fetch: one more than the limit shows whether more follow.
pub(crate) fn overfetched(request: PageRequest) -> i64 {
    request.limit.map_or(i64::MAX, |limit| i64::from(limit) + 1)
}

/// Takes a page of a boxed query over columns of time and id. The first condition alone bounds
/// the range of an index; the second one leaves out what shares the cursor's time.
macro_rules! page_of {
    ($query:expr, $request:expr, $time:expr, $id:expr) => {{
        let query = match $request.after {
            Some(place) => $query
                .filter($time.le(place.at))
                .filter($time.lt(place.at).or($id.lt(place.id))),
            None => $query,
        };
        query
            .order(($time.desc(), $id.desc()))
            .limit($crate::database::paging::overfetched($request))
    }};
}
pub(crate) use page_of;
