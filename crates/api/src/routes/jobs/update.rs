//! `PATCH /api/v1/jobs/{job_id}`

use actix_web::web::Json;
use labdata_application::jobs::update_job::{CodeChange, UpdateJob, update_job};
use labdata_domain::{
    ids::InstrumentId,
    jobs::{Edit, MAX_CODE_LENGTH, MAX_EDITS, MAX_NAME_LENGTH, ParameterDefinition},
    triggers::Category,
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    JobPath, JobView,
    parameters::{ParameterBody, definitions},
    trigger::TriggerFields,
};
use crate::http::{OrNotFound, 
    Answer, Call, JsonBody, Write,
    error::ErrorBody,
    shape::{
        Fields, Kind, Place, Shape,
        readers::{MaybeId, boolean, list_of, shape, text},
    },
};

/// What to change of a job; what is left out or null stays.
#[derive(Clone, Debug, ToSchema)]
pub struct UpdateJobBody {
    /// Its name, unique within the organization.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// What it does; an empty text clears it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// Python source, stored as a new version of the script.
    #[schema(max_length = 1_000_000)]
    code: Option<String>,
    /// Exact replacements in the current script, stored as a new version; not together with
    /// `code`.
    #[schema(max_items = 100)]
    edits: Option<Vec<EditBody>>,
    /// True archives it, false restores it.
    archived: Option<bool>,
    /// What its runs are asked for, in place of what they were.
    #[schema(value_type = Option<Vec<ParameterBody>>, max_items = 100)]
    parameter_definitions: Option<Vec<ParameterDefinition>>,
    /// True sets the trigger as this body says, and nothing of an earlier one stays; false takes it
    /// away. Without it, the other `trigger_` fields change the standing trigger.
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

impl Shape for UpdateJobBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.nullable("name", text(1..=MAX_NAME_LENGTH));
        let description = fields.nullable("description", text(..=10_000));
        let code = fields.nullable("code", text(..=MAX_CODE_LENGTH));
        let edits = fields.nullable("edits", list_of(0..=MAX_EDITS, shape()));
        let archived = fields.nullable("archived", boolean());
        let trigger = TriggerFields::of(&mut fields);
        let parameters = fields.nullable("parameter_definitions", definitions());
        if let (Some(Some(_)), Some(Some(_))) = (&code, &edits) {
            return fields.refuse("edits", Kind::value_error("not together with code"));
        }
        let trigger = trigger?;
        Some(Self {
            name: name?,
            description: description?,
            code: code?,
            edits: edits?,
            archived: archived?,
            parameter_definitions: parameters?,
            trigger_enabled: trigger.enabled,
            trigger_category: trigger.category,
            trigger_instrument_id: trigger.instrument,
            trigger_conditions: trigger.conditions,
        })
    }
}

/// An exact replacement of text.
#[derive(Clone, Debug, ToSchema)]
pub struct EditBody {
    /// What stands there. It must stand in exactly one place of the script as the edits before
    /// this one leave it.
    #[schema(min_length = 1)]
    old_string: String,
    /// What is to stand there.
    new_string: String,
}

impl Shape for EditBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let old_string = fields.required("old_string", text(..));
        let new_string = fields.required("new_string", text(..));
        Some(Self {
            old_string: old_string?,
            new_string: new_string?,
        })
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

/// Changes a job
///
/// All of it or nothing. A changed script is a new version; earlier executions keep the version
/// that they ran.
#[utoipa::path(
    patch,
    path = "/api/v1/jobs/{job_id}",
    operation_id = "update_job",
    tag = "jobs",
    params(("job_id" = String, Path, description = "The job's id")),
    request_body = UpdateJobBody,
    responses(
        (status = 200, description = "The job", body = JobView),
        (status = 409, description = "The organization has another job of this name", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<UpdateJobBody>, (), JobPath>,
) -> Answer<Json<JobView>> {
    let id = call.path.job_id.or_not_found("job")?;
    let JsonBody(body) = call.body.clone();
    let trigger = TriggerFields {
        enabled: body.trigger_enabled,
        category: body.trigger_category,
        instrument: body.trigger_instrument_id,
        conditions: body.trigger_conditions,
    };
    let edits = body
        .edits
        .map(|edits| CodeChange::Edit(edits.into_iter().map(Edit::from).collect()));
    let command = UpdateJob {
        name: body.name,
        description: body.description,
        code: body.code.map(CodeChange::Replace).or(edits),
        archived: body.archived,
        parameters: body.parameter_definitions,
        trigger: trigger.change()?,
    };
    let job = update_job(call.ports(), &call.actor, id, command).await?;
    Ok(Json(job.into()))
}
