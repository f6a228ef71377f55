//! `POST /api/v1/jobs`

use labdata_application::{
    Error,
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
    },
};
use labdata_domain::jobs::ParameterDefinition;
use labdata_request_body::{
    fields::{group, optional, or, required},
    shape,
};
use serde_json::json;

use super::{DescribedJob, JobView, fields, parameters::definitions, trigger::TriggerFields};
use crate::{
    About, Call, JsonBody, Method, Operation, Tag, Write,
    tools::{ScriptUse, ToolFacts},
};

shape! {
    /// The job to create.
    #[derive(Clone, Debug)]
    pub struct CreateJobBody {
        /// Its name, unique within the organization.
        name: String = required(fields::name()),
        /// Python source; dependencies are declared in a PEP 723 script block.
        code: String = required(fields::code()),
        /// Remarks for people.
        description: Option<String> = optional(fields::description()),
        trigger: TriggerFields = group(),
        /// Parameters of its runs.
        parameter_definitions: Vec<ParameterDefinition> = or(json!([]), definitions()),
    }
    example json!({
        "name": "Parse plates",
        "code": "# /// script\n# dependencies = [\"labdata-client\"]\n# ///\nimport labdata_client as labdata\n\nlab = labdata.connect()\n",
        "description": "Reads the exports of the plate reader",
        "trigger_enabled": true,
        "trigger_category": "file_uploaded",
        "trigger_conditions": {"file_extensions": ["txt"], "file_name_pattern": "*plate*"},
        "parameter_definitions": [{
            "widget_type": "slider",
            "parameter_name": "threshold",
            "label": "Threshold",
            "min": 0,
            "max": 1,
            "step": 0.05,
            "default": 0.2,
        }],
    });
    // The body, `parameter_definitions`, and one of them.
    json_values_at 3;
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_job",
        method: Method::Post,
        path: "/api/v1/jobs",
        tag: Tag::Jobs,
        summary: "Creates a job",
        description: "Its code is the first version of its script.",
        returns: "The job",
        refusals: &[(409, "The organization has a job of this name")],
    }
    .runs_after(check, run)
    .creating()
    .tool(ToolFacts {
        scripts: ScriptUse::Changes,
        ..ToolFacts::of("Creates a job with a Python script. It does not run it.")
    })
}

type CreateJobCall = Call<Write, JsonBody<CreateJobBody>>;

fn check(call: &CreateJobCall) -> impl Future<Output = CheckedScript> + use<> {
    let code = call.body.code.clone();
    async move { CheckedScript::check(&code).await }
}

async fn run(call: CreateJobCall, script: CheckedScript) -> Result<JobView, Error> {
    let body = call.body;
    let command = CreateJob {
        name: body.name,
        script,
        description: body.description,
        parameters: body.parameter_definitions,
        trigger: body.trigger.change()?,
    };
    let job = create_job(&call.services, &call.actor, command).await?;
    Ok(DescribedJob::of(job, call.services.triggered_version).into())
}
