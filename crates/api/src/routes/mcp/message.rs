//! Messages, checked before the implementation of the protocol reads them: it takes a message that it cannot read for
//! one of another method or media type.

use std::{collections::BTreeMap, fmt};

use actix_web::{HttpResponse, http::StatusCode};
use labdata_domain::refusal::ErrorCode;
use rmcp::model::{ErrorCode as RpcCode, ProtocolVersion};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

/// Levels of objects that are read: the message, its parameters, and the objects in these.
const LEVELS: u8 = 3;

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
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = Levels(LEVELS).deserialize(&mut reader);
    let message = read.and_then(|message| reader.end().map(|()| message));
    let message = message.map_err(|error| Refused::Unreadable {
        rpc: RpcCode::PARSE_ERROR,
        code: ErrorCode::BodyUnreadable,
        text: format!("the body is not JSON: {error}"),
    })?;
    let message = match message {
        Node::Object(message) => message,
        Node::List => {
            return Err(Refused::invalid(
                "batches are not supported: send one message a request",
            ));
        }
        _ => return Err(Refused::invalid("a message is a JSON object")),
    };
    if !matches!(message.get("jsonrpc"), Some(Node::Text(version)) if version == "2.0") {
        return Err(Refused::invalid("jsonrpc: must be \"2.0\""));
    }
    let id = match message.get("id") {
        None => None,
        Some(Node::Text(id)) => Some(Value::from(id.as_str())),
        Some(Node::Integer(id)) => Some(Value::from(*id)),
        Some(_) => return Err(Refused::invalid("id: must be a string or an integer")),
    };
    let method = match message.get("method") {
        Some(Node::Text(method)) => method,
        Some(_) => return Err(Refused::invalid("method: must be a string")),
        // A response to what the platform might have asked.
        None if message.contains_key("result") || message.contains_key("error") => return Ok(()),
        None => return Err(Refused::invalid("method: is missing")),
    };
    let nothing = BTreeMap::new();
    let params = match message.get("params") {
        None | Some(Node::Null) => &nothing,
        Some(Node::Object(params)) => params,
        Some(_) => return Err(Refused::invalid("params: must be an object")),
    };
    // A notification has no response that could refuse its parameters.
    let Some(id) = id else { return Ok(()) };
    check_params(method, params).map_err(|text| Refused::Params { id, text })
}

type Fields = BTreeMap<String, Node>;

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
            let Some(Node::Object(client)) = params.get("clientInfo") else {
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

    const fn is_of(self, node: &Node) -> bool {
        match self {
            Self::Text => matches!(node, Node::Text(_)),
            Self::Object => matches!(node, Node::Object(_)),
        }
    }
}

fn required(fields: &Fields, at: &str, name: &str, kind: Kind) -> Result<(), String> {
    match fields.get(name) {
        None => Err(format!("{at}.{name}: is missing")),
        Some(node) if kind.is_of(node) => Ok(()),
        Some(_) => Err(format!("{at}.{name}: must be {}", kind.name())),
    }
}

fn optional(fields: &Fields, name: &str, kind: Kind) -> Result<(), String> {
    match fields.get(name) {
        None | Some(Node::Null) => Ok(()),
        Some(_) => required(fields, "params", name, kind),
    }
}

/// A value of a message. What is below the levels that are read has its kind only: calls of tools are large.
#[derive(Debug)]
enum Node {
    Null,
    Integer(i64),
    Text(String),
    List,
    Object(Fields),
    /// A boolean, or a number that is no integer of 64 bits.
    Other,
}

/// Reads a value with that many levels of objects.
struct Levels(u8);

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(i64::try_from(value).map_or(Node::Other, Node::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Node::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Fields::new();
        let Some(below) = self.0.checked_sub(1) else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Node::Object(fields));
        };
        while let Some(name) = map.next_key()? {
            fields.insert(name, map.next_value_seed(Self(below))?);
        }
        Ok(Node::Object(fields))
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
