//! Ids of a path or a body that no record has.

use labdata_application::Error;
use labdata_domain::refusal::Resource;
use labdata_request_body::readers::MaybeId;

/// Refuses a text that cannot be an id with 404.
pub trait OrNotFound<T> {
    /// The id.
    ///
    /// # Errors
    /// `NotFound` for a text that is no UUID.
    fn or_not_found(self, resource: Resource) -> Result<T, Error>;
}

impl<T> OrNotFound<T> for MaybeId<T> {
    fn or_not_found(self, resource: Resource) -> Result<T, Error> {
        self.known().ok_or_else(|| Error::not_found(resource))
    }
}
