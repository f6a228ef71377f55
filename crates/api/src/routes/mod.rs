//! Routes: the operations of `labdata-operations`, and the handlers that are written by hand because
//! they stream, receive a file, or set a cookie.
//!
//! See `docs/ADDING-AN-ENDPOINT.md`.

#![expect(
    clippy::missing_errors_doc,
    reason = "a handler's errors are documented as responses of its operation"
)]

use labdata_operations::Operation;
use serde_json::Value;

use crate::http::endpoint::Endpoint;

pub mod agent;
pub mod audit;
pub mod catalog;
pub mod data;
pub mod events;
pub mod files;
pub mod maintenance;
pub mod mcp;
pub mod models;
pub mod notifications;
pub mod session;
pub mod work;

/// Every endpoint of the server: the operations, and what is none.
#[must_use]
pub fn all() -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = labdata_operations::all()
        .into_iter()
        .map(declared)
        .collect();
    endpoints.extend(hidden());
    endpoints
}

/// The endpoints that are no operations: pages, and URLs that bear their permission themselves. They ask
/// for no key, and no document shows them.
#[must_use]
pub fn hidden() -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    endpoints.extend(maintenance::docs::endpoints());
    endpoints.extend(maintenance::console::endpoints());
    endpoints.extend(files::storage::endpoints());
    endpoints.extend(notifications::unsubscribe::endpoints());
    endpoints.extend(session::oidc::endpoints());
    endpoints.extend(work::key::endpoints());
    endpoints.extend(models::trainings::endpoints());
    endpoints
}

/// The endpoint of a declared operation.
fn declared(operation: Operation) -> Endpoint {
    match operation.about.name {
        "begin_session" => Endpoint::by_hand(&operation, session::begin::handle),
        "list_audit_log" => Endpoint::by_hand(&operation, audit::list::handle),
        "run_agent" => Endpoint::by_hand(&operation, agent::run::handle),
        "mcp" => Endpoint::by_hand(&operation, mcp::handle),
        "get_agent_chat_file" => Endpoint::by_hand(&operation, agent::chat_file::handle),
        "preview_table" => Endpoint::by_hand(&operation, files::preview_table::handle),
        "upload_file" => Endpoint::creating_by_hand(&operation, files::upload::handle),
        "export_table" => Endpoint::by_hand(&operation, catalog::export::handle),
        "query_data" => Endpoint::by_hand(&operation, data::query::handle),
        "read_many_series" => Endpoint::by_hand(&operation, data::many_series::handle),
        "read_rows" => Endpoint::by_hand(&operation, data::read::handle),
        "read_series" => Endpoint::by_hand(&operation, data::series::handle),
        "follow_events" => Endpoint::by_hand(&operation, events::follow::handle),
        "import_table" => Endpoint::creating_by_hand(&operation, data::import::handle),
        "get_job_execution_logs" => Endpoint::by_hand(&operation, work::logs::handle),
        "follow_ml_model_training" => Endpoint::by_hand(&operation, models::progress::handle),
        "get_ml_model_report" => Endpoint::by_hand(&operation, models::report::handle),
        "end_session" => Endpoint::by_hand(&operation, session::end::handle),
        "check_dependencies" => Endpoint::by_hand(&operation, maintenance::dependencies::handle),
        "health" => Endpoint::by_hand(&operation, maintenance::health::handle),
        "ready" => Endpoint::by_hand(&operation, maintenance::ready::handle),
        "metrics" => Endpoint::by_hand(&operation, maintenance::metrics::handle),
        "openapi" => Endpoint::by_hand(&operation, maintenance::openapi::handle),
        _ => Endpoint::of(operation),
    }
}

/// Returns the OpenAPI document of every operation.
#[must_use]
pub fn openapi() -> Value {
    labdata_operations::document(&labdata_operations::all())
}
