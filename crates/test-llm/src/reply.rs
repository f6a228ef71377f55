//! Replies of the provider, in terms of both dialects.

use std::time::Duration;

use serde_json::Value;

/// Reply to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status; a body with an error unless it is 200.
    pub status: u16,
    /// Headers besides the usual ones; a `content-type` replaces the usual one.
    pub headers: Vec<(String, String)>,
    /// Message of an error.
    pub message: String,
    /// Texts, each of which is one event.
    pub texts: Vec<String>,
    /// Tool calls.
    pub calls: Vec<Call>,
    /// Reported usage.
    pub usage: Usage,
    /// Reason of the end, as chat completions call it: `stop`, `length` or `content_filter`. Tool calls
    /// have one of their own.
    pub finish_reason: &'static str,
    /// Pause before each event.
    pub pace: Duration,
    /// Maximum number of bytes that are sent at once; an event may be cut anywhere.
    pub split: Option<usize>,
    /// Fault of the reply.
    pub fault: Option<Fault>,
}

/// A tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments as text, which need not be JSON.
    pub arguments: String,
}

/// Reported tokens.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Of the request.
    pub input: u64,
    /// Of the response.
    pub output: u64,
}

/// Something that providers get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is accepted and closed without a response.
    NoResponse,
    /// The connection stays open, and no byte is ever sent.
    Silence,
    /// Status and headers are sent, and nothing more.
    SilentBody,
    /// The connection stays open after the texts, and no byte follows.
    SilentEnd,
    /// The stream ends, as if it were complete, without the mark of its end.
    NoEnd,
    /// The connection is reset after the texts.
    Reset,
    /// The parts of tool calls have no index.
    NoIndex,
    /// All tool calls have the same index.
    CollidingIndex,
    /// Indexes of tool calls begin at 1.
    IndexFromOne,
    /// Every tool call comes twice, with the same id and another index.
    DuplicateCalls,
    /// An event is no JSON.
    Garbage,
    /// The provider reports an error after the texts, in the stream.
    ErrorEvent,
    /// One event never ends.
    EndlessEvent,
}

impl Fault {
    /// All faults with their names, as the example program takes them.
    pub const ALL: [(&'static str, Self); 13] = [
        ("no-answer", Self::NoResponse),
        ("silence", Self::Silence),
        ("silent-body", Self::SilentBody),
        ("silent-end", Self::SilentEnd),
        ("no-end", Self::NoEnd),
        ("reset", Self::Reset),
        ("no-index", Self::NoIndex),
        ("colliding-index", Self::CollidingIndex),
        ("index-from-one", Self::IndexFromOne),
        ("duplicate-calls", Self::DuplicateCalls),
        ("garbage", Self::Garbage),
        ("error-event", Self::ErrorEvent),
        ("endless-event", Self::EndlessEvent),
    ];
}

impl Reply {
    /// A response with that text, word by word.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            message: String::new(),
            texts: text.split_inclusive(' ').map(str::to_owned).collect(),
            calls: Vec::new(),
            usage: Usage {
                input: 12,
                output: 5,
            },
            finish_reason: "stop",
            pace: Duration::ZERO,
            split: None,
            fault: None,
        }
    }

    /// A response that calls a tool.
    #[must_use]
    pub fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::text("").and_call(id, name, &arguments.to_string())
    }

    /// The reply with a further tool call, whose arguments need not be JSON.
    #[must_use]
    pub fn and_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.calls.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
        self
    }

    /// A refusal.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            ..Self::text("")
        }
    }

    /// The reply with a further header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The reply with a pause before each event.
    #[must_use]
    pub fn with_pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    /// The reply cut into chunks of that many bytes.
    #[must_use]
    pub fn with_split(self, bytes: usize) -> Self {
        Self {
            split: Some(bytes),
            ..self
        }
    }

    /// The reply with that fault.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }
}
