//! `PATCH /api/v1/jobs/{job_id}`

use labdata_application::{
    Error,
    jobs::update_job::{CodeChange, UpdateJob, update_job},
};
use labdata_domain::{
    agent::{JOB_ARCHIVED, SCRIPT_REPLACED},
    jobs::{Edit, MAX_EDITS, ParameterDefinition, PublishStatus},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{group, optional, required},
    readers::{boolean, choice_of, list, shape, text, unsigned},
    shape,
};
use serde_json::json;

use super::{
    DescribedJob, JobPath, JobView, fields, parameters::definitions, trigger::TriggerFields,
};
use crate::{
    About, Call, JsonBody, Method, Operation, OrNotFound, Tag, WithEffects, Write,
    tools::{ScriptUse, ToolFacts},
};

shape! {
    /// Changes of a job; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateJobBody {
        /// Its name, unique within the organization.
        name: Option<String> = optional(fields::name()),
        /// Remarks for people; an empty text clears them.
        description: Option<String> = optional(fields::description()),
        /// Python source, stored as a new version of the script.
        code: Option<String> = optional(fields::code()),
        /// Exact replacements in the current script, stored as a new version; not together with
        /// `code`.
        edits: Option<Vec<Edit>> =
            optional(list(shape::<EditBody>().map(Edit::from)).of(0..=MAX_EDITS)),
        /// True archives it, false restores it.
        archived: Option<bool> = optional(boolean()),
        trigger: TriggerFields = group(),
        /// Parameters of its runs; replaces the earlier ones.
        parameter_definitions: Option<Vec<ParameterDefinition>> = optional(definitions()),
        /// Status of the script's version after the change. `published` needs the admin scope and pins the
        /// version; a change of the script sets `draft` unless this says otherwise.
        publish_status: Option<PublishStatus> =
            optional(choice_of(PublishStatus::ALL, PublishStatus::as_str)),
        /// Version of the script that the change is about, so that an admin publishes the one that was
        /// read: where another one is current, nothing changes (409).
        version_number: Option<u32> = optional(unsigned(1..=u32::MAX)),
    }
    example json!({
        "edits": [{"old_string": "threshold = 0.2", "new_string": "threshold = 0.25"}],
        "trigger_enabled": true,
        "trigger_category": "schedule",
        "trigger_conditions": {"cron": "0 6 * * 1-5", "timezone": "Europe/Berlin"},
    });
    // The body, `parameter_definitions`, and one of them.
    json_values_at 3;
    rules |at| {
        if let (Some(Some(_)), Some(Some(_))) = (code, edits) {
            at.field("edits").report(ProblemKind::value_error("not together with code"));
        }
    }
}

shape! {
    /// An exact replacement of text.
    #[derive(Clone, Debug)]
    pub struct EditBody {
        /// The text to replace. It must stand in exactly one place of the script as the edits
        /// before this one leave it.
        old_string: String = required(text(..).with("minLength", 1)),
        /// The replacement.
        new_string: String = required(text(..)),
    }
}

impl From<EditBody> for Edit {
    fn from(body: EditBody) -> Self {
        Self {
            old: body.old_string,
            new: body.new_string,
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_job",
        method: Method::Patch,
        path: "/api/v1/jobs/{job_id}",
        tag: Tag::Jobs,
        summary: "Changes a job",
        description: "All of it or nothing. A changed script is a new version; earlier executions keep \
            the version that they ran. Admins publish a version: with `LABDATA_JOBS_REQUIRE_PUBLISHED`, \
            triggers and schedules run that one only.",
        returns: "The job",
        refusals: &[
            (403, "The key lacks the write scope, or publishes without the admin scope"),
            (409, "The organization has another job of this name, or the script another version"),
        ],
    }
    .runs(run)
    .tool(ToolFacts {
        is_destructive: true,
        scripts: ScriptUse::Changes,
        ..ToolFacts::of("Changes a job. Earlier versions of its script are retained.")
    })
}

async fn run(
    call: Call<Write, JsonBody<UpdateJobBody>, (), JobPath>,
) -> Result<WithEffects<JobView>, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let body = call.body;
    let edits = body.edits.map(CodeChange::Edit);
    let code = body.code.map(CodeChange::Replace).or(edits);
    let effects = [
        (body.archived == Some(true)).then_some(JOB_ARCHIVED),
        code.is_some().then_some(SCRIPT_REPLACED),
    ];
    let command = UpdateJob {
        name: body.name,
        description: body.description,
        code,
        archived: body.archived,
        parameters: body.parameter_definitions,
        trigger: body.trigger.change()?,
        publish_status: body.publish_status,
        expected_version: body.version_number,
    };
    let job = update_job(&call.services, &call.actor, id, command).await?;
    Ok(WithEffects {
        response: DescribedJob::of(job, call.services.triggered_version).into(),
        effects: effects.into_iter().flatten().collect(),
    })
}
