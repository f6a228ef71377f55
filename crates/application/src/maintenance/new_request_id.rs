//! Creates ids of requests.

use uuid::Uuid;

use crate::Services;

/// Returns a new id for a request whose client chose none.
#[must_use]
pub fn new_request_id(services: &Services) -> Uuid {
    services.ids.next_id()
}
