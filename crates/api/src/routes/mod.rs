//! The endpoints: one file each, in the tree of their URLs (`/api/v1` left out).
//!
//! See `docs/ADDING-AN-ENDPOINT.md`.

#![expect(
    clippy::missing_errors_doc,
    reason = "a handler's errors are documented as answers of its operation"
)]

use crate::{endpoint, http::endpoint::Endpoint};

pub mod api_keys;
pub mod data;
pub mod docs;
pub mod files;
pub mod health;
pub mod instruments;
pub mod job_executions;
pub mod jobs;
pub mod metrics;
pub mod notification_preferences;
pub mod notifications;
pub mod openapi;
pub mod ready;
pub mod storage;
pub mod tables;
pub mod tools;
pub mod unsubscribe;

/// Every endpoint of the server. Routing, the OpenAPI document and the authorization matrix of the
/// tests are made from this one list.
#[must_use]
pub fn all() -> Vec<Endpoint> {
    let mut endpoints = vec![
        endpoint!(api_keys::create),
        endpoint!(api_keys::list),
        endpoint!(api_keys::revoke),
        endpoint!(creating instruments::create),
        endpoint!(instruments::list),
        endpoint!(creating job_executions::start),
        endpoint!(job_executions::list),
        endpoint!(job_executions::get),
        endpoint!(job_executions::close),
        endpoint!(job_executions::revert),
        endpoint!(job_executions::cancel),
        endpoint!(job_executions::logs),
        endpoint!(jobs::list),
        endpoint!(creating jobs::create),
        endpoint!(jobs::get),
        endpoint!(jobs::update),
        endpoint!(jobs::versions),
        endpoint!(jobs::version),
        endpoint!(creating jobs::run),
        endpoint!(tables::put),
        endpoint!(tables::delete),
        endpoint!(tools::schema),
        endpoint!(tools::read),
        endpoint!(tools::query),
        endpoint!(tools::series),
        endpoint!(creating data::write),
        endpoint!(files::upload),
        endpoint!(files::list),
        endpoint!(creating files::upload_url),
        endpoint!(files::confirm),
        endpoint!(files::content),
        endpoint!(files::delete),
        endpoint!(notifications::send),
        endpoint!(notifications::list),
        endpoint!(notifications::unread_count),
        endpoint!(notifications::mark),
        endpoint!(notification_preferences::get),
        endpoint!(notification_preferences::change),
        endpoint!(open health),
        endpoint!(open ready),
        endpoint!(open metrics),
        endpoint!(open openapi),
    ];
    endpoints.extend(docs::endpoints());
    endpoints.extend(storage::endpoints());
    endpoints.extend(unsubscribe::endpoints());
    endpoints
}
