//! Writes rows and series in one transaction, attributed to one execution.

use labdata_domain::{
    catalog::Catalog,
    conflict::Conflict,
    data::write::{MAX_ROWS, Problem, Reason, WriteOutcome, WriteRequest, check_up_to},
    ids::{ExecutionId, FileId, JobId},
    jobs::JobName,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::{Refusal, Refuse, Resource},
};
use labdata_ports::{
    PortError,
    data::{Attribution, WriteError, WriteTarget},
};

use super::{import_file::StoredFile, plans::MAX_PLANS};
use crate::{
    Error, Services,
    catalog::visible::{recently_visible_catalog, require_writable, visible_catalog},
    maintenance::disk_reserve::require_reserve,
    slots::{Held, Slot, Work},
};

/// The write to do.
#[derive(Clone, Debug, Default)]
pub struct WriteData {
    /// The rows and series.
    pub request: WriteRequest,
    /// Id of the execution to record it under; one is created if it is missing.
    pub job_execution_id: Option<String>,
    /// The job of a created execution; the default job unless given.
    pub job_name: Option<String>,
    /// Maximum number of rows, [`MAX_ROWS`] unless given.
    pub max_rows: Option<usize>,
}

/// Checks, plans and applies a write: all of it, or nothing.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when the execution is not the
/// organization's; [`Error::Problems`] with every problem of the request; `Busy` when
/// other writes hold its rows too long; `Unavailable` when other results that are returned take all
/// slots.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn write_data(
    services: &Services,
    actor: &Actor,
    command: WriteData,
) -> Result<Held<WriteOutcome, Option<Slot>>, Error> {
    let (outcome, _) = write_from(services, actor, command, None).await?;
    Ok(outcome)
}

/// Applies a write whose rows come from a file, which becomes a file of the execution. Returns the id
/// of that file.
pub(super) async fn write_from(
    services: &Services,
    actor: &Actor,
    command: WriteData,
    source: Option<&StoredFile>,
) -> Result<(Held<WriteOutcome, Option<Slot>>, Option<FileId>), Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    let planned = PlannedWrite {
        request: command.request,
        max_rows: command.max_rows.unwrap_or(MAX_ROWS),
    };
    let target = choose_target(services, actor, command.job_execution_id, command.job_name).await?;
    let source = source.map(|source| source.record(services, target.execution()));
    let slots = result_slot(services, actor, &planned.request).await?;
    let attribution = Attribution {
        source: source.transpose()?,
        target,
        user: actor.user,
        api_key: actor.api_key,
        rights: actor.rights.clone(),
        now: services.clock.now(),
    };
    // A cached snapshot suits most writes. Problems found with it are checked with a current one.
    let mut catalog = recently_visible_catalog(services, actor).await?;
    let mut is_current = false;
    for _ in 0..MAX_PLANS {
        let stop = match plan_and_apply(services, actor, &planned, &catalog, &attribution).await {
            Ok(value) => {
                let shown = value.table_names();
                let shown = shown.filter_map(|name| Some(catalog.table(name)?.identity()));
                services.shown_tables.add(shown);
                let file = attribution.source.as_ref().map(|source| source.file.id);
                return Ok((Held { value, slots }, file));
            }
            Err(stop) => stop,
        };
        let current = match stop {
            Stop::Failed(error) => return Err(redacted(&catalog, error)),
            Stop::Problems(problems) if is_current => return Err(Error::Problems(problems)),
            Stop::Forbidden(error) if is_current => return Err(error),
            // Who may write may have changed since the cached snapshot.
            Stop::Forbidden(_) | Stop::CatalogChanged => visible_catalog(services, actor).await?,
            Stop::Problems(problems) => {
                let current = visible_catalog(services, actor).await?;
                // The cached snapshot was current, so a new plan would have the same problems.
                if current.version == catalog.version {
                    return Err(Error::Problems(problems));
                }
                current
            }
        };
        catalog = current;
        is_current = true;
    }
    Err(Error::busy())
}

/// A slot for the rows that a write returns, if it does.
async fn result_slot(
    services: &Services,
    actor: &Actor,
    request: &WriteRequest,
) -> Result<Option<Slot>, Error> {
    if !request.return_rows {
        return Ok(None);
    }
    let slot = services.slots.enter(Work::Result, actor).await?;
    Ok(Some(slot))
}

