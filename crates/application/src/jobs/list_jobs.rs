//! Lists jobs.

use labdata_domain::{
    jobs::Job,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::jobs::JobFilter;

use crate::{Error, Services};

/// The organization's jobs that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_jobs(
    ports: &Services,
    actor: &Actor,
    filter: &JobFilter,
    page: PageRequest,
) -> Result<Page<Job>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.jobs.list(actor.organization, filter, page).await?)
}
