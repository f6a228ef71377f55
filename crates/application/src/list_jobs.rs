//! Lists jobs.

use labdata_domain::{
    actor::Actor,
    job::Job,
    page::{Page, PageRequest},
    scope::Scope,
};
use labdata_ports::jobs::JobFilter;

use crate::{Error, Ports};

/// The organization's jobs that match, newest first.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope.
pub async fn list_jobs(
    ports: &Ports,
    actor: &Actor,
    filter: &JobFilter,
    page: PageRequest,
) -> Result<Page<Job>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.jobs.list(actor.organization, filter, page).await?)
}
