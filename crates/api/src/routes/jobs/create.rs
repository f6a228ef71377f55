//! `POST /api/v1/jobs`

use actix_web::web::Json;
use labdata_application::jobs::{
    check_script::CheckedScript,
    create_job::{CreateJob, create_job},
    fields,
};
use labdata_domain::jobs::ParameterDefinition;
use labdata_request_body::{
    fields::{group, optional, or, required},
    shape,
};
use serde_json::json;

use super::{JobView, parameters::definitions, trigger::TriggerFields};
use crate::http::{ApiResult, Call, JsonBody, Write, error::ErrorBody};

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
}

/// Creates a job
///
/// Its code is the first version of its script.
#[utoipa::path(
    post,
    path = "/api/v1/jobs",
    operation_id = "create_job",
    tag = "jobs",
    responses(
        (status = 200, description = "The job", body = JobView),
        (status = 409, description = "The organization has a job of this name", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<CreateJobBody>>) -> ApiResult<Json<JobView>> {
    call.refuse_repeated().await?;
    let JsonBody(body) = call.body.clone();
    let command = CreateJob {
        name: body.name,
        script: CheckedScript::check(&body.code).await,
        description: body.description,
        parameters: body.parameter_definitions,
        trigger: body.trigger.change()?,
    };
    let job = create_job(call.begin().await?, &call.actor, command).await?;
    Ok(Json(job.into()))
}
