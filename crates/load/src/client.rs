//! An HTTP client that retries as `docs/API.md` tells clients to, and measures every attempt.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, Url,
    header::{HeaderMap, LINK, RETRY_AFTER},
    multipart::{Form, Part},
};
use serde_json::Value;

use crate::statistics::{Attempt, Statistics};

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_mins(1);

/// First and longest pause after a lost connection.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A longer `Retry-After` is a cap rather than a moment without a free place.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// Body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    Empty,
    Json(Value),
    Form {
        fields: Vec<(&'static str, String)>,
        file_name: String,
        bytes: Bytes,
    },
    Bytes(Bytes),
}

/// A request, sent until it is answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Method and route, for the report.
    pub(crate) endpoint: &'static str,
    method: Method,
    /// Path of a server, or a complete URL, which is called without a key.
    target: String,
    payload: Payload,
    headers: Vec<(String, String)>,
    key: Option<String>,
    repeatable: bool,
}

impl Request {
    /// Creates a request that may be repeated.
    pub(crate) fn new(
        endpoint: &'static str,
        method: Method,
        target: impl Into<String>,
        payload: Payload,
    ) -> Self {
        Self {
            endpoint,
            method,
            target: target.into(),
            payload,
            headers: Vec::new(),
            key: None,
            repeatable: true,
        }
    }

    /// Creates a GET.
    pub(crate) fn get(endpoint: &'static str, path: impl Into<String>) -> Self {
        Self::new(endpoint, Method::GET, path, Payload::Empty)
    }

    /// Creates a POST of JSON.
    pub(crate) fn post(endpoint: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(endpoint, Method::POST, path, Payload::Json(body))
    }

