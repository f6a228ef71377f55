//! Lists instruments.

use labdata_domain::{
    instruments::Instrument,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// The organization's instruments, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_instruments(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Instrument>, Error> {
    actor.require(Scope::Read)?;
    Ok(services.instruments.list(actor.organization, page).await?)
}
