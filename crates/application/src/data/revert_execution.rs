//! Undoes what an execution created.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    data::revert::{Blocker, RevertReport},
    ids::ExecutionId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::{ErrorCode, Refusal},
};
use labdata_ports::data::{RevertError, RevertRequest};

use super::execution_changes::{ChangesReport, execution_changes};
use crate::{
    Error, Services,
    audit::record::{Record, audited},
};

/// Deletes the rows that the execution created, and their series, in one transaction. What cannot
/// be undone is said in the report's warnings.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when the execution is not the
/// organization's; `Invalid` when rows of others reference created rows.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revert_execution(
    ports: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<RevertReport, Error> {
    revert(ports, actor, id, false).await
}

/// Shows what a revert would be about, and refuses where it would. Nothing is changed.
///
/// # Errors
/// Those of [`revert_execution`]; `Forbidden` without the read scope too.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn preview_revert(
    ports: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<ChangesReport, Error> {
    revert(ports, actor, id, true).await?;
    execution_changes(ports, actor, id).await
}

async fn revert(
    ports: &Services,
    actor: &Actor,
    id: ExecutionId,
    dry_run: bool,
) -> Result<RevertReport, Error> {
    actor.require(Scope::Write)?;
    // No check of the disk's reserve: a revert gives space back.
    actor.may(GuardedAction::RevertExecution(id))?;
    let execution = ports.executions.get(actor.organization, id).await?;
    let request = RevertRequest {
        execution: id,
        user: actor.user,
        api_key: Some(actor.api_key),
        now: ports.clock.now(),
        dry_run,
    };
    if dry_run {
        let previewed = ports.data.revert(actor.organization, &request).await;
        return previewed.map_err(refusal);
    }
    audited(ports, actor, |within| async move {
        let reverted = within.data.revert(actor.organization, &request).await;
        let report = reverted.map_err(refusal)?;
        let target = AuditTarget::new(AuditTargetKind::Execution, id, execution.job_name);
        let record = Record::of(AuditAction::ExecutionReverted, target)
            .with("deleted_count", report.deleted_count)
            .with("raws_deleted_count", report.raws_deleted_count);
        Ok((report, Some(record)))
    })
    .await
}

fn refusal(error: RevertError) -> Error {
    match error {
        RevertError::Blocked(blockers) => {
            Refusal::invalid(ErrorCode::RevertBlocked, Blocker::describe(&blockers)).into()
        }
        RevertError::Port(error) => error.into(),
    }
}
