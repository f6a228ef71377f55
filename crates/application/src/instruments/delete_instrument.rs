//! Deletes an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::InstrumentInUse,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// Deletes an instrument to which nothing refers.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` while files or
/// triggers refer to it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_instrument(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    if services.instruments.delete(actor.organization, id).await? {
        Ok(())
    } else {
        Err(Error::refused(InstrumentInUse))
    }
}
