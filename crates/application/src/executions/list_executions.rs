//! Lists executions.

use labdata_domain::{
    executions::Execution,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::executions::ExecutionFilter;

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's executions that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `Unavailable` if others take 10 s.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_executions(
    services: &Services,
    actor: &Actor,
    filter: &ExecutionFilter,
    page: PageRequest,
) -> Result<Held<Page<Execution>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let executions = &services.executions;
    let value = executions.list(actor.organization, filter, page).await?;
    Ok(Held { value, slots })
}