/// Returns the execution under which a write is recorded.
pub(crate) async fn choose_target(
    services: &Services,
    actor: &Actor,
    job_execution_id: Option<String>,
    job_name: Option<String>,
) -> Result<WriteTarget, Error> {
    // Everything that a platform-run script writes belongs to its execution.
    let given = match job_execution_id {
        Some(id) => Some(
            id.parse::<ExecutionId>()
                .map_err(|_| Error::not_found(Resource::Execution))?,
        ),
        None => actor.execution,
    };
    if let Some(id) = given {
        actor.may(GuardedAction::NameExecution(id))?;
        // Checked before the rows: an unknown execution is 404 even if the rows have problems.
        let execution = services.executions.get(actor.organization, id).await?;
        if !execution.state.is_open(services.clock.now()) {
            return Err(ended(execution.state.expire(services.clock.now()).as_str()));
        }
        return Ok(WriteTarget::Existing(id));
    }
    let job_name = match job_name {
        Some(name) => JobName::parse(&name).map_err(|error| {
            Error::Problems(vec![Problem::at(
                "job_name",
                Reason::new(error.code(), error.to_string()),
            )])
        })?,
        None => JobName::default_job(),
    };
    Ok(WriteTarget::New {
        execution: ExecutionId::new(services.ids.next_id()),
        job_name,
        // For the case that no job has the name.
        job: JobId::new(services.ids.next_id()),
    })
}

/// Reason why a write was not applied.
enum Stop {
    /// The request has problems, by the snapshot that it was planned with.
    Problems(Vec<Problem>),
    /// The tables have changed since that snapshot.
    CatalogChanged,
    /// The caller may not write a table, by the snapshot that it was planned with.
    Forbidden(Error),
    /// The write failed, by the current tables.
    Failed(Error),
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::Failed(match error {
            WriteError::CatalogChanged
            | WriteError::Port(PortError::Conflict(Conflict::TablesChanged)) => {
                return Self::CatalogChanged;
            }
            WriteError::Problems(problems) => Error::Problems(problems),
            // Who may write may have changed since the cached snapshot.
            WriteError::OutOfReach(refusal) => return Self::Forbidden(Error::refused(refusal)),
            WriteError::ExecutionNotFound => Error::not_found(Resource::Execution),
            WriteError::ExecutionEnded(status) => ended(&status),
            WriteError::InsufficientStorage(refusal) => refusal.into(),
            WriteError::Port(error) => error.into(),
        })
    }
}

/// Request to plan, perhaps several times.
struct PlannedWrite {
    request: WriteRequest,
    max_rows: usize,
}

async fn plan_and_apply(
    services: &Services,
    actor: &Actor,
    write: &PlannedWrite,
    catalog: &Catalog,
    attribution: &Attribution,
) -> Result<WriteOutcome, Stop> {
    check_rights(actor, &write.request, catalog).map_err(Stop::Forbidden)?;
    let checked = check_up_to(write.max_rows, &write.request, catalog);
    let results = services
        .data
        .look_up(actor.organization, checked.questions())
        .await
        .map_err(WriteError::from)?;
    let plan = checked
        .plan(&results, &mut || services.ids.next_id())
        .map_err(Stop::Problems)?;
    let outcome = services.data.write(actor.organization, &plan, attribution);
    outcome.await.map_err(|error| match error {
        WriteError::Problems(problems) => {
            Stop::Failed(Error::Problems(plan.locate_problems(problems)))
        }
        error => error.into(),
    })
}

/// Refuses tables that the caller may read, but not write. Hidden ones are unknown.
fn check_rights(actor: &Actor, request: &WriteRequest, catalog: &Catalog) -> Result<(), Error> {
    let rows = request.tables.iter().map(|write| &write.table);
    let names = rows.chain(request.series.iter().map(|write| &write.table));
    for table in names.filter_map(|name| catalog.table(name)) {
        require_writable(actor, table)?;
    }
    Ok(())
}

/// The same error without the names of tables that are hidden from the caller.
pub(crate) fn redacted(catalog: &Catalog, error: Error) -> Error {
    match error {
        Error::Problems(problems) => {
            let problems = problems.into_iter();
            let redacted = problems.map(|problem| Problem {
                message: catalog.redacted(&problem.message).into_owned(),
                ..problem
            });
            Error::Problems(redacted.collect())
        }
        Error::Refused(refusal) => Error::Refused(Refusal {
            message: catalog.redacted(&refusal.message).into_owned().into(),
            ..refusal
        }),
        other => other,
    }
}

/// The refusal of a write under an execution that has ended.
fn ended(status: &str) -> Error {
    Error::Problems(vec![Problem::execution_ended(status)])
}
