//! The dialects of the providers: bodies of requests, and events of responses.

mod anthropic;
mod openai;

use labdata_domain::agent::BrokenStream;
use labdata_ports::agent::ModelRequest;
use serde_json::Value;

use crate::{assembly::Read, frames::Frame, settings::Provider};

/// Names and values of headers.
type Headers = &'static [(&'static str, &'static str)];

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

impl From<Provider> for Dialect {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic,
            Provider::OpenAi | Provider::Gemini | Provider::Ollama => Self::OpenAi,
        }
    }
}

impl Dialect {
    /// The header of the key, and its value with `{}` for the key.
    pub(crate) const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenAi => ("authorization", "Bearer {}"),
            Self::Anthropic => ("x-api-key", "{}"),
        }
    }

    /// Headers that every request has.
    pub(crate) const fn headers(self) -> Headers {
        match self {
            Self::OpenAi => &[],
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
        }
    }

    /// The body of a request.
    pub(crate) fn body(self, request: &ModelRequest) -> Value {
        match self {
            Self::OpenAi => openai::body(request),
            Self::Anthropic => anthropic::body(request),
        }
    }

    /// A reader of one response.
    pub(crate) fn reader(self) -> Reader {
        match self {
            Self::OpenAi => Reader::OpenAi(openai::Reader::default()),
            Self::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
        }
    }
}

/// Reader of the events of one response.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Of chat completions.
    OpenAi(openai::Reader),
    /// Of messages.
    Anthropic(anthropic::Reader),
}

impl Reader {
    /// Reads an event.
    pub(crate) fn read(&mut self, frame: &Frame) -> Result<Vec<Read>, BrokenStream> {
        match self {
            Self::OpenAi(reader) => reader.read(frame),
            Self::Anthropic(reader) => reader.read(frame),
        }
    }
}

/// The text at a path of an object; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a path of an object.
fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}
