//! Creates ids of requests.

use uuid::Uuid;

use crate::Ports;

/// Returns a new id for a request whose client chose none.
#[must_use]
pub fn new_request_id(ports: &Ports) -> Uuid {
    ports.ids.next_id()
}
