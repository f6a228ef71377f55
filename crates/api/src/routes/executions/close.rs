//! `PATCH /api/v1/job-executions/{execution_id}`

use actix_web::web::Json;
use labdata_application::executions::close_execution::close_execution;
use labdata_domain::executions::FinalStatus;
use serde_json::Value;
use utoipa::ToSchema;

use super::{ExecutionPath, ExecutionView};
use crate::http::{OrNotFound, 
    Answer, Call, JsonBody, Write,
    error::ErrorBody,
    shape::{Fields, Place, Shape, readers::choice},
};

const STATUSES: &[(&str, FinalStatus)] = &[
    ("completed", FinalStatus::Completed),
    ("failed", FinalStatus::Failed),
];

/// How the execution ended.
#[derive(Clone, Debug, ToSchema)]
pub struct CloseExecutionBody {
    /// `completed` or `failed`; either is final.
    #[schema(value_type = String, example = "completed", pattern = "^(completed|failed)$")]
    status: FinalStatus,
}

impl Shape for CloseExecutionBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        Some(Self {
            status: fields.required("status", choice(STATUSES))?,
        })
    }
}

/// Closes an execution that was opened for a script outside the platform
///
/// The same status again changes nothing.
#[utoipa::path(
    patch,
    path = "/api/v1/job-executions/{execution_id}",
    operation_id = "close_job_execution",
    tag = "job-executions",
    params(("execution_id" = String, Path, description = "The execution's id")),
    request_body = CloseExecutionBody,
    responses(
        (status = 200, description = "The execution, closed", body = ExecutionView),
        (status = 400, description = "It ended with another status, which is final", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<CloseExecutionBody>, (), ExecutionPath>,
) -> Answer<Json<ExecutionView>> {
    let id = call.path.execution_id.or_not_found("job execution")?;
    let status = call.body.0.status;
    let execution = close_execution(call.ports(), &call.actor, id, status).await?;
    Ok(Json(execution.into()))
}
