//! Client of the job API of a Ray cluster, over HTTP or HTTPS.
//!
//! **Invariants.** No port, no domain, no state. Responses and errors are facts: a job that Ray does not
//! know is `None`, and a duplicate submission is [`Submission::AlreadyExists`].

#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::Full;
use labdata_http_client::{Authorities, HttpClient, HttpError, InvalidAuthorities};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a response, in bytes: a whole log with every character escaped.
const MAX_RESPONSE_BYTES: usize = 80 << 20;

/// Address of a cluster, and what it takes to call it.
#[derive(Clone, Default)]
pub struct Access {
    /// Address of the job API, `http://host:8265` or `https://host:8265`.
    pub address: String,
    /// Bearer token, if the cluster requires one.
    pub token: Option<String>,
    /// PEM file of the certificate authorities that are trusted instead of the machine's.
    pub ca_file: Option<PathBuf>,
}

impl fmt::Debug for Access {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("address", &self.address)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

/// Client of one cluster.
#[derive(Clone)]
pub struct RayClient {
    http: HttpClient<Full<Bytes>>,
    base: String,
    token: Option<String>,
    sends_in_clear: bool,
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
    #[error("the Ray cluster at {base} does not respond: {cause}")]
    Unreachable {
        /// Address of the job API.
        base: String,
        /// Cause, in one line.
        cause: String,
    },
    /// The server's certificate is not trusted, or is not valid for the address.
    #[error(
        "the certificate of the Ray cluster at {base} is not trusted: {cause}; set \
         LABDATA_RAY_CA_FILE to the certificate of the authority that issued it"
    )]
    Untrusted {
        /// Address of the job API.
        base: String,
        /// Cause, in one line.
        cause: String,
    },
    /// The request cannot be sent.
    #[error("the request to the Ray cluster at {base} is invalid: {cause}")]
    InvalidRequest {
        /// Address of the job API.
        base: String,
        /// Cause, in one line.
        cause: String,
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
    #[error("the Ray cluster at {base} responds with {status}: {message}")]
    Status {
        /// Address of the job API.
        base: String,
        /// HTTP status.
        status: StatusCode,
        /// Last line of the response, shortened.
        message: String,
    },
    /// The response is not one of Ray's job API.
    #[error("the server at {base} has no Ray job API: {source}")]
    InvalidResponse {
        /// Address of the job API.
        base: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The response is longer than the client reads.
    #[error("a response of the Ray cluster at {base} is longer than {MAX_RESPONSE_BYTES} bytes")]
    TooLong {
        /// Address of the job API.
        base: String,
    },
}

/// Address at which no cluster can be called.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// The address is no URL of HTTP or HTTPS.
    #[error("the address takes the form http://host:8265 or https://host:8265")]
    Form,
    /// The machine has no certificates that could be trusted.
    #[error("{0}, or set LABDATA_RAY_CA_FILE")]
    NoAuthorities(InvalidAuthorities),
    /// The file of certificate authorities cannot be used.
    #[error(transparent)]
    Authorities(#[from] InvalidAuthorities),
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
    /// Number of GPUs to reserve.
    #[serde(rename = "entrypoint_num_gpus", skip_serializing_if = "is_zero")]
    pub gpus: u32,
    /// Memory to reserve, in bytes.
    #[serde(rename = "entrypoint_memory", skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Environment of the job.
    #[serde(rename = "runtime_env")]
    pub runtime: RuntimeEnvironment,
    /// Labels of the job.
    pub metadata: Map<String, Value>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde expects"
)]
const fn is_zero(number: &u32) -> bool {
    *number == 0
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

/// Response by kind of status.
enum Response {
    Success(Vec<u8>),
    Failure(StatusCode, String),
}

impl RayClient {
    /// Creates a client. The cluster need not be reachable yet.
    ///
    /// # Errors
    /// [`InvalidAddress`].
    pub fn new(access: &Access) -> Result<Self, InvalidAddress> {
        let address = Address::parse(&access.address)?;
        let authorities = match &access.ca_file {
            Some(path) => Authorities::of_file(path)?,
            None if address.is_encrypted => {
                Authorities::of_machine().map_err(InvalidAddress::NoAuthorities)?
            }
            // Plain HTTP needs no authorities, and a small container may have none.
            None => Authorities::none(),
        };
        Ok(Self {
            http: HttpClient::new(authorities, CONNECT_TIMEOUT)?,
            base: address.base,
            token: access.token.clone(),
            // Requests to this machine cross no network.
            sends_in_clear: !address.is_encrypted && !address.is_this_machine,
        })
    }

    /// Returns true if scripts and the token cross a network without encryption.
    #[must_use]
    pub const fn sends_in_clear(&self) -> bool {
        self.sends_in_clear
    }

    /// Submits a job.
    ///
    /// # Errors
    /// [`RayError`].
    pub async fn submit(&self, job: &JobRequest) -> Result<Submission, RayError> {
        match self.call(Method::POST, "", Some(job)).await? {
            Response::Success(_) => Ok(Submission::Created),
            // Ray responds to a duplicate id with status 500 and a traceback.
            Response::Failure(_, text) if text.contains("already exists") => {
                Ok(Submission::AlreadyExists)
            }
            Response::Failure(status, text) => Err(self.unexpected(status, &text)),
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
            Response::Success(body) => Ok(Some(body)),
            // Any other 404 is a wrong address or a proxy, behind which the job may well exist.
            Response::Failure(StatusCode::NOT_FOUND, text) if text.contains("does not exist") => {
                Ok(None)
            }
            Response::Failure(status, text) => Err(self.unexpected(status, &text)),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        job: Option<&JobRequest>,
    ) -> Result<Response, RayError> {
        let request = self.request(method, path, job).map_err(|cause| {
            let base = self.base.clone();
            RayError::InvalidRequest { base, cause }
        })?;
        let exchange = self
            .http
            .exchange(request, REQUEST_TIMEOUT, MAX_RESPONSE_BYTES);
        let response = exchange.await.map_err(|error| self.failed(error))?;
        let (status, body) = (response.status(), Vec::from(response.into_body()));
        Ok(if status.is_success() {
            Response::Success(body)
        } else {
            Response::Failure(status, String::from_utf8_lossy(&body).into_owned())
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        job: Option<&JobRequest>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = match job {
            Some(job) => {
                request = request.header(CONTENT_TYPE, "application/json");
                serde_json::to_vec(job).map_err(|error| error.to_string())?
            }
            None => Vec::new(),
        };
        let request = request.body(Full::new(Bytes::from(body)));
        request.map_err(|error| error.to_string())
    }

    /// Returns the error of a call that got no response, or not all of one.
    fn failed(&self, error: HttpError) -> RayError {
        let base = self.base.clone();
        match error {
            HttpError::TooLong(_) => RayError::TooLong { base },
            HttpError::Untrusted(cause) => RayError::Untrusted { base, cause },
            error => RayError::Unreachable {
                base,
                cause: error.to_string(),
            },
        }
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, RayError> {
        serde_json::from_slice(body).map_err(|source| RayError::InvalidResponse {
            base: self.base.clone(),
            source,
        })
    }

    fn unexpected(&self, status: StatusCode, text: &str) -> RayError {
        let base = self.base.clone();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return RayError::Unauthorized { base };
        }
        // Ray sends tracebacks, whose last line has the cause.
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        RayError::Status {
            base,
            status,
            message: last.chars().take(300).collect(),
        }
    }
}

/// Checks that a PEM file contains certificates of authorities.
///
/// # Errors
/// [`InvalidAuthorities`].
pub fn check_authorities(path: &Path) -> Result<(), InvalidAuthorities> {
    Authorities::of_file(path).map(drop)
}

/// Checks the form of a cluster's address.
///
/// # Errors
/// [`InvalidAddress`].
pub fn check_address(address: &str) -> Result<(), InvalidAddress> {
    Address::parse(address).map(drop)
}

/// Parsed address of a cluster.
struct Address {
    /// URL of the job API, with a slash at the end.
    base: String,
    is_encrypted: bool,
    is_this_machine: bool,
}

impl Address {
    fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let text = text.trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| InvalidAddress::Form)?;
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(InvalidAddress::Form),
        };
        let authority = uri.authority().ok_or(InvalidAddress::Form)?;
        // A password would stand in logs and messages.
        if authority.as_str().contains('@') {
            return Err(InvalidAddress::Form);
        }
        let host = authority.host();
        // A URI has an IPv6 address in brackets, which `IpAddr` does not read.
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let address = address.parse::<IpAddr>();
        Ok(Self {
            base: format!("{text}/api/jobs/"),
            is_encrypted,
            is_this_machine: host == "localhost"
                || address.is_ok_and(|address| address.is_loopback()),
        })
    }
}
