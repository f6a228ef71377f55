//! `POST /api/v1/job-executions/{execution_id}/revert`

use actix_web::web::Json;
use labdata_application::data::revert_execution::{preview_revert, revert_execution};
use labdata_domain::{data::revert::RevertReport, refusal::Resource};
use labdata_request_body::{fields::or, readers::boolean, shape};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{ExecutionPath, changes::ChangesView};
use crate::http::{ApiResult, Call, OptionalJson, OrNotFound, Write};

shape! {
    /// How to revert. The body may be empty or null.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RevertBody {
        /// Shows what the execution changed, or why it cannot be reverted, and changes nothing.
        dry_run: bool = or(false, boolean()),
    }
    example json!({"dry_run": true});
}

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

/// What a revert did; what the execution changed, of a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RevertResponse)]
#[serde(untagged)]
pub enum RevertResponseView {
    /// What was undone.
    Done(RevertView),
    /// What the execution changed.
    Preview(ChangesView),
}

/// Revert an execution
///
/// Deletes the rows that the execution created, and their series, in one transaction. Updates,
/// deletes and series written to rows that existed before are reported as warnings. A dry run needs
/// the read scope too, and answers like `GET /job-executions/{execution_id}/changes`.
#[utoipa::path(
    post,
    path = "/api/v1/job-executions/{execution_id}/revert",
    tag = "job-executions",
    operation_id = "revert_job_execution",
    responses((status = 200, description = "What was undone, or of a dry run what was changed", body = RevertResponseView))
)]
pub async fn handle(
    call: Call<Write, OptionalJson<RevertBody>, (), ExecutionPath>,
) -> ApiResult<Json<RevertResponseView>> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let body = call.body.0.unwrap_or_default();
    Ok(Json(if body.dry_run {
        let report = preview_revert(call.ports(), &call.actor, id).await?;
        RevertResponseView::Preview(report.into())
    } else {
        let report = revert_execution(call.ports(), &call.actor, id).await?;
        RevertResponseView::Done(report.into())
    }))
}
