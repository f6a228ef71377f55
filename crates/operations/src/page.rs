//! `limit` and `cursor`, which every list takes.

use labdata_domain::page::{DEFAULT_LIMIT, PageRequest};
use labdata_request_body::{fields::page, shape};

shape! {
    /// The query string of a list without filters. A list with filters has a field
    /// `page: PageRequest = page(Some(DEFAULT_LIMIT))` beside them.
    #[derive(Clone, Copy, Debug)]
    pub struct PageQuery {
        /// The page that is asked for.
        pub page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}
