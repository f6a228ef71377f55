//! Undoes what an execution created.

use labdata_domain::{
    data::revert::{Blocker, RevertReport},
    ids::ExecutionId,
    keys::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::data::RevertError;

use crate::{Error, Ports};

/// Deletes the rows that the execution created, and their series, in one transaction. What cannot
/// be undone is said in the report's warnings.
///
/// # Errors
/// [`Error::Forbidden`] without the write scope; [`Error::NotFound`] when the execution is not the
/// organization's; [`Error::Invalid`] when rows of others reference created rows.
pub async fn revert_execution(
    ports: &Ports,
    actor: &Actor,
    id: ExecutionId,
) -> Result<RevertReport, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::RevertExecution(id))?;
    ports.executions.get(actor.organization, id).await?;
    match ports
        .data
        .revert(actor.organization, id, ports.clock.now())
        .await
    {
        Ok(report) => Ok(report),
        Err(RevertError::Blocked(blockers)) => Err(Error::Invalid(Blocker::describe(&blockers))),
        Err(RevertError::Port(error)) => Err(error.into()),
    }
}
