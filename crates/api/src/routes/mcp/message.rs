//! Messages, checked before the implementation of the protocol reads them: it takes a message that it cannot read for
//! one of another method or media type.

use actix_web::{HttpResponse, http::StatusCode};
use labdata_domain::refusal::ErrorCode;
use rmcp::model::{ErrorCode as RpcCode, ProtocolVersion};
use serde_json::{Map, Value, json};

/// Why a message is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// It is no message.
    Unreadable {
        rpc: RpcCode,
        code: ErrorCode,
        text: String,
    },
    /// The parameters of its method do not fit.
    Params {
        /// Its id.
        id: Value,
        text: String,
    },
}

impl Refused {
    fn invalid(text: impl Into<String>) -> Self {
        Self::Unreadable {
            rpc: RpcCode::INVALID_REQUEST,
            code: ErrorCode::BodyUnreadable,
            text: text.into(),
        }
    }

    /// A message that the implementation of the protocol could not read.
    pub(super) fn unread(explained: &str) -> Self {
        Self::invalid(format!("the message cannot be read: {explained}"))
    }

    /// The response: 400 for what is no message, with the fields of the platform's other errors beside those of
    /// JSON-RPC; 200 for a request whose parameters do not fit.
    pub(super) fn response(self) -> HttpResponse {
        match self {
            Self::Unreadable { rpc, code, text } => {
                let error = json!({ "code": rpc.0, "message": text });
                HttpResponse::build(StatusCode::BAD_REQUEST).json(json!({
                    "jsonrpc": "2.0", "id": null, "error": error, "detail": text, "code": code,
                }))
            }
            Self::Params { id, text } => {
                let error = json!({ "code": RpcCode::INVALID_PARAMS.0, "message": text });
                HttpResponse::Ok().json(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
        }
    }
}

/// Checks the revision of the protocol that a client names in the header `MCP-Protocol-Version`.
///
/// # Errors
/// [`Refused::Unreadable`], naming the revisions that there are.
pub(super) fn check_version(version: Option<&[u8]>) -> Result<(), Refused> {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    match version {
        Some(version) if !known.iter().any(|it| it.as_str().as_bytes() == version) => {
            let known: Vec<&str> = known.iter().map(ProtocolVersion::as_str).collect();
            Err(Refused::Unreadable {
                rpc: RpcCode::UNSUPPORTED_PROTOCOL_VERSION,
                code: ErrorCode::ProtocolVersionUnsupported,
                text: format!(
                    "MCP-Protocol-Version: {} is not supported; the versions are {}",
                    String::from_utf8_lossy(version),
                    known.join(", ")
                ),
            })
        }
        _ => Ok(()),
    }
}

/// Checks a message, and the parameters of the methods that the platform has.
///
/// # Errors
/// [`Refused`], naming the field.
pub(super) fn check_message(body: &[u8]) -> Result<(), Refused> {
    let message: Value = serde_json::from_slice(body).map_err(|error| Refused::Unreadable {
        rpc: RpcCode::PARSE_ERROR,
        code: ErrorCode::BodyUnreadable,
        text: format!("the body is not JSON: {error}"),
    })?;
    let message = match &message {
        Value::Object(message) => message,
        Value::Array(_) => {
            return Err(Refused::invalid(
                "batches are not supported: send one message a request",
            ));
        }
        _ => return Err(Refused::invalid("a message is a JSON object")),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Refused::invalid("jsonrpc: must be \"2.0\""));
    }
    let id = match message.get("id") {
        Some(id) if !id.is_string() && !id.is_i64() => {
            return Err(Refused::invalid("id: must be a string or an integer"));
        }
        id => id.cloned(),
    };
    let method = match message.get("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(Refused::invalid("method: must be a string")),
        // A response to what the platform might have asked.
        None if message.contains_key("result") || message.contains_key("error") => return Ok(()),
        None => return Err(Refused::invalid("method: is missing")),
    };
    let nothing = Fields::new();
    let params = match message.get("params") {
        None | Some(Value::Null) => &nothing,
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Refused::invalid("params: must be an object")),
    };
    // A notification has no response that could refuse its parameters.
    let Some(id) = id else { return Ok(()) };
    check_params(method, params).map_err(|text| Refused::Params { id, text })
}

