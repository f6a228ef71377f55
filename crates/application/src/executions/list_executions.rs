//! Lists executions.

use labdata_domain::{
    executions::Execution,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::executions::ExecutionFilter;

use crate::{Error, Services};

/// The organization's executions that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_executions(
    ports: &Services,
    actor: &Actor,
    filter: &ExecutionFilter,
    page: PageRequest,
) -> Result<Page<Execution>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports
        .executions
        .list(actor.organization, filter, page)
        .await?)
}
