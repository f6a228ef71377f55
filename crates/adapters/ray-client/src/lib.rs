//! Client of the job API of a Ray cluster, over HTTP.
//!
//! **Invariants.** No port, no domain, no state. Answers and errors are facts: a job that Ray does not
//! know is `None`, and a duplicate submission is [`Submission::AlreadyExists`].

use std::{fmt, time::Duration};

use reqwest::{Client, Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of an answer, in bytes: a whole log with every character escaped.
const MAX_ANSWER_BYTES: usize = 80 << 20;

/// Client of one cluster.
#[derive(Clone)]
pub struct RayClient {
    http: Client,
    base: String,
    token: Option<String>,
}

impl fmt::Debug for RayClient {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RayClient")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// Error of a call.
#[derive(Debug, thiserror::Error)]
pub enum RayError {
    /// The cluster cannot be reached, or the connection broke.
    #[error("the Ray cluster at {base} does not answer: {source}")]
    Unreachable {
        /// Address of the job API.
        base: String,
        /// Cause.
        source: reqwest::Error,
    },
    /// The cluster rejected the token.
    #[error(
        "the Ray cluster at {base} refuses the token; set LABDATA_RAY_TOKEN to the cluster's \
         RAY_AUTH_TOKEN"
    )]
    Unauthorized {
        /// Address of the job API.
        base: String,
    },
    /// The cluster answered with an unexpected status.
    #[error("the Ray cluster at {base} answers {status}: {message}")]
    Status {
        /// Address of the job API.
        base: String,
        /// HTTP status.
        status: StatusCode,
        /// Last line of the answer, shortened.
        message: String,
    },
    /// The answer is not one of Ray's job API.
    #[error("the server at {base} has no Ray job API: {source}")]
    InvalidAnswer {
        /// Address of the job API.
        base: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The answer is longer than the client reads.
    #[error("an answer of the Ray cluster at {base} is longer than {MAX_ANSWER_BYTES} bytes")]
    TooLong {
        /// Address of the job API.
        base: String,
    },
}

/// Address at which no cluster can be called.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// The address has another scheme than `http`.
    #[error(
        "only http:// addresses are supported; use a private network or a tunnel to the cluster"
    )]
    Scheme,
    /// The HTTP client could not be created.
    #[error("{0}")]
    Client(reqwest::Error),
}

/// Job to submit.
#[derive(Clone, Debug, Serialize)]
pub struct JobRequest {
    /// Unique id of the job.
    pub submission_id: String,
    /// Shell command.
    pub entrypoint: String,
    /// Number of processors to reserve.
    #[serde(rename = "entrypoint_num_cpus")]
    pub processors: u32,
    /// Environment of the job.
    #[serde(rename = "runtime_env")]
    pub runtime: RuntimeEnvironment,
    /// Labels of the job.
    pub metadata: Map<String, Value>,
}

/// Runtime environment of a job.
#[derive(Clone, Default, Serialize)]
pub struct RuntimeEnvironment {
    /// Environment variables.
    #[serde(rename = "env_vars")]
    pub variables: Map<String, Value>,
}

impl fmt::Debug for RuntimeEnvironment {
    /// Without the values: one is a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Result of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// The job was created.
    Created,
    /// A job of that id exists.
    AlreadyExists,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// Waits for resources, or for its runtime environment.
    Pending,
    /// Runs.
    Running,
    /// Was stopped by a request.
    Stopped,
    /// Ended with exit code 0.
    Succeeded,
    /// Ended with another exit code, or could not be started.
    Failed,
}

impl JobStatus {
    /// Returns whether the job has ended.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Stopped | Self::Succeeded | Self::Failed)
    }
}

/// Job of a cluster.
#[derive(Clone, Debug, Deserialize)]
pub struct Job {
    /// State of the job.
    pub status: JobStatus,
    /// Explanation of the state, if Ray gives one.
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Deserialize)]
struct Logs {
    logs: String,
}

/// Answer by kind of status.
enum Answer {
    Success(Vec<u8>),
    Failure(StatusCode, String),
}

