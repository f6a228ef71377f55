//! Undoes what an execution did.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    catalog::Catalog,
    data::{
        restore::OnConflict,
        revert::{Blocker, RevertReport},
    },
    ids::{ExecutionId, JobId},
    jobs::JobName,
    page::PageRequest,
    people::{actor::Actor, rights::TableNotYours, run_key::GuardedAction, scope::Scope},
    refusal::{ErrorCode, Refusal},
    trash::TrashKind,
};
use labdata_ports::data::{Attribution, Restore, RevertError, RevertRequest, WriteTarget};
use time::OffsetDateTime;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::visible::{require_writable, visible_catalog},
    data::write_data::redacted,
    maintenance::disk_reserve::require_reserve,
};

/// Maximum number of entries of the trash among which the names of tables are looked for.
const MAX_TRASH_ENTRIES: u32 = 1000;

/// The revert to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevertExecution {
    /// Reports what it would do, or refuses where it would, and changes nothing.
    pub dry_run: bool,
    /// Restores what the execution replaced and deleted, too, with this treatment of what others changed
    /// since.
    pub restore: Option<OnConflict>,
}

/// Deletes the rows that the execution created, and their series, in one transaction; with `restore`
/// everything that it changed becomes what it was before. What cannot be undone is said in the report's
/// warnings.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when the execution is not the
/// organization's; `Invalid` when rows of others reference created rows, or on conflicts that are to refuse.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revert_execution(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
    command: RevertExecution,
) -> Result<RevertReport, Error> {
    actor.require(Scope::Write)?;
    // A plain revert gives space back.
    if command.restore.is_some() {
        require_reserve(services)?;
    }
    actor.may(GuardedAction::RevertExecution(id))?;
    let execution = services.executions.get(actor.organization, id).await?;
    let catalog = visible_catalog(services, actor).await?;
    let former = check_rights(services, actor, &catalog, id).await?;
    let now = services.clock.now();
    let undo = undo(services, actor, now);
    let request = RevertRequest {
        execution: id,
        user: actor.user,
        api_key: Some(actor.api_key),
        rights: actor.rights.clone(),
        now,
        dry_run: command.dry_run,
        restore: command
            .restore
            .map(|on_conflict| Restore { on_conflict, undo }),
    };
    let reverted = if command.dry_run {
        let previewed = services.data.revert(actor.organization, &request).await;
        previewed.map_err(refusal)
    } else {
        let reverted = audited(services, actor, |within| async move {
            let reverted = within.data.revert(actor.organization, &request).await;
            let report = reverted.map_err(refusal)?;
            let record = reverted_record(id, execution.job_name, &report);
            Ok((report, Some(record)))
        });
        reverted.await
    };
    let report = reverted.map_err(|error| redacted(&catalog, error))?;
    with_trash_warnings(services, actor, without_names(report, &former)).await
}

fn reverted_record(id: ExecutionId, job_name: String, report: &RevertReport) -> Record {
    let target = AuditTarget::new(AuditTargetKind::Execution, id, job_name);
    Record::of(AuditAction::ExecutionReverted, target)
        .with("deleted_count", report.deleted_count)
        .with("raws_deleted_count", report.raws_deleted_count)
        .with("restored_count", report.restored_count)
        .with("raws_restored_count", report.raws_restored_count)
        .with(
            "annotations_deleted_count",
            report.annotations_deleted_count,
        )
}

/// Warns of tables in the trash; those that the caller may not see are not named.
async fn with_trash_warnings(
    services: &Services,
    actor: &Actor,
    report: RevertReport,
) -> Result<RevertReport, Error> {
    if report.in_trash.is_empty() || actor.rights.see_everything() {
        return Ok(report.with_trash_warnings(|_| true));
    }
    let page = PageRequest {
        limit: Some(MAX_TRASH_ENTRIES),
        after: None,
    };
    let entries = services.trash.list(actor.organization, page).await?.items;
    Ok(report.with_trash_warnings(|name| {
        let mut entries = entries.iter();
        entries.any(|entry| {
            entry.kind == TrashKind::Table
                && entry.name == name
                && entry.is_visible_to(&actor.rights)
        })
    }))
}

/// The report without the names of former tables.
fn without_names(report: RevertReport, former: &[String]) -> RevertReport {
    let warnings = report.warnings.into_iter().map(|warning| {
        let names = former.iter().map(|name| format!("\"{name}\""));
        names.fold(warning, |warning, name| {
            warning.replace(&name, "a former table")
        })
    });
    RevertReport {
        warnings: warnings.collect(),
        ..report
    }
}

/// Refuses to undo what was written to tables that the caller may not write. Returns the names of former tables,
/// which are an administrator's to see: whose they were is not known any more.
async fn check_rights(
    services: &Services,
    actor: &Actor,
    catalog: &Catalog,
    id: ExecutionId,
) -> Result<Vec<String>, Error> {
    let mut former = Vec::new();
    if actor.rights.see_everything() {
        return Ok(former);
    }
    let changes = services.data.changes(actor.organization, id).await?;
    for name in changes.tables.into_keys() {
        match catalog.table(&name) {
            Some(table) => require_writable(actor, table)?,
            // Former tables have no rows to undo, but hidden ones do.
            None if catalog.hidden().iter().any(|table| table.name == name) => {
                return Err(Error::refused(TableNotYours::Reverted));
            }
            None => former.push(name),
        }
    }
    Ok(former)
}

/// The execution of what a revert changes.
fn undo(services: &Services, actor: &Actor, now: OffsetDateTime) -> Attribution {
    Attribution {
        target: WriteTarget::New {
            execution: ExecutionId::new(services.ids.next_id()),
            job_name: JobName::revert(),
            job: JobId::new(services.ids.next_id()),
        },
        user: actor.user,
        api_key: actor.api_key,
        rights: actor.rights.clone(),
        now,
        source: None,
    }
}

fn refusal(error: RevertError) -> Error {
    match error {
        RevertError::Blocked(blockers) => {
            Refusal::invalid(ErrorCode::RevertBlocked, Blocker::describe(&blockers)).into()
        }
        RevertError::Conflicts(conflicts) => {
            Refusal::invalid(ErrorCode::RevertBlocked, conflicts.join("; ")).into()
        }
        RevertError::OutOfReach(refusal) => Error::refused(refusal),
        RevertError::Port(error) => error.into(),
    }
}
