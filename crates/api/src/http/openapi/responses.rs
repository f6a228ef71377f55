//! Responses that follow from the type of an endpoint.

use actix_web::http::StatusCode;
use labdata_domain::people::scope::Scope;
use utoipa::openapi::{
    ContentBuilder, Ref, RefOr, Response, ResponseBuilder, path::Operation,
    security::SecurityRequirement,
};

use super::BEARER;
use crate::http::{Access, body::BODY_LIMIT};

const ERROR: &str = "Error";

/// Adds the key, its scope, and the responses that the operation has besides its own. A response that
/// the endpoint documents itself stays.
pub(super) fn complete(operation: &mut Operation, access: Access) {
    add(
        operation,
        StatusCode::INTERNAL_SERVER_ERROR,
        "The platform failed",
        "InternalError",
    );
    let scope = match access {
        Access::Open if operation.request_body.is_none() => return add_slow_head(operation),
        Access::Open | Access::AnyKey => None,
        Access::Scope(scope) => Some(scope),
    };
    if access != Access::Open {
        let scopes = scope.map(Scope::as_str);
        operation.security = Some(vec![SecurityRequirement::new(BEARER, scopes)]);
    }
    for (status, description, schema) in [
        (
            StatusCode::BAD_REQUEST,
            "The request is well formed but not valid; nothing was changed",
            ERROR,
        ),
        (
            StatusCode::UNAUTHORIZED,
            "The API key is missing, malformed, unknown, revoked or expired",
            ERROR,
        ),
        (
            StatusCode::NOT_FOUND,
            "Not found in the organization of the API key",
            ERROR,
        ),
        (
            StatusCode::UNPROCESSABLE_ENTITY,
            "The request does not have the right shape; every problem is listed",
            "ShapeError",
        ),
        (
            StatusCode::TOO_MANY_REQUESTS,
            "Other requests hold the same rows, or the API key sent too many requests",
            ERROR,
        ),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "The platform is overloaded, or a service that it needs does not answer",
            ERROR,
        ),
        (
            StatusCode::INSUFFICIENT_STORAGE,
            "The disk of the platform is full; nothing was stored",
            ERROR,
        ),
    ] {
        add(operation, status, description, schema);
    }
    if let Some(scope) = scope {
        let description = format!("The API key lacks the {scope} scope, or may not do this");
        add(operation, StatusCode::FORBIDDEN, &description, ERROR);
    }
    add_for_body(operation);
    add_slow_head(operation);
}

/// Adds what can go wrong while a body is received.
fn add_for_body(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &operation.request_body else {
        return;
    };
    let media_types: Vec<&str> = body.content.keys().map(String::as_str).collect();
    let wrong_type = format!("The Content-Type is not {}", media_types.join(" or "));
    let too_large = format!("The request body has {BODY_LIMIT} bytes or more");
    for (status, description) in [
        (
            StatusCode::REQUEST_TIMEOUT,
            "The request did not arrive in time",
        ),
        (StatusCode::PAYLOAD_TOO_LARGE, &too_large),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, &wrong_type),
    ] {
        add(operation, status, description, ERROR);
    }
}

/// Adds the response to a request whose head does not arrive in time. It has no body.
fn add_slow_head(operation: &mut Operation) {
    let description = "The request did not arrive in time";
    let response = ResponseBuilder::new().description(description).build();
    let responses = &mut operation.responses.responses;
    responses
        .entry(StatusCode::REQUEST_TIMEOUT.as_str().to_owned())
        .or_insert_with(|| response.into());
}

fn add(operation: &mut Operation, status: StatusCode, description: &str, schema: &str) {
    let responses = &mut operation.responses.responses;
    responses
        .entry(status.as_str().to_owned())
        .or_insert_with(|| error_response(description, schema).into());
}

fn error_response(description: &str, schema: &str) -> Response {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .build();
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build()
}
