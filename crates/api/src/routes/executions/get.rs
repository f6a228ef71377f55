//! `GET /api/v1/job-executions/{execution_id}`

use actix_web::web::Json;
use labdata_application::executions::{get_execution::get_execution, starters::with_starter};
use labdata_domain::refusal::Resource;

use super::{ExecutionPath, ExecutionView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Reads one execution
///
/// Status, times and result of one execution.
#[utoipa::path(
    get,
    path = "/api/v1/job-executions/{execution_id}",
    operation_id = "get_job_execution",
    tag = "job-executions",
    responses((status = 200, description = "The execution", body = ExecutionView))
)]
pub async fn handle(call: Call<Read, NoBody, (), ExecutionPath>) -> ApiResult<Json<ExecutionView>> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let execution = get_execution(call.ports(), &call.actor, id).await?;
    let started = with_starter(call.ports(), &call.actor, execution).await?;
    Ok(Json(started.into()))
}
