//! Changes a job.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::JobId,
    jobs::{
        Edit, EditError, Job, ParameterDefinition, PublishStatus, ScriptChanged, ScriptVersion,
        apply_edits, check_parameters, normalized,
    },
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    triggers::{InvalidTrigger, TriggerChange},
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    jobs::{
        check_script::CheckedScript,
        create_job::{change_trigger, parse_name},
        get_job::with_script,
    },
    maintenance::disk_reserve::require_reserve,
};

/// Largest number of attempts at a change that races with others. One of them is stored in each
/// round.
const MAX_ATTEMPTS: u32 = 64;

/// A change of a job. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct UpdateJob {
    /// Its name.
    pub name: Option<String>,
    /// Description; an empty one removes it.
    pub description: Option<String>,
    /// Change of its script.
    pub code: Option<CodeChange>,
    /// True archives it, false restores it.
    pub archived: Option<bool>,
    /// Definitions of its parameters, which replace the current ones.
    pub parameters: Option<Vec<ParameterDefinition>>,
    /// Change of its trigger.
    pub trigger: TriggerChange,
    /// Status of the script's version after the change.
    pub publish_status: Option<PublishStatus>,
    /// Version of the script that the change is about: it is refused where another one is current.
    pub expected_version: Option<u32>,
}

/// A change of a script.
#[derive(Clone, Debug)]
pub enum CodeChange {
    /// It is this one from now on.
    Replace(String),
    /// These replacements are made in it, one after the other.
    Edit(Vec<Edit>),
}

/// Changes a job; all of it or nothing. A changed script is a new version, and a draft unless the change says
/// otherwise. Publishing pins the version and is recorded in the audit log.
///
/// # Errors
/// `Forbidden` without the write scope, or without the admin scope where it publishes; `NotFound`; `Invalid` when no
/// job can bear the name, an edit does not match exactly once, the code is not Python,
/// or parameters or trigger make no sense; `Conflict` when another
/// job bears the name, or the script has another version than the expected one.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_job(
    services: &Services,
    actor: &Actor,
    id: JobId,
    command: UpdateJob,
) -> Result<Job, Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    actor.may(GuardedAction::ChangeJob)?;
    actor.rights.require_all_tables().map_err(Error::refused)?;
    if command.publish_status == Some(PublishStatus::Published) {
        actor.require(Scope::Admin)?;
    }
    let mut checked = None;
    // Optimistic: a concurrent change raises the revision, and this one is made again on top of it.
    for _ in 0..MAX_ATTEMPTS {
        let (stored, script) = with_script(services, actor, id).await?;
        let (mut changed, script) = change(services, actor, &stored, script, &command)?;
        let trigger = stored.trigger.as_ref();
        changed.trigger = change_trigger(services, actor, id, trigger, &command.trigger).await?;
        if let Some(trigger) = &mut changed.trigger {
            if changed.version_number.is_none() {
                return Err(Error::refused(InvalidTrigger::NoScript));
            }
            if stored.archived && !changed.archived {
                trigger.rearm(services.clock.now());
            }
        }
        // A retry must not raise the revision.
        if changed == stored && script.is_none() {
            return Ok(stored);
        }
        // Another's change need not change what this one makes of the script.
        if let Some(script) = &script
            && checked.as_ref() != Some(&script.code)
        {
            let script = CheckedScript::check(&script.code).await;
            checked = Some(script.accepted()?);
        }
        if save(services, actor, &stored, &changed, script).await? {
            return Ok(Job {
                revision: stored.revision + 1,
                ..changed
            });
        }
    }
    Err(Error::busy())
}

/// Stores the change, unless the job has changed since it was read. Publishing and its entry in the audit log
/// are one transaction.
async fn save(
    services: &Services,
    actor: &Actor,
    stored: &Job,
    changed: &Job,
    script: Option<ScriptVersion>,
) -> Result<bool, Error> {
    let (organization, revision) = (actor.organization, stored.revision);
    let Some(version) = changed.published_since(stored) else {
        let update = services
            .jobs
            .update(organization, revision, changed, script.as_ref());
        return Ok(update.await?);
    };
    audited(services, actor, |within| async move {
        let update = within
            .jobs
            .update(organization, revision, changed, script.as_ref());
        let is_saved = update.await?;
        let target = AuditTarget::new(AuditTargetKind::Job, changed.id, &changed.name);
        let done = Record::of(AuditAction::JobPublished, target).with("version_number", version);
        Ok((is_saved, is_saved.then_some(done)))
    })
    .await
}

/// The job as the command wants it, and the new version of its script.
fn change(
    services: &Services,
    actor: &Actor,
    stored: &Job,
    script: Option<ScriptVersion>,
    command: &UpdateJob,
) -> Result<(Job, Option<ScriptVersion>), Error> {
    if let Some(expected) = command.expected_version
        && stored.version_number != Some(expected)
    {
        return Err(Error::refused(ScriptChanged { expected }));
    }
    let mut job = stored.clone();
    if let Some(name) = &command.name
        && *name != stored.name
    {
        parse_name(name)?.as_str().clone_into(&mut job.name);
    }
    if let Some(description) = &command.description {
        job.description = Some(description.clone()).filter(|text| !text.is_empty());
    }
    if let Some(archived) = command.archived {
        job.archived = archived;
    }
    if let Some(parameters) = &command.parameters {
        check_parameters(parameters).map_err(Error::refused)?;
        job.parameters.clone_from(parameters);
    }
    let code = match (&command.code, &script) {
        (None, _) => None,
        (Some(CodeChange::Replace(code)), _) => Some(normalized(code)),
        // No edits change nothing, so they make no version.
        (Some(CodeChange::Edit(edits)), _) if edits.is_empty() => None,
        (Some(CodeChange::Edit(_)), None) => {
            return Err(Error::refused(EditError::NoScript));
        }
        (Some(CodeChange::Edit(edits)), Some(script)) => Some(normalized(
            &apply_edits(&script.code, edits).map_err(Error::refused)?,
        )),
    };
    // The same text is no change: a published version stays published.
    let code = code.filter(|code| script.is_none_or(|script| script.code != *code));
    let script = code.map(|code| ScriptVersion {
        number: stored.next_version(),
        code,
        created_at: services.clock.now(),
        created_by: actor.user,
    });
    if let Some(script) = &script {
        job.revise(script.number);
    }
    if let Some(status) = command.publish_status {
        job.set_publish_status(status).map_err(Error::refused)?;
    }
    Ok((job, script))
}
