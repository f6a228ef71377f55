//! `POST /api/v1/jobs/{job_id}/run`

use actix_web::web::Json;
use labdata_application::{
    executions::starters::with_starter,
    work::run_job::{RunJob, run_job},
};
use labdata_domain::refusal::Resource;
use labdata_operations::jobs::JobPath;
use labdata_request_body::{
    fields::optional,
    readers::{object, storable, text},
    shape,
};
use serde_json::{Map, Value, json};

use crate::{
    http::{ApiResult, Call, OptionalJson, OrNotFound, Write},
    routes::executions::ExecutionView,
};

shape! {
    /// Parameters and file of the run. The body may be empty or null.
    #[derive(Clone, Debug, Default)]
    pub struct RunJobBody {
        /// Values of parameters; defaults are filled in. At most 65,536 bytes as JSON.
        parameters: Option<Map<String, Value>> = optional(storable(object())),
        /// The file that the run is about: the script's `LABDATA_FILE_ID`.
        file_id: Option<String> = optional(text(..)),
    }
    example json!({"parameters": {"threshold": 0.3}, "file_id": "0191d5a4-0000-7000-8000-000000000000"});
}

/// Runs a job's script on the platform
///
/// Queues a run of the current version. Follow it by `GET /job-executions/{execution_id}` and
/// `…/logs`.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{job_id}/run",
    operation_id = "run_job",
    tag = "jobs",
    responses((status = 200, description = "The execution, queued", body = ExecutionView))
)]
pub async fn handle(
    call: Call<Write, OptionalJson<RunJobBody>, (), JobPath>,
) -> ApiResult<Json<ExecutionView>> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let body = call.body.0.clone().unwrap_or_default();
    let command = RunJob {
        parameters: body.parameters.unwrap_or_default(),
        file: body.file_id,
    };
    let ports = call.begin().await?;
    let execution = run_job(ports, &call.actor, id, command).await?;
    let started = with_starter(ports, &call.actor, execution).await?;
    Ok(Json(started.into()))
}