type Fields = Map<String, Value>;

fn check_params(method: &str, params: &Fields) -> Result<(), String> {
    optional(params, "_meta", Kind::Object)?;
    match method {
        "tools/call" => {
            required(params, "params", "name", Kind::Text)?;
            optional(params, "arguments", Kind::Object)
        }
        "resources/read" => required(params, "params", "uri", Kind::Text),
        "tools/list" | "resources/list" | "resources/templates/list" => {
            optional(params, "cursor", Kind::Text)
        }
        "initialize" => {
            required(params, "params", "protocolVersion", Kind::Text)?;
            required(params, "params", "capabilities", Kind::Object)?;
            required(params, "params", "clientInfo", Kind::Object)?;
            let Some(Value::Object(client)) = params.get("clientInfo") else {
                return Ok(());
            };
            required(client, "params.clientInfo", "name", Kind::Text)?;
            required(client, "params.clientInfo", "version", Kind::Text)
        }
        _ => Ok(()),
    }
}

/// Type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Object,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Object => "an object",
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Object => value.is_object(),
        }
    }
}

fn required(fields: &Fields, at: &str, name: &str, kind: Kind) -> Result<(), String> {
    match fields.get(name) {
        None => Err(format!("{at}.{name}: is missing")),
        Some(value) if kind.is_of(value) => Ok(()),
        Some(_) => Err(format!("{at}.{name}: must be {}", kind.name())),
    }
}

fn optional(fields: &Fields, name: &str, kind: Kind) -> Result<(), String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(()),
        Some(_) => required(fields, "params", name, kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (Option<i32>, String) {
        match check_message(body.as_bytes()).unwrap_err() {
            Refused::Unreadable { rpc, text, .. } => (Some(rpc.0), text),
            Refused::Params { text, .. } => (None, text),
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (body, code) in [
            ("", -32700),
            ("{", -32700),
            ("{} {}", -32700),
            ("{}", -32600),
            ("5", -32600),
            ("[]", -32600),
            (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, -32600),
            (
                r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
                -32600,
            ),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, -32600),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#, -32600),
            (
                r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#,
                -32600,
            ),
        ] {
            assert_eq!(refused(body).0, Some(code), "{body}");
        }
    }

    #[test]
    fn parameters_that_do_not_fit_are_named() {
        for (method, params, field) in [
            ("tools/call", "{}", "params.name"),
            (
                "tools/call",
                r#"{"name": "x", "arguments": []}"#,
                "params.arguments",
            ),
            (
                "tools/call",
                r#"{"name": "x", "arguments": "{}"}"#,
                "params.arguments",
            ),
            ("tools/list", r#"{"cursor": 5}"#, "params.cursor"),
            ("resources/read", "{}", "params.uri"),
            ("initialize", "{}", "params.protocolVersion"),
            (
                "initialize",
                r#"{"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "x"}}"#,
                "params.clientInfo.version",
            ),
        ] {
            let body = format!(
                r#"{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}"#
            );
            let (code, text) = refused(&body);
            assert_eq!(code, None, "{text}");
            assert!(text.starts_with(&format!("{field}: ")), "{text}");
        }
    }

    #[test]
    fn messages_of_the_protocol_pass() {
        for body in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": null}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 7, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "prompts/get"}"#,
        ] {
            assert!(check_message(body.as_bytes()).is_ok(), "{body}");
        }
        assert!(check_version(None).is_ok());
        assert!(check_version(Some(b"2025-06-18")).is_ok());
        assert!(check_version(Some(b"1999-01-01")).is_err());
    }
}
