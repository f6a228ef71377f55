//! Writes rows and series in one transaction, attributed to one execution.

use labdata_domain::{
    catalog::Catalog,
    data::write::{Problem, WriteOutcome, WriteRequest, check},
    ids::{ExecutionId, JobId},
    jobs::JobName,
    keys::{actor::Actor, scope::Scope},
};
use labdata_ports::{
    PortError,
    data::{Attribution, WriteError, WriteTarget},
};

use crate::{Error, Ports};

/// How often a write is planned anew because the tables changed under it.
const MAX_PLANS: usize = 10;

/// The write to do.
#[derive(Clone, Debug, Default)]
pub struct WriteData {
    /// Rows and series.
    pub request: WriteRequest,
    /// The execution to record it under, as the caller wrote it; else one is created.
    pub job_execution_id: Option<String>,
    /// The job of a created execution; the default job unless given.
    pub job_name: Option<String>,
}

/// Checks, plans and applies a write: all of it, or nothing.
///
/// # Errors
/// [`Error::Forbidden`] without the write scope; [`Error::NotFound`] when the execution is not the
/// organization's; [`Error::Problems`] with every problem of the request; [`Error::Busy`] when
/// other writes hold its rows too long.
pub async fn write_data(
    ports: &Ports,
    actor: &Actor,
    command: WriteData,
) -> Result<WriteOutcome, Error> {
    actor.require(Scope::Write)?;
    let WriteData {
        request,
        job_execution_id,
        job_name,
    } = command;
    let target = choose_target(ports, actor, job_execution_id, job_name).await?;
    let attribution = Attribution {
        target,
        user: actor.user,
        api_key: actor.api_key,
        now: ports.clock.now(),
    };
    // The tables as they were a while ago do for most writes, and save asking. What they forbid is
    // judged again by the tables as they are.
    let mut catalog = ports.catalog.recent(actor.organization).await?;
    let mut is_current = false;
    let mut request = Some(request);
    for attempt in 1..=MAX_PLANS {
        // Tables rarely change under a write: only then is the request needed twice.
        let this = if attempt == MAX_PLANS {
            request.take()
        } else {
            request.clone()
        };
        let problems = match plan_and_apply(
            ports,
            actor,
            this.unwrap_or_default(),
            &catalog,
            &attribution,
        )
        .await
        {
            Ok(outcome) => return Ok(outcome),
            Err(Stop::Plan(problems)) => Some(problems),
            Err(Stop::Write(
                WriteError::CatalogChanged | WriteError::Port(PortError::Conflict(_)),
            )) => None,
            Err(Stop::Write(error)) => return Err(refusal(error)),
        };
        if let Some(problems) = problems {
            if is_current {
                return Err(Error::Problems(problems));
            }
            let current = ports.catalog.snapshot(actor.organization).await?;
            if current.version == catalog.version {
                return Err(Error::Problems(problems));
            }
            catalog = current;
        } else {
            catalog = ports.catalog.snapshot(actor.organization).await?;
        }
        is_current = true;
    }
    Err(Error::Busy {
        retry_after_seconds: 1,
    })
}

fn refusal(error: WriteError) -> Error {
    match error {
        WriteError::Problems(problems) => Error::Problems(problems),
        WriteError::ExecutionNotFound => Error::NotFound("job execution"),
        WriteError::ExecutionEnded(status) => ended(&status),
        WriteError::CatalogChanged => Error::Busy {
            retry_after_seconds: 1,
        },
        WriteError::Port(error) => error.into(),
    }
}

/// The answer to a write under an execution that takes none any more.
fn ended(status: &str) -> Error {
    Error::Problems(vec![Problem::at(
        "job_execution_id",
        format!("this execution is {status} and accepts no writes"),
    )])
}

async fn choose_target(
    ports: &Ports,
    actor: &Actor,
    job_execution_id: Option<String>,
    job_name: Option<String>,
) -> Result<WriteTarget, Error> {
    // Everything that a platform-run script writes belongs to its execution.
    let given = match job_execution_id {
        Some(id) => Some(
            id.parse::<ExecutionId>()
                .map_err(|_| Error::NotFound("job execution"))?,
        ),
        None => actor.execution,
    };
    if let Some(id) = given {
        // Before the rows are looked at: an unknown execution is 404 whatever the rows are.
        let execution = ports.executions.get(actor.organization, id).await?;
        if !execution.state.is_open(ports.clock.now()) {
            return Err(ended(execution.state.expire(ports.clock.now()).as_str()));
        }
        return Ok(WriteTarget::Existing(id));
    }
    let job_name = match job_name {
        Some(name) => JobName::parse(&name)
            .map_err(|error| Error::Problems(vec![Problem::at("job_name", error.to_string())]))?,
        None => JobName::default_job(),
    };
    Ok(WriteTarget::New {
        execution: ExecutionId::new(ports.ids.next_id()),
        job_name,
        job: JobId::new(ports.ids.next_id()),
    })
}

/// Where a write stopped.
enum Stop {
    /// By the picture of the tables that it was planned with.
    Plan(Vec<Problem>),
    /// By the tables themselves.
    Write(WriteError),
}

async fn plan_and_apply(
    ports: &Ports,
    actor: &Actor,
    request: WriteRequest,
    catalog: &Catalog,
    attribution: &Attribution,
) -> Result<WriteOutcome, Stop> {
    let checked = check(request, catalog);
    let answers = ports
        .data
        .answer(actor.organization, checked.questions())
        .await
        .map_err(|error| Stop::Write(error.into()))?;
    let plan = checked
        .plan(&answers, &mut || ports.ids.next_id())
        .map_err(Stop::Plan)?;
    ports
        .data
        .write(actor.organization, &plan, attribution)
        .await
        .map_err(Stop::Write)
}
