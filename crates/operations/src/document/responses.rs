//! Responses of an operation: its own, and those that follow from what it requires and reads.

use std::collections::BTreeMap;

use labdata_request_body::{Definitions, Output as _, Schema};
use serde_json::{Map, Value, json};

use super::headers;
use crate::{
    Access, Operation,
    body::JSON,
    errors::{ErrorBody, InternalErrorBody, ShapeErrorBody},
    operation::RequestShapes,
};

/// The schema of a refusal's body.
type Refusal = fn(&mut Definitions) -> Schema;

const ERROR: Refusal = ErrorBody::schema;

/// Refusals of every operation that asks for a key or reads a body.
const COMMON: [(u16, &str, Refusal); 7] = [
    (
        400,
        "The request is well formed but not valid; nothing was changed",
        ERROR,
    ),
    (
        401,
        "The API key is missing, malformed, unknown, revoked or expired",
        ERROR,
    ),
    (404, "Not found in the organization of the API key", ERROR),
    (
        422,
        "The request does not have the right shape; every problem is listed",
        ShapeErrorBody::schema,
    ),
    (
        429,
        "Other requests hold the same rows, or the API key sent too many requests",
        ERROR,
    ),
    (
        503,
        "The platform is overloaded, or a service that it needs does not respond",
        ERROR,
    ),
    (
        507,
        "The disk of the platform is full; nothing was stored",
        ERROR,
    ),
];

const SLOW: &str = "The request did not arrive in time";

/// A description, and media types with their schemas.
type Response = (String, Vec<(&'static str, Schema)>);

/// Responses by status.
struct Responses<'d> {
    by_status: BTreeMap<u16, Response>,
    definitions: &'d mut Definitions,
}

impl Responses<'_> {
    /// Adds a refusal; one of the same status that was added before stays.
    fn refuse(&mut self, status: u16, description: impl Into<String>, schema: Refusal) {
        let content = vec![(JSON, schema(self.definitions))];
        let response = (description.into(), content);
        self.by_status.entry(status).or_insert(response);
    }
}

/// The responses of an operation in the document.
pub(super) fn all(
    operation: &Operation,
    request: &RequestShapes,
    definitions: &mut Definitions,
) -> Value {
    let success = (operation.describe_success)(definitions);
    let mut responses = Responses {
        by_status: BTreeMap::from([(
            operation.success_status,
            (operation.about.returns.to_owned(), success),
        )]),
        definitions,
    };
    for refusal in &operation.typed_refusals {
        let content = (refusal.content)(responses.definitions);
        let response = (refusal.description.to_owned(), content);
        responses.by_status.insert(refusal.status, response);
    }
    for (status, description) in operation.empty_responses {
        let response = ((*description).to_owned(), Vec::new());
        responses.by_status.insert(*status, response);
    }
    for (status, description) in operation.about.refusals {
        responses.refuse(*status, *description, ERROR);
    }
    add_common(&mut responses, operation, request);
    let is_list = request.query.iter().any(|it| it.name == "cursor");
    let rendered = responses.by_status.into_iter().map(|(status, response)| {
        let headers = headers::of(operation, status, is_list);
        (status.to_string(), render(response, &headers))
    });
    rendered.collect::<Map<_, _>>().into()
}

fn add_common(responses: &mut Responses<'_>, operation: &Operation, request: &RequestShapes) {
    responses.refuse(500, "The platform failed", InternalErrorBody::schema);
    if operation.access != Access::Open || request.body.is_some() {
        for (status, description, schema) in COMMON {
            responses.refuse(status, description, schema);
        }
    }
    if let Access::Scope(scope) = operation.access {
        let description = format!("The API key lacks the {scope} scope, or may not do this");
        responses.refuse(403, description, ERROR);
    }
    if let Some(body) = &request.body {
        let limit = operation.body_limit();
        let too_large = format!("The request body has {limit} bytes or more");
        let wrong_type = match &request.other_body {
            Some(other) => format!(
                "The Content-Type is neither {} nor {}",
                body.content_type, other.content_type
            ),
            None => format!("The Content-Type is not {}", body.content_type),
        };
        responses.refuse(408, SLOW, ERROR);
        responses.refuse(413, too_large, ERROR);
        responses.refuse(415, wrong_type, ERROR);
    }
    // A request whose head is slow is refused before its operation is known, without a body.
    let slow_head = (SLOW.to_owned(), Vec::new());
    responses.by_status.entry(408).or_insert(slow_head);
}

fn render((description, content): Response, headers: &Value) -> Value {
    let mut response = json!({ "description": description, "headers": headers });
    let content: Map<String, Value> = content
        .into_iter()
        .map(|(media_type, schema)| {
            let schema = json!({ "schema": Value::from(schema) });
            (media_type.to_owned(), schema)
        })
        .collect();
    if let (false, Value::Object(response)) = (content.is_empty(), &mut response) {
        response.insert("content".to_owned(), content.into());
    }
    response
}
