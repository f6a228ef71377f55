//! Requests that the provider receives.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::tcp::OwnedReadHalf,
};

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path of the URL.
    pub path: String,
    /// Headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

impl Request {
    /// True if the request asks for a stream.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.body
            .get("stream")
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }

    /// True if it is one of messages, not of chat completions.
    #[must_use]
    pub fn is_messages(&self) -> bool {
        self.path.ends_with("/messages")
    }

    /// Reads the next request of a connection; `None` at its end.
    pub(crate) async fn read(reader: &mut BufReader<OwnedReadHalf>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length")?.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await.ok()?;
        Some(Self {
            path,
            headers,
            body: serde_json::from_slice(&body).ok()?,
        })
    }
}
