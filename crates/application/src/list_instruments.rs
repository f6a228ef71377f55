//! Lists instruments.

use labdata_domain::{
    actor::Actor,
    instrument::Instrument,
    page::{Page, PageRequest},
    scope::Scope,
};

use crate::{Error, Ports};

/// The organization's instruments, newest first.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope.
pub async fn list_instruments(
    ports: &Ports,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Instrument>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.instruments.list(actor.organization, page).await?)
}
