//! `POST /api/v1/job-executions`

use actix_web::web::Json;
use labdata_application::executions::start_execution::{StartExecution, start_execution};
use labdata_domain::executions::MAX_TIMEOUT_MINUTES;
use serde_json::Value;
use utoipa::ToSchema;

use super::ExecutionView;
use crate::http::{
    Answer, Call, OptionalJson, Write,
    shape::{
        Fields, Place, Shape,
        readers::{text, unsigned},
    },
};

/// The execution to open. The body may be empty or null.
#[derive(Clone, Debug, Default, ToSchema)]
pub struct StartExecutionBody {
    /// The job to run under.
    job_id: Option<String>,
    /// The job to run under, created if missing; ignored when `job_id` is given; defaults to
    /// 'Off-Platform Manual Job'.
    job_name: Option<String>,
    /// The platform fails the execution unless it is closed within this many minutes.
    #[schema(minimum = 1, maximum = 43_200)]
    timeout_minutes: Option<u32>,
}

impl Shape for StartExecutionBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let job_id = fields.nullable("job_id", text(..));
        let job_name = fields.nullable("job_name", text(..));
        let minutes = fields.nullable("timeout_minutes", unsigned(1..=MAX_TIMEOUT_MINUTES));
        Some(Self {
            job_id: job_id?,
            job_name: job_name?,
            timeout_minutes: minutes?,
        })
    }
}

/// Opens an execution for a script that runs outside the platform
#[utoipa::path(
    post,
    path = "/api/v1/job-executions",
    operation_id = "start_job_execution",
    tag = "job-executions",
    request_body = Option<StartExecutionBody>,
    responses((status = 200, description = "The execution, running", body = ExecutionView))
)]
pub async fn handle(
    call: Call<Write, OptionalJson<StartExecutionBody>>,
) -> Answer<Json<ExecutionView>> {
    let body = call.body.0.clone().unwrap_or_default();
    let command = StartExecution {
        job_id: body.job_id,
        job_name: body.job_name,
        timeout_minutes: body.timeout_minutes,
    };
    let execution = start_execution(call.ports(), &call.actor, command).await?;
    Ok(Json(execution.into()))
}
