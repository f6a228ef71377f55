//! Creates a job.

use labdata_domain::{
    ids::{JobId, TriggerId},
    jobs::{Job, JobName, ParameterDefinition, ScriptVersion, check_parameters},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    triggers::{Conditions, InvalidTrigger, Trigger, TriggerChange},
};
use labdata_ports::PortError;

use crate::{
    Error, Services, jobs::check_script::CheckedScript, maintenance::disk_reserve::require_reserve,
};

/// The job to create.
#[derive(Clone, Debug)]
pub struct CreateJob {
    /// Its name, unique within the organization.
    pub name: String,
    /// Python source.
    pub script: CheckedScript,
    /// Description.
    pub description: Option<String>,
    /// Definitions of its parameters.
    pub parameters: Vec<ParameterDefinition>,
    /// Its trigger.
    pub trigger: TriggerChange,
}

/// Creates a job with the first version of its script.
///
/// # Errors
/// `Forbidden` without the write scope; `Invalid` when no job can bear the name,
/// the code is not Python, or parameters or trigger make no sense; `NotFound` for an
/// unknown instrument; `Conflict` when another job bears the name.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_job(
    services: &Services,
    actor: &Actor,
    command: CreateJob,
) -> Result<Job, Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    actor.may(GuardedAction::ChangeJob)?;
    // The key of a run is not narrowed: a script would reach tables that this key does not.
    actor.rights.require_all_tables().map_err(Error::refused)?;
    let name = parse_name(&command.name)?;
    check_parameters(&command.parameters).map_err(Error::refused)?;
    let id = JobId::new(services.ids.next_id());
    let trigger = change_trigger(services, actor, id, None, &command.trigger).await?;
    let code = command.script.accepted()?;
    let now = services.clock.now();
    let named = Job::new(id, name, now);
    let script = ScriptVersion {
        number: named.next_version(),
        code,
        created_at: now,
        created_by: actor.user,
    };
    let job = Job {
        description: command.description.filter(|text| !text.is_empty()),
        version_number: Some(script.number),
        parameters: command.parameters,
        trigger,
        ..named
    };
    services.jobs.add(actor.organization, &job, &script).await?;
    Ok(job)
}

/// The trigger of a job after a change, checked against what there is.
pub(crate) async fn change_trigger(
    services: &Services,
    actor: &Actor,
    job: JobId,
    stored: Option<&Trigger>,
    change: &TriggerChange,
) -> Result<Option<Trigger>, Error> {
    let id = TriggerId::new(services.ids.next_id());
    let changed = change
        .apply(job, stored, id, actor.user, services.clock.now())
        .map_err(Error::refused)?;
    let Some(trigger) = &changed else {
        return Ok(None);
    };
    if let Some(instrument) = trigger.instrument {
        services
            .instruments
            .get(actor.organization, instrument)
            .await?;
    }
    if let Ok(Conditions::JobCompleted(conditions)) = trigger.parsed() {
        match services
            .jobs
            .get(actor.organization, conditions.source)
            .await
        {
            Ok(_) => {}
            // A wrong id in the body makes the request invalid; 404 would be about the job itself.
            Err(PortError::NotFound(_)) => {
                let unknown = InvalidTrigger::UnknownSource(conditions.source);
                return Err(Error::refused(unknown));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(changed)
}

/// The name of a job.
pub(crate) fn parse_name(text: &str) -> Result<JobName, Error> {
    JobName::parse(text).map_err(Error::refused)
}
