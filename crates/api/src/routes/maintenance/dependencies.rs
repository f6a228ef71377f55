//! `GET /api/v1/dependencies`: does what the server depends on work?

use actix_web::web::Json;
use labdata_application::{
    Error,
    maintenance::check_dependencies::{DependencyReport, check_dependencies},
};
use labdata_ports::maintenance::{Dependency, DependencyState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{Admin, ApiResult, Call, Timestamp},
    names,
};

names! {
    /// Something that the platform depends on, as `labdata doctor` names it.
    pub DependencyName = Dependency::ALL.map(Dependency::as_str);

    /// State of a dependency: `ok`; `unused`, where it is not set up and need not be; or `failed`.
    pub DependencyStateName = DependencyState::ALL.map(DependencyState::as_str);
}

/// A dependency and its state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Dependency)]
pub struct DependencyView {
    #[schema(value_type = DependencyName)]
    name: &'static str,
    #[schema(value_type = DependencyStateName)]
    state: &'static str,
}

/// States of everything that the server depends on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Dependencies)]
pub struct DependenciesView {
    /// Time of the checks.
    checked_at: Timestamp,
    /// The dependencies, in the order in which to fix what fails.
    dependencies: Vec<DependencyView>,
}

impl From<DependencyReport> for DependenciesView {
    fn from(report: DependencyReport) -> Self {
        let view = |(dependency, state): (Dependency, DependencyState)| DependencyView {
            name: dependency.as_str(),
            state: state.as_str(),
        };
        Self {
            checked_at: report.checked_at.into(),
            dependencies: report.states.into_iter().map(view).collect(),
        }
    }
}

/// Checks what the server depends on
///
/// The checks of `labdata doctor`, made by the server that answers; for a minute, it returns the same
/// answer. Why a check failed is in the server's log, and `labdata doctor` tells it with what to do. Takes
/// up to a minute where something does not answer.
#[utoipa::path(
    get,
    path = "/api/v1/dependencies",
    operation_id = "check_dependencies",
    tag = "operations",
    responses((status = 200, description = "The states", body = DependenciesView))
)]
pub async fn handle(call: Call<Admin>) -> ApiResult<Json<DependenciesView>> {
    let (ports, actor) = (call.ports().clone(), call.actor);
    // Apart from the answer: the checks of a client who leaves go on, and are kept for the next.
    let checks = tokio::spawn(async move { check_dependencies(&ports, &actor).await });
    let report = checks
        .await
        .map_err(|error| Error::Internal(error.to_string()))??;
    Ok(Json(report.into()))
}
