//! Reads one execution.

use labdata_domain::{
    executions::Execution,
    ids::ExecutionId,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// One of the organization's executions.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_execution(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<Execution, Error> {
    actor.require(Scope::Read)?;
    Ok(services.executions.get(actor.organization, id).await?)
}
