//! `POST /api/v1/job-executions/{execution_id}/cancel`

use actix_web::web::Json;
use labdata_application::executions::{cancel_execution::cancel_execution, starters::with_starter};
use labdata_domain::refusal::Resource;

use super::{ExecutionPath, ExecutionView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Write, error::ErrorBody};

/// Cancels an execution
///
/// One that waits never starts; the script of one that runs on the platform is stopped. Either
/// takes no writes from then on. What it wrote stays: revert it to undo that.
#[utoipa::path(
    post,
    path = "/api/v1/job-executions/{execution_id}/cancel",
    operation_id = "cancel_job_execution",
    tag = "job-executions",
    responses(
        (status = 200, description = "The execution, cancelled", body = ExecutionView),
        (status = 400, description = "It has ended", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, NoBody, (), ExecutionPath>,
) -> ApiResult<Json<ExecutionView>> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let execution = cancel_execution(call.ports(), &call.actor, id).await?;
    let started = with_starter(call.ports(), &call.actor, execution).await?;
    Ok(Json(started.into()))
}
