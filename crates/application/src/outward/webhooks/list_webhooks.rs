//! Lists webhooks.

use labdata_domain::{
    outward::webhooks::Webhook,
    page::{Page, PageRequest},
    people::actor::Actor,
};

use super::require_administration;
use crate::{Error, Services};

/// The organization's webhooks, newest first.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_webhooks(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Webhook>, Error> {
    require_administration(actor)?;
    Ok(services.webhooks.list(actor.organization, page).await?)
}
