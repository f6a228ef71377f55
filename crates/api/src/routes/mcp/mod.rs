//! `POST /mcp`: the tools of the agent for assistants elsewhere, over the Model Context Protocol.
//!
//! The transport is Streamable HTTP without sessions: each request is answered by itself, as JSON, on
//! whichever server it reaches. `rmcp` reads the messages and responds to them.

mod caller;
mod message;
mod origin;
mod resources;
mod server;
mod tools;

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue},
    },
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use labdata_application::{Error, agent::admit_assistant};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::{Map, Value};
use tokio::time::timeout;

use self::{
    caller::McpServer,
    message::{Refused, check_message, check_version},
    origin::check_origin,
};
use crate::http::{
    ApiError, ApiResult, Call, Read,
    body::{BODY_LIMIT, RawJson},
    error::body_of_status,
};

/// Maximum time to respond to a request. Longer than any tool takes.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(3);

/// Header with the revision of the protocol that a client speaks.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Headers of requests and responses that the protocol defines start with this.
const PROTOCOL_PREFIX: &str = "mcp-";

/// Responds to a message of the Model Context Protocol.
pub async fn handle(call: Call<Read, RawJson>) -> ApiResult<HttpResponse> {
    check_origin(&call.app.public_url, &call.request)?;
    if !call.accepted.allows_json() {
        let detail = "messages come as application/json".to_owned();
        return Err(ApiError::NotAcceptable(detail));
    }
    let _slot = admit_assistant(call.services(), &call.actor).await?;
    refuse_many_values(&call.body.0)?;
    let version = call.request.headers().get(PROTOCOL_VERSION);
    let checked = check_version(version.map(HeaderValue::as_bytes))
        .and_then(|()| check_message(&call.body.0));
    if let Err(refused) = checked {
        return Ok(refused.response());
    }
    let request = to_service(&call)?;
    let server = McpServer {
        app: call.app.clone(),
        actor: Arc::new(call.actor.clone()),
    };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // check_origin is the guard: behind a proxy the host is not known.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(BODY_LIMIT);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let answering = async {
        let (head, body) = service.handle(request).await.into_parts();
        // The error of this body is `Infallible`, so the default below is never taken.
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        (head, body.unwrap_or_default())
    };
    match timeout(ANSWER_TIMEOUT, answering).await {
        Ok((head, body)) => Ok(from_service(&head, body)),
        Err(_) => Err(Error::Unavailable("an MCP request took too long".to_owned()).into()),
    }
}

/// Maximum number of values in a message. A write of data, the largest call, has fewer.
const MAX_VALUES: usize = 500_000;

/// Refuses a message of too many values before it is read: a digit in it takes some 180 bytes of memory.
fn refuse_many_values(message: &[u8]) -> Result<(), ApiError> {
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            // Outside of a text a backslash is no JSON, which the parser refuses.
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            // Each value but the first follows one of these signs, so the count misses none.
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(ApiError::TooManyValues(MAX_VALUES))
}

/// The request for the protocol's implementation: of the headers those that it reads, which the key is
/// not among.
fn to_service(call: &Call<Read, RawJson>) -> Result<http::Request<Full<Bytes>>, Error> {
    let mut request = http::Request::post("/mcp");
    // The implementation insists on both, although it responds with JSON alone.
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in call.request.headers() {
        let name = name.as_str();
        if ["content-type", "host"].contains(&name) || name.starts_with(PROTOCOL_PREFIX) {
            request = request.header(name, value.as_bytes());
        }
    }
    let body = Full::new(call.body.0.clone());
    let request = request.body(body);
    request.map_err(|error| Error::Internal(format!("an MCP request: {error}")))
}

/// The body of an error: the fields of the platform's errors, beside those of JSON-RPC if the implementation sends them.
/// It explains in plain text which headers it does not take.
fn explained(status: StatusCode, body: &[u8]) -> Value {
    let message: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
    let said = |message: &Map<String, Value>| {
        let said = message.get("error")?.get("message")?.as_str()?;
        Some(said.to_owned())
    };
    let detail = message.as_ref().and_then(said);
    let mut fields = message.unwrap_or_default();
    let detail = detail.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let code = body_of_status(status).code;
    fields.insert("detail".to_owned(), detail.into());
    fields.insert("code".to_owned(), code.as_str().into());
    Value::Object(fields)
}

fn from_service(head: &http::response::Parts, body: Bytes) -> HttpResponse {
    let status = StatusCode::from_u16(head.status.as_u16());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        // The media type was checked before: this is a message that it cannot read.
        return Refused::unread(&String::from_utf8_lossy(&body)).response();
    }
    if status.is_client_error() {
        return HttpResponse::build(status).json(explained(status, &body));
    }
    let mut response = HttpResponse::build(status);
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes());
        if let Ok(name) = name
            && (name.as_str() == "content-type" || name.as_str().starts_with(PROTOCOL_PREFIX))
        {
            response.insert_header((name, value.as_bytes()));
        }
    }
    response.body(body)
}