impl RayClient {
    /// Creates a client for the job API at that address (`http://host:8265`), with a bearer token if
    /// the cluster requires one. The cluster need not be reachable yet.
    ///
    /// # Errors
    /// [`InvalidAddress`].
    pub fn new(address: &str, token: Option<String>) -> Result<Self, InvalidAddress> {
        if !address.starts_with("http://") {
            return Err(InvalidAddress::Scheme);
        }
        Ok(Self {
            http: Client::builder()
                .timeout(REQUEST_TIMEOUT)
                .connect_timeout(CONNECT_TIMEOUT)
                .no_proxy()
                .build()
                .map_err(InvalidAddress::Client)?,
            base: format!("{}/api/jobs/", address.trim_end_matches('/')),
            token,
        })
    }

    /// Submits a job.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn submit(&self, job: &JobRequest) -> Result<Submission, RayError> {
        match self.call(Method::POST, "", Some(job)).await? {
            Answer::Success(_) => Ok(Submission::Created),
            // Ray answers a duplicate id with status 500 and a traceback.
            Answer::Failure(_, text) if text.contains("already exists") => {
                Ok(Submission::AlreadyExists)
            }
            Answer::Failure(status, text) => Err(self.unexpected(status, &text)),
        }
    }

    /// Returns the job of that id, if Ray knows it.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn get(&self, id: &str) -> Result<Option<Job>, RayError> {
        let body = self.call_job(Method::GET, id).await?;
        body.map(|body| self.parsed(&body)).transpose()
    }

    /// Returns the whole log of that job, if Ray knows it.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn logs(&self, id: &str) -> Result<Option<String>, RayError> {
        let body = self.call_job(Method::GET, &format!("{id}/logs")).await?;
        let logs: Option<Logs> = body.map(|body| self.parsed(&body)).transpose()?;
        Ok(logs.map(|logs| logs.logs))
    }

    /// Requests the end of a job. Succeeds if Ray does not know it.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn stop(&self, id: &str) -> Result<(), RayError> {
        self.call_job(Method::POST, &format!("{id}/stop")).await?;
        Ok(())
    }

    /// Deletes the record of a job that has ended. Succeeds if Ray does not know it.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn delete(&self, id: &str) -> Result<(), RayError> {
        self.call_job(Method::DELETE, id).await?;
        Ok(())
    }

    /// Calls an operation of one job. Returns none if Ray does not know it.
    async fn call_job(&self, method: Method, path: &str) -> Result<Option<Vec<u8>>, RayError> {
        match self.call(method, path, None).await? {
            Answer::Success(body) => Ok(Some(body)),
            Answer::Failure(StatusCode::NOT_FOUND, text) if text.contains("does not exist") => {
                Ok(None)
            }
            Answer::Failure(status, text) => Err(self.unexpected(status, &text)),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        job: Option<&JobRequest>,
    ) -> Result<Answer, RayError> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(job) = job {
            request = request.json(job);
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let body = self.body(response).await?;
        Ok(if status.is_success() {
            Answer::Success(body)
        } else {
            Answer::Failure(status, String::from_utf8_lossy(&body).into_owned())
        })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, RayError> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(piece)) if body.len() + piece.len() <= MAX_ANSWER_BYTES => {
                    body.extend(piece);
                }
                Ok(None) => return Ok(body),
                Ok(Some(_)) => {
                    return Err(RayError::TooLong {
                        base: self.base.clone(),
                    });
                }
                Err(error) => return Err(self.unreachable(error)),
            }
        }
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, RayError> {
        serde_json::from_slice(body).map_err(|source| RayError::InvalidAnswer {
            base: self.base.clone(),
            source,
        })
    }

    fn unreachable(&self, source: reqwest::Error) -> RayError {
        RayError::Unreachable {
            base: self.base.clone(),
            source,
        }
    }

    fn unexpected(&self, status: StatusCode, text: &str) -> RayError {
        let base = self.base.clone();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return RayError::Unauthorized { base };
        }
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        RayError::Status {
            base,
            status,
            message: last.chars().take(300).collect(),
        }
    }
}
