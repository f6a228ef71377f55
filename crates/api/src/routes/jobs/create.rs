//! `POST /api/v1/jobs`

use actix_web::web::Json;
use labdata_application::create_job::{CreateJob, create_job};
use labdata_domain::job::{MAX_CODE_LENGTH, MAX_NAME_LENGTH, ParameterDefinition};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    JobView,
    parameters::{ParameterBody, definitions},
};
use crate::http::{
    Answer, Call, JsonBody, Write,
    error::ErrorBody,
    shape::{Fields, Place, Shape, readers::text},
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
}

impl Shape for CreateJobBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.required("name", text(1..=MAX_NAME_LENGTH));
        let code = fields.required("code", text(..=MAX_CODE_LENGTH));
        let description = fields.nullable("description", text(..=10_000));
        let parameters = fields.nullable("parameter_definitions", definitions());
        Some(Self {
            name: name?,
            code: code?,
            description: description?,
            parameter_definitions: parameters?.unwrap_or_default(),
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
    let command = CreateJob {
        name: body.name,
        code: body.code,
        description: body.description,
        parameters: body.parameter_definitions,
    };
    let job = create_job(call.ports(), &call.actor, command).await?;
    Ok(Json(job.into()))
}
