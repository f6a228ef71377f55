//! Cancels a run.

use labdata_domain::{
    ids::AgentRunId,
    people::{actor::Actor, scope::Scope},
};

use super::Agent;
use crate::Error;

/// Cancels one of the caller's runs, on whichever server it is. It ends within seconds with what it has.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if no such run is in progress.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn cancel_run(agent: &Agent, actor: &Actor, id: AgentRunId) -> Result<(), Error> {
    actor.require(Scope::Read)?;
    let (organization, user) = (actor.organization, actor.user);
    Ok(agent.runs.cancel(organization, user, id).await?)
}
