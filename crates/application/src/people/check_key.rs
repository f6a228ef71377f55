//! Checks the key of a caller who was authenticated some time ago.

use labdata_domain::people::{actor::Actor, credential::InvalidCredential};
use labdata_ports::PortError;

use crate::{Error, Services};

/// Checks that the caller's key is still valid, for work that outlives the request that began it. Returns
/// the caller with the rights of now.
///
/// # Errors
/// `Unauthenticated` if it has been revoked or has expired, or its user is disabled.
pub(crate) async fn check_key(services: &Services, actor: &Actor) -> Result<Actor, Error> {
    let found = services
        .api_keys
        .get(actor.organization, actor.api_key)
        .await;
    match found {
        Ok(found) if found.is_valid(services.clock.now()) => Ok(found.actor()),
        // From outside, an unknown and an invalid key look the same.
        Ok(_) | Err(PortError::NotFound(_)) => Err(Error::refused(InvalidCredential::Key)),
        Err(error) => Err(error.into()),
    }
}
