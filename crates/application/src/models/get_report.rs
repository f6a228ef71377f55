//! Renders the report of a trained model.

use labdata_domain::{
    ids::ModelId,
    models::report_page,
    people::{actor::Actor, scope::Scope},
};

use super::{get_result::get_result, visible_datasets::find_visible_dataset};
use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The report of a ready version as an HTML page: that of the number, or else the active one.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a version
/// that is not ready.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_report(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<Held<String>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Result, actor).await?;
    let (version, result) = get_result(services, actor, id, number).await?;
    let dataset = find_visible_dataset(services, actor, version.dataset).await?;
    let value = report_page(&version, dataset.as_ref(), &result);
    Ok(Held { value, slots })
}
