//! `PATCH /api/v1/job-executions/{execution_id}`

use actix_web::web::Json;
use labdata_application::executions::{close_execution::close_execution, starters::with_starter};
use labdata_domain::{executions::FinalStatus, refusal::Resource};
use labdata_request_body::{fields::required, readers::choice, shape};
use serde_json::json;

use super::{ExecutionPath, ExecutionView};
use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write, error::ErrorBody};

shape! {
    /// Final status.
    #[derive(Clone, Debug)]
    pub struct CloseExecutionBody {
        /// Either is final.
        status: FinalStatus = required(choice(FinalStatus::ALL)),
    }
    example json!({"status": "completed"});
}

/// Closes an execution that was opened for a script outside the platform
///
/// The same status again changes nothing. Executions that the platform runs, and those that a data
/// write created, are not closed from outside.
#[utoipa::path(
    patch,
    path = "/api/v1/job-executions/{execution_id}",
    operation_id = "close_job_execution",
    tag = "job-executions",
    responses(
        (status = 200, description = "The execution, closed", body = ExecutionView),
        (status = 400, description = "It ended with another status, which is final; or the platform runs it, or a data write created it", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<CloseExecutionBody>, (), ExecutionPath>,
) -> ApiResult<Json<ExecutionView>> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let status = call.body.0.status;
    let execution = close_execution(call.ports(), &call.actor, id, status).await?;
    let started = with_starter(call.ports(), &call.actor, execution).await?;
    Ok(Json(started.into()))
}
