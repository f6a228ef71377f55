//! `GET /api/v1/dependencies`: does what the server depends on work?

use actix_web::web::Json;
use labdata_application::{Error, maintenance::check_dependencies::check_dependencies};
use labdata_operations::maintenance::dependencies::DependenciesView;

use crate::http::{Admin, ApiResult, Call};

/// Checks what the server depends on.
pub async fn handle(call: Call<Admin>) -> ApiResult<Json<DependenciesView>> {
    let (services, actor) = (call.services().clone(), call.actor);
    // Apart from the response: the checks of a client who leaves continue, and are cached for the next.
    let checks = tokio::spawn(async move { check_dependencies(&services, &actor).await });
    let report = checks
        .await
        .map_err(|error| Error::Internal(error.to_string()))??;
    Ok(Json(report.into()))
}
