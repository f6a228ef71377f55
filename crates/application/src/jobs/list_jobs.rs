//! Lists jobs.

use labdata_domain::{
    jobs::Job,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::jobs::JobFilter;

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's jobs that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `Unavailable` if others take 10 s.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_jobs(
    services: &Services,
    actor: &Actor,
    filter: &JobFilter,
    page: PageRequest,
) -> Result<Held<Page<Job>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = services.jobs.list(actor.organization, filter, page).await?;
    Ok(Held { value, slots })
}
