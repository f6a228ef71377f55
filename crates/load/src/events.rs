//! Follows the organization's events over all interruptions.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use serde_json::Value;
use tokio::{sync::watch, task::AbortHandle};

use crate::client::{Client, Request, text_of};

/// Pause before the stream is opened again.
const PAUSE: Duration = Duration::from_millis(200);

/// Ids of the events `file.confirmed` by file.
type Confirmed = HashMap<String, HashSet<String>>;

/// The events that were received.
#[derive(Debug)]
pub(crate) struct Follower {
    confirmed: Arc<Mutex<Confirmed>>,
    task: AbortHandle,
}

impl Follower {
    /// Opens the stream, and returns once it is open.
    pub(crate) async fn start(client: Arc<Client>) -> Self {
        let confirmed: Arc<Mutex<Confirmed>> = Arc::default();
        let (opened, mut is_open) = watch::channel(false);
        let task = tokio::spawn(follow(client, Arc::clone(&confirmed), opened));
        // The sender lives as long as the task, which does not end.
        let _ = is_open.wait_for(|open| *open).await;
        Self {
            confirmed,
            task: task.abort_handle(),
        }
    }

    /// Number of events that announce a file.
    pub(crate) fn confirmations(&self, file: &str) -> usize {
        locked(&self.confirmed).get(file).map_or(0, HashSet::len)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(confirmed: &Mutex<Confirmed>) -> MutexGuard<'_, Confirmed> {
    confirmed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the stream, and opens it again after the last event when it ends.
async fn follow(
    client: Arc<Client>,
    confirmed: Arc<Mutex<Confirmed>>,
    opened: watch::Sender<bool>,
) {
    let mut last = String::new();
    loop {
        let mut request = Request::get("GET /events", "/api/v1/events");
        if !last.is_empty() {
            request = request.header("Last-Event-ID", &last);
        }
        if let Some(response) = client.open(&request).await {
            opened.send_replace(true);
            let mut stream = response.bytes_stream();
            let mut received = Vec::new();
            while let Some(Ok(bytes)) = stream.next().await {
                received.extend_from_slice(&bytes);
                while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = received.drain(..=end).collect();
                    if let Some(id) = enter(&line, &confirmed) {
                        last = id;
                    }
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Enters a line of the stream; returns the id of its event.
fn enter(line: &[u8], confirmed: &Mutex<Confirmed>) -> Option<String> {
    let data = line.strip_prefix(b"data:")?;
    let event: Value = serde_json::from_slice(data).ok()?;
    let id = text_of(&event, "id");
    if text_of(&event, "type") == "file.confirmed" {
        let file = event.pointer("/data/file_id").and_then(Value::as_str)?;
        let mut confirmed = locked(confirmed);
        confirmed
            .entry(file.to_owned())
            .or_default()
            .insert(id.clone());
    }
    (!id.is_empty()).then_some(id)
}