    /// Makes repetitions safe.
    pub(crate) fn idempotent(mut self, key: impl Into<String>) -> Self {
        self.headers
            .push(("Idempotency-Key".to_owned(), key.into()));
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Forbids a second attempt where the first may have had its effect.
    pub(crate) fn once(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// Presents another key.
    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A text field of the body; empty if there is none.
    pub(crate) fn text(&self, field: &str) -> String {
        text_of(&self.json(), field)
    }

    /// Path and query of the next page, from the `Link` header.
    pub(crate) fn next_page(&self) -> Option<Url> {
        let link = self.headers.get(LINK)?.to_str().ok()?;
        let (url, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
        relation.contains("rel=\"next\"").then_some(())?;
        Url::parse(url).ok()
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    fn attempt(&self) -> Attempt {
        if self.has_unknown_outcome() {
            Attempt::OutcomeUnknown
        } else {
            Attempt::Status(self.status)
        }
    }

    /// Returns true for an error that leaves open whether the request had its effect.
    fn has_unknown_outcome(&self) -> bool {
        self.status == 500 && self.text("code") == "outcome_unknown"
    }
}

/// A text field of an object; empty if there is none.
pub(crate) fn text_of(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Result of a request with all its repetitions.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Status 2xx: the effect is acknowledged.
    Done(Response),
    /// Another status, which says that there was no effect.
    Refused(Response),
    /// No final response: the effect may be there.
    Unknown,
}

/// A client of all servers.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    urls: Vec<String>,
    key: String,
    retry: Duration,
    turn: AtomicUsize,
    pub(crate) statistics: Arc<Statistics>,
}

impl Client {
    /// Creates a client of the servers at `urls`, which take turns.
    pub(crate) fn new(urls: &[String], key: &str, retry: Duration) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .build()?;
        let urls = urls.iter().map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self {
            http,
            urls: urls.collect(),
            key: key.to_owned(),
            retry,
            turn: AtomicUsize::new(0),
            statistics: Arc::default(),
        })
    }

    /// Sends the request until it has a response, for as long as retries last.
    pub(crate) async fn send(&self, request: &Request) -> Outcome {
        let until = Instant::now() + self.retry;
        let mut pause = PAUSES.0;
        loop {
            let began = Instant::now();
            let response = self.attempt(request).await;
            let attempt = response.as_ref().map_or(Attempt::Lost, Response::attempt);
            self.statistics
                .record(request.endpoint, attempt, began.elapsed());
            let wait = match response {
                None if !request.repeatable => return Outcome::Unknown,
                None => {
                    let wait = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    wait
                }
                Some(response) if (200..300).contains(&response.status) => {
                    return Outcome::Done(response);
                }
                Some(response) if matches!(response.status, 429 | 503) => {
                    // Workers are started by an operator, so the platform cannot say when.
                    let is_without_worker = response.text("code") == "training_unavailable";
                    let wait = response.retry_after();
                    let Some(wait) = wait.or(is_without_worker.then_some(PAUSES.1)) else {
                        self.wrong(request, &response, "has no Retry-After");
                        return Outcome::Unknown;
                    };
                    let is_unknown = response.status == 503;
                    if is_unknown && !request.repeatable {
                        return Outcome::Unknown;
                    }
                    if !is_unknown && wait > LONGEST_RETRY_AFTER {
                        return Outcome::Refused(response);
                    }
                    wait.max(PAUSES.0)
                }
                // The server was stopped while the request came in, and has not begun.
                Some(response) if response.status == 408 => {
                    let wait = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    wait
                }
                // The connection to the database broke during the commit.
                Some(response) if response.has_unknown_outcome() => {
                    if !request.repeatable {
                        return Outcome::Unknown;
                    }
                    let wait = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    wait
                }
                Some(response) if response.status >= 500 => {
                    self.wrong(request, &response, "");
                    return Outcome::Unknown;
                }
                Some(response) => return Outcome::Refused(response),
            };
            if Instant::now() + wait > until {
                return Outcome::Unknown;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a request that must succeed; other responses are problems and yield `None`.
    pub(crate) async fn expect(&self, request: &Request) -> Option<Response> {
        match self.send(request).await {
            Outcome::Done(response) => Some(response),
            Outcome::Refused(response) => {
                self.wrong(request, &response, "was not expected");
                None
            }
            Outcome::Unknown => None,
        }
    }

    /// Adds a response that the platform must not give to the report.
    pub(crate) fn wrong(&self, request: &Request, response: &Response, why: &str) {
        let body: String = String::from_utf8_lossy(&response.body)
            .chars()
            .take(300)
            .collect();
        let (endpoint, status) = (request.endpoint, response.status);
        self.statistics
            .problem(format!("{endpoint}: {status} {why}: {body}"));
    }

    /// Opens a stream, without retries and without a time limit.
    pub(crate) async fn open(&self, request: &Request) -> Option<reqwest::Response> {
        let response = self.build(request).send().await.ok()?;
        response.status().is_success().then_some(response)
    }

    async fn attempt(&self, request: &Request) -> Option<Response> {
        let response = self.build(request).timeout(ATTEMPT).send().await.ok()?;
        Some(Response {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes().await.ok()?,
        })
    }

    fn build(&self, request: &Request) -> RequestBuilder {
        let is_url = request.target.starts_with("http");
        let mut builder = if is_url {
            self.http.request(request.method.clone(), &request.target)
        } else {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let base = self.urls.get(turn % self.urls.len().max(1));
            let base = base.map_or("", String::as_str);
            self.http
                .request(request.method.clone(), format!("{base}{}", request.target))
                .bearer_auth(request.key.as_ref().unwrap_or(&self.key))
        };
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        match &request.payload {
            Payload::Empty => builder,
            Payload::Json(body) => builder.json(body),
            Payload::Bytes(bytes) => builder.body(bytes.clone()),
            Payload::Form {
                fields,
                file_name,
                bytes,
            } => {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let file = Part::stream_with_length(bytes.clone(), length);
                let form = fields.iter().fold(Form::new(), |form, (name, value)| {
                    form.text(*name, value.clone())
                });
                builder.multipart(form.part("file", file.file_name(file_name.clone())))
            }
        }
    }
}
