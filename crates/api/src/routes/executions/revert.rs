//! `POST /api/v1/job-executions/{execution_id}/revert`

use actix_web::web::Json;
use labdata_application::data::revert_execution::revert_execution;
use labdata_domain::data::revert::RevertReport;
use serde::Serialize;
use utoipa::ToSchema;

use super::ExecutionPath;
use crate::http::{Answer, Call, NoBody, OrNotFound, Write};

/// Result of a revert.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RevertResult)]
pub struct RevertView {
    /// Rows deleted that the execution had created.
    deleted_count: u64,
    /// Points of series deleted with them.
    raws_deleted_count: u64,
    /// Created rows that no longer existed.
    skipped_count: u64,
    /// Changes that could not be undone.
    warnings: Vec<String>,
}

impl From<RevertReport> for RevertView {
    fn from(report: RevertReport) -> Self {
        Self {
            deleted_count: report.deleted_count,
            raws_deleted_count: report.raws_deleted_count,
            skipped_count: report.skipped_count,
            warnings: report.warnings,
        }
    }
}

/// Revert an execution
///
/// Deletes the rows that the execution created, and their series, in one transaction. Updates,
/// deletes and series written to rows that existed before are reported as warnings.
#[utoipa::path(
    post,
    path = "/api/v1/job-executions/{execution_id}/revert",
    tag = "job-executions",
    operation_id = "revert_job_execution",
    responses((status = 200, description = "What was undone", body = RevertView))
)]
pub async fn handle(call: Call<Write, NoBody, (), ExecutionPath>) -> Answer<Json<RevertView>> {
    let id = call.path.execution_id.or_not_found("job execution")?;
    let report = revert_execution(call.ports(), &call.actor, id).await?;
    Ok(Json(report.into()))
}
