//! An event stream, as a client reads it.

use reqwest::{Method, Response};
use serde_json::Value;

use crate::server::Client;

pub(crate) const PATH: &str = "/api/v1/events";

/// An open event stream.
pub(crate) struct Stream {
    response: Response,
    received: String,
}

impl Stream {
    /// Follows from now on.
    pub(crate) async fn open(client: &Client) -> Self {
        Self::of(client.request(Method::GET, PATH)).await
    }

    /// Follows after that event.
    pub(crate) async fn resume(client: &Client, id: &str) -> Self {
        let request = client.request(Method::GET, PATH);
        Self::of(request.header("Last-Event-ID", id)).await
    }

    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self {
            response,
            received: String::new(),
        }
    }

    /// The data of the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, _)) = self.received.split_once("\n\n") {
                let block = block.to_owned();
                self.received.drain(..block.len() + 2);
                if block == ": ping" {
                    continue;
                }
                let lines: Vec<&str> = block.lines().collect();
                let [name, id, data] = lines.as_slice() else {
                    panic!("{block}");
                };
                let data: Value =
                    serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
                assert_eq!(id.strip_prefix("id: "), data["id"].as_str());
                return Some(data);
            }
            let part = self.response.chunk().await.unwrap()?;
            self.received.push_str(std::str::from_utf8(&part).unwrap());
        }
    }

    /// Types and references of the next events.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<(Value, Value)> {
        let mut events = Vec::new();
        for _ in 0..count {
            let mut event = self.next().await.expect("an event");
            assert_eq!(event.as_object().unwrap().len(), 4, "{event}");
            events.push((event["type"].take(), event["data"].take()));
        }
        events
    }
}
