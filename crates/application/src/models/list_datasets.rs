//! Lists datasets.

use labdata_domain::{
    models::Dataset,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use super::visible_datasets::visible_tables;
use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's datasets that name no table which is hidden from the caller, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_datasets(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Held<Page<Dataset>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let visible = visible_tables(services, actor).await?;
    let datasets = &services.datasets;
    let value = datasets.list(actor.organization, &visible, page).await?;
    Ok(Held { value, slots })
}
