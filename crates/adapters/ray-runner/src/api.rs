//! Ray's job API, as far as it is used.

use std::time::Duration;

use labdata_ports::runner::RunnerError;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// How long the cluster may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// How long it may take to be reached.
const CONNECT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes: a whole log with every character escaped.
const LONGEST: usize = 80 << 20;

/// The job API of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    base: String,
    token: Option<String>,
}

/// A job's state, as Ray calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    Pending,
    Running,
    Stopped,
    Succeeded,
    Failed,
}

impl State {
    /// Whether Ray has done with it.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Stopped | Self::Succeeded | Self::Failed)
    }
}

/// A job, as far as anybody wants to know.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Job {
    pub(crate) status: State,
    #[serde(default)]
    pub(crate) message: Option<String>,
}

#[derive(Deserialize)]
struct Logs {
    logs: String,
}

/// An answer that is not the one hoped for.
enum Answer {
    Good(Vec<u8>),
    Bad(StatusCode, String),
}

impl Api {
    pub(crate) fn new(base: &str, token: Option<String>) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: Client::builder()
                .timeout(ANSWER)
                .connect_timeout(CONNECT)
                .no_proxy()
                .build()?,
            base: format!("{}/api/jobs/", base.trim_end_matches('/')),
            token,
        })
    }

    /// Submits a job; false when there is one of that id.
    pub(crate) async fn submit(&self, body: &Value) -> Result<bool, RunnerError> {
        match self.call(Method::POST, "", Some(body)).await? {
            Answer::Good(_) => Ok(true),
            // Ray answers 500, with the traceback of what is a clash of ids.
            Answer::Bad(_, text) if text.contains("already exists") => Ok(false),
            Answer::Bad(status, text) => Err(self.unexpected(status, &text)),
        }
    }

    /// The job of that id, if Ray knows it.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Job>, RunnerError> {
        let body = self.known(Method::GET, id).await?;
        body.map(|body| self.parsed(&body)).transpose()
    }

    /// The whole log of that job, if Ray knows it.
    pub(crate) async fn logs(&self, id: &str) -> Result<Option<String>, RunnerError> {
        let body = self.known(Method::GET, &format!("{id}/logs")).await?;
        let logs: Option<Logs> = body.map(|body| self.parsed(&body)).transpose()?;
        Ok(logs.map(|logs| logs.logs))
    }

    /// Asks a job to end.
    pub(crate) async fn stop(&self, id: &str) -> Result<(), RunnerError> {
        self.known(Method::POST, &format!("{id}/stop")).await?;
        Ok(())
    }

    /// Makes Ray forget a job that has ended.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), RunnerError> {
        self.known(Method::DELETE, id).await?;
        Ok(())
    }

    /// The answer to a call about one job; none when Ray does not know it.
    async fn known(&self, method: Method, path: &str) -> Result<Option<Vec<u8>>, RunnerError> {
        match self.call(method, path, None).await? {
            Answer::Good(body) => Ok(Some(body)),
            Answer::Bad(StatusCode::NOT_FOUND, text) if text.contains("does not exist") => Ok(None),
            Answer::Bad(status, text) => Err(self.unexpected(status, &text)),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, RunnerError> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let broken = |error: reqwest::Error| {
            RunnerError::Unavailable(format!(
                "the Ray cluster at {} does not answer: {error}",
                self.base
            ))
        };
        let response = request.send().await.map_err(broken)?;
        let status = response.status();
        let body = self.body(response).await?;
        Ok(if status.is_success() {
            Answer::Good(body)
        } else {
            Answer::Bad(status, String::from_utf8_lossy(&body).into_owned())
        })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, RunnerError> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(piece)) if body.len() + piece.len() <= LONGEST => body.extend(piece),
                Ok(None) => return Ok(body),
                Ok(Some(_)) => {
                    return Err(RunnerError::Unavailable(format!(
                        "an answer of the Ray cluster is longer than {LONGEST} bytes"
                    )));
                }
                Err(error) => {
                    return Err(RunnerError::Unavailable(format!(
                        "the Ray cluster at {} broke off: {error}",
                        self.base
                    )));
                }
            }
        }
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, RunnerError> {
        serde_json::from_slice(body).map_err(|error| {
            RunnerError::Unavailable(format!(
                "what answers at {} is no Ray job API: {error}",
                self.base
            ))
        })
    }

    fn unexpected(&self, status: StatusCode, text: &str) -> RunnerError {
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        let last: String = last.chars().take(300).collect();
        RunnerError::Unavailable(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!(
                "the Ray cluster at {} refuses the token; set LABDATA_RAY_TOKEN to the cluster's \
                 RAY_AUTH_TOKEN",
                self.base
            ),
            _ => format!("the Ray cluster at {} answers {status}: {last}", self.base),
        })
    }
}
