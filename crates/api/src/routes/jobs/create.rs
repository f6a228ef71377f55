//! `POST /api/v1/jobs`

use actix_web::web::Json;
use labdata_application::jobs::create_job::{CreateJob, create_job};
use labdata_domain::{
    ids::InstrumentId,
    jobs::{MAX_CODE_LENGTH, MAX_NAME_LENGTH, ParameterDefinition},
    triggers::Category,
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    JobView,
    parameters::{ParameterBody, definitions},
    trigger::TriggerFields,
};
use crate::http::{
    Answer, Call, JsonBody, Write,
    error::ErrorBody,
    shape::{
        Fields, Place, Shape,
        readers::{MaybeId, text},
    },
};

/// The job to create.
#[derive(Clone, Debug, ToSchema)]
pub struct CreateJobBody {
    /// Its name, unique within the organization.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Python source; dependencies are declared in a PEP 723 script block.
    #[schema(max_length = 1_000_000)]
    code: String,
    /// What it does.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// What its runs are asked for.
    #[schema(value_type = Option<Vec<ParameterBody>>, max_items = 100)]
    parameter_definitions: Vec<ParameterDefinition>,
    /// True gives the job a trigger, as the other `trigger_` fields say.
    trigger_enabled: Option<bool>,
    /// What the trigger waits for: `file_uploaded`, `job_completed` or `schedule`. Needed where
    /// `trigger_enabled` is true.
    #[schema(value_type = Option<String>, example = "file_uploaded")]
    trigger_category: Option<Category>,
    /// Only files of this instrument; of `file_uploaded` only.
    #[schema(value_type = Option<String>)]
    trigger_instrument_id: Option<MaybeId<InstrumentId>>,
    /// Of `file_uploaded`: `file_name_pattern`, `file_extensions`, `source_type`, `min_size_kb`,
    /// `max_size_kb`. Of `job_completed`: `source_job_id`, `statuses`. Of `schedule`: `cron`,
    /// `timezone`.
    #[schema(value_type = Option<Object>)]
    trigger_conditions: Option<Map<String, Value>>,
}

impl Shape for CreateJobBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.required("name", text(1..=MAX_NAME_LENGTH));
        let code = fields.required("code", text(..=MAX_CODE_LENGTH));
        let description = fields.nullable("description", text(..=10_000));
        let trigger = TriggerFields::of(&mut fields);
        let parameters = fields.nullable("parameter_definitions", definitions());
        let trigger = trigger?;
        Some(Self {
            name: name?,
            code: code?,
            description: description?,
            parameter_definitions: parameters?.unwrap_or_default(),
            trigger_enabled: trigger.enabled,
            trigger_category: trigger.category,
            trigger_instrument_id: trigger.instrument,
            trigger_conditions: trigger.conditions,
        })
    }
}

/// Creates a job
///
/// Its code is the first version of its script.
#[utoipa::path(
    post,
    path = "/api/v1/jobs",
    operation_id = "create_job",
    tag = "jobs",
    request_body = CreateJobBody,
    responses(
        (status = 200, description = "The job", body = JobView),
        (status = 409, description = "The organization has a job of this name", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<CreateJobBody>>) -> Answer<Json<JobView>> {
    let JsonBody(body) = call.body.clone();
    let trigger = TriggerFields {
        enabled: body.trigger_enabled,
        category: body.trigger_category,
        instrument: body.trigger_instrument_id,
        conditions: body.trigger_conditions,
    };
    let command = CreateJob {
        name: body.name,
        code: body.code,
        description: body.description,
        parameters: body.parameter_definitions,
        trigger: trigger.change()?,
    };
    let job = create_job(call.ports(), &call.actor, command).await?;
    Ok(Json(job.into()))
}
