//! The endpoints. Those of declared operations are served by one handler, except for streams, uploads and
//! cookies, whose handlers are here, as are those that the document does not describe.
//!
//! See `docs/ADDING-AN-ENDPOINT.md`.

#![expect(
    clippy::missing_errors_doc,
    reason = "a handler's errors are documented as answers of its operation"
)]

use labdata_operations::{Operation, document};
use serde_json::Value;

use crate::http::endpoint::Endpoint;

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

/// Every endpoint of the server. Routing and the authorization matrix of the tests are made from this one
/// list.
#[must_use]
pub fn all() -> Vec<Endpoint> {
    let declared = labdata_operations::all().into_iter().map(declared);
    declared
        .chain(maintenance::docs::endpoints())
        .chain(maintenance::console::endpoints())
        .chain(files::storage::endpoints())
        .chain(notifications::unsubscribe::endpoints())
        .chain(work::key::endpoints())
        .chain(models::trainings::endpoints())
        .collect()
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

/// Returns the OpenAPI document of every declared operation.
#[must_use]
pub fn openapi() -> Value {
    document(&labdata_operations::all())
}
