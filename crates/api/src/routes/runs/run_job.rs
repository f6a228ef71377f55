//! `POST /api/v1/jobs/{job_id}/run`

use actix_web::web::Json;
use labdata_application::runs::run_job::{RunJob, run_job};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::routes::jobs::JobPath;
use crate::{
    http::{OrNotFound, 
        Answer, Call, OptionalJson, Write,
        shape::{
            Fields, Place, Shape,
            readers::{object, storable, text},
        },
    },
    routes::executions::ExecutionView,
};

/// What the run is told. The body may be empty or null.
#[derive(Clone, Debug, Default, ToSchema)]
pub struct RunJobBody {
    /// Values of parameters; defaults are filled in. At most 65,536 bytes as JSON.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
    /// The file that the run is about: the script's `LABDATA_FILE_ID`.
    file_id: Option<String>,
}

impl Shape for RunJobBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let parameters = fields.nullable("parameters", storable(object()));
        let file_id = fields.nullable("file_id", text(..));
        Some(Self {
            parameters: parameters?,
            file_id: file_id?,
        })
    }
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
    params(("job_id" = String, Path, description = "The job's id")),
    request_body = Option<RunJobBody>,
    responses((status = 200, description = "The execution, queued", body = ExecutionView))
)]
pub async fn handle(
    call: Call<Write, OptionalJson<RunJobBody>, (), JobPath>,
) -> Answer<Json<ExecutionView>> {
    let id = call.path.job_id.or_not_found("job")?;
    let body = call.body.0.clone().unwrap_or_default();
    let command = RunJob {
        parameters: body.parameters.unwrap_or_default(),
        file: body.file_id,
    };
    let execution = run_job(call.ports(), &call.actor, id, command).await?;
    Ok(Json(execution.into()))
}
