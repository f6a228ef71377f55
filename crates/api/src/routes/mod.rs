//! The endpoints: one file each, in the tree of their URLs (`/api/v1` left out).
//!
//! See `docs/ADDING-AN-ENDPOINT.md`.

#![expect(
    clippy::missing_errors_doc,
    reason = "a handler's errors are documented as answers of its operation"
)]

use labdata_operations::Operation;
use serde_json::Value;

use crate::{
    endpoint,
    http::{endpoint::Endpoint, openapi::document},
};

pub mod agent;
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

/// Every endpoint of the server. Routing, the OpenAPI document and the authorization matrix of the
/// tests are made from this one list.
#[must_use]
pub fn all() -> Vec<Endpoint> {
    let mut endpoints = vec![
    ];
    endpoints.extend(labdata_operations::all().into_iter().map(declared));
    endpoints.extend(maintenance::docs::endpoints());
    endpoints.extend(maintenance::console::endpoints());
    endpoints.extend(files::storage::endpoints());
    endpoints.extend(notifications::unsubscribe::endpoints());
    endpoints.extend(work::key::endpoints());
    endpoints.extend(models::trainings::endpoints());
    endpoints
}

/// The endpoint of a declared operation.
fn declared(operation: Operation) -> Endpoint {
    match operation.about.name {
        "begin_session" => Endpoint::by_hand(&operation, session::begin::handle),
        "run_agent" => Endpoint::by_hand(&operation, agent::run::handle),
        "mcp" => Endpoint::by_hand(&operation, mcp::handle),
        "get_agent_chat_file" => Endpoint::by_hand(&operation, agent::chat_file::handle),
        "upload_file" => Endpoint::creating_by_hand(&operation, files::upload::handle),
        "export_table" => Endpoint::by_hand(&operation, catalog::export::handle),
        "query_data" => Endpoint::by_hand(&operation, data::query::handle),
        "read_many_series" => Endpoint::by_hand(&operation, data::many_series::handle),
        "read_rows" => Endpoint::by_hand(&operation, data::read::handle),
        "read_series" => Endpoint::by_hand(&operation, data::series::handle),
        "follow_events" => Endpoint::by_hand(&operation, events::follow::handle),
        "import_table" => Endpoint::creating_by_hand(&operation, data::import::handle),
        "get_job_execution_logs" => Endpoint::by_hand(&operation, work::logs::handle),
        "create_dataset" => Endpoint::creating_by_hand(&operation, models::create_dataset::handle),
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

/// Returns the OpenAPI document of every endpoint.
#[must_use]
pub fn openapi() -> Value {
    let mut whole = labdata_operations::document(&labdata_operations::all());
    let others = serde_json::to_value(document(all())).unwrap_or_default();
    for part in ["/paths", "/components/schemas"] {
        let (Some(Value::Object(into)), Some(Value::Object(from))) =
            (whole.pointer_mut(part), others.pointer(part))
        else {
            continue;
        };
        for (name, value) in from {
            into.entry(name).or_insert_with(|| value.clone());
        }
    }
    whole
}
