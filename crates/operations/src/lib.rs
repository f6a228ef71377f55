//! Every operation of the API, declared once: name, method, path, scope, input, output, refusals, and
//! the use case that it calls.
//!
//! Routes, the `OpenAPI` document, the authorization matrix of the tests and tools are made from
//! [`all`]. An operation is a file in the folder of its area; see `docs/ADDING-AN-ENDPOINT.md`.
//!
//! # Architecture invariants
//! - No HTTP server: a request arrives as values, a response leaves as bytes and what its head states.
//! - No business rule, and no port is called: an operation reads its input, calls a use case and
//!   describes the outcome.
//! - A name, a bound, a default, an enum stands once: in the domain, or in the shape that reads it.

mod about;
mod access;
mod base_url;
mod body;
mod call;
mod document;
pub mod errors;
pub mod events;
mod form;
mod id;
mod limits;
mod operation;
mod page;
mod platform;
mod response;

pub mod agent;
pub mod audit;
pub mod catalog;
pub mod data;
pub mod executions;
pub mod files;
pub mod instruments;
pub mod jobs;
pub mod maintenance;
pub mod models;
pub mod notifications;
pub mod outward;
pub mod people;
pub mod tools;
pub mod trash;
pub mod work;

pub use about::{About, Method, Tag};
pub use access::{Access, Admin, AnyScope, Read, RequiredScope, Write};
pub use base_url::BaseUrl;
pub use body::{
    Body, BodyDescription, BodyKind, DescribeBody, FormBody, JsonBody, MULTIPART, NoBody,
    OptionalJson,
};
pub use call::{Call, Request};
pub use document::{SCHEMAS, document};
pub use form::{
    EVENT_STREAM, EventStream, JSON_LINES, JsonOrFile, JsonOrLines, ResultForm, TableFile,
};
pub use id::OrNotFound;
pub use limits::{BODY_LIMIT, MAX_KEY_LENGTH, OPEN_BODY_LIMIT};
pub use operation::{Effect, Idempotency, Operation, Preparation, RequestHeader, ScopeByQuery};
pub use page::PageQuery;
pub use platform::Platform;
pub use response::{
    Counted, Describe, HtmlPage, Listing, NoContent, PlainText, Reply, Respond, WithEffects,
};

/// Every operation that the document describes.
#[must_use]
pub fn all() -> Vec<Operation> {
    [
        people::operations(),
        files::operations(),
        instruments::operations(),
        instruments::images::operations(),
        jobs::operations(),
        executions::operations(),
        work::operations(),
        models::operations(),
        agent::operations(),
        maintenance::operations(),
        notifications::operations(),
        catalog::operations(),
        data::operations(),
        events::operations(),
        audit::operations(),
        outward::operations(),
        trash::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
