//! Lists webhooks.

use labdata_domain::{
    outward::webhooks::Webhook,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// The organization's webhooks, newest first.
///
/// # Errors
/// `Forbidden` without the admin scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_webhooks(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Webhook>, Error> {
    actor.require(Scope::Admin)?;
    Ok(services.webhooks.list(actor.organization, page).await?)
}
