//! The program's settings (contract §1), from `labdata.toml`, the environment and flags, in rising
//! precedence.
//!
//! Every value is checked before anything starts. A wrong value is refused with one line that names
//! the setting as the person wrote it, and the accepted values.

mod flags;
mod list;
mod load;
mod oidc;
mod read;
mod source;
mod values;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;
use labdata_domain::{
    people::PlainApiKey,
    storage::StorageQuota,
    work::{Isolation, LogRetention, SharedBackend},
};

pub use flags::Flags;
pub use labdata_redacted::Secret;
pub use oidc::OidcSettings;
pub(crate) use source::unknown_variables;

/// A wrong setting: one line for the person who set it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

impl From<SharedBackend> for SettingsError {
    fn from(refusal: SharedBackend) -> Self {
        Self(refusal.to_string())
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logging settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Levels in the form of `tracing_subscriber::filter::Targets`; `None` for the command's default.
    pub filter: Option<String>,
    /// Format of log lines.
    pub format: LogFormat,
}

/// Backend that runs scripts or trains models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Processes on this machine.
    Local,
    /// A Ray cluster's job API at this HTTP or HTTPS URL.
    Ray(Secret),
}

/// Network of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum JobNetwork {
    /// The platform and public addresses.
    #[default]
    Internet,
    /// The platform only.
    Platform,
    /// The network of the machine.
    All,
}

/// API of the language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmProvider {
    /// `OpenAI`, or any compatible server.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

/// The language model of agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmSettings {
    /// API; `None` disables agent runs.
    pub provider: Option<LlmProvider>,
    /// Base URL; `None` for the provider's default.
    pub base_url: Option<Secret>,
    /// API key.
    pub api_key: Option<Secret>,
    /// Model of runs that name none.
    pub model: Option<String>,
    /// Models that a request may name.
    pub models: Vec<String>,
    /// Maximum wait for the next byte, in seconds.
    pub timeout_seconds: u32,
}

/// Limits of agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// Maximum number of steps of a run.
    pub max_steps: u32,
    /// Maximum number of tool calls of a run.
    pub max_tool_calls: u32,
    /// Maximum duration of a run, in minutes.
    pub timeout_minutes: u32,
    /// Maximum number of concurrent runs of an organization.
    pub concurrency: u32,
    /// Number of tokens that an organization may use in a month.
    pub monthly_tokens: Option<u64>,
    /// Maximum number of concurrent Python snippets.
    pub python_concurrency: u32,
}

/// Notification and e-mail settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationSettings {
    /// URL of the mail server.
    pub smtp_url: Option<Secret>,
    /// The sender's address.
    pub mail_from: Option<String>,
    /// Maximum notifications to a user per hour.
    pub per_hour: u32,
    /// Maximum notifications in an organization per day.
    pub per_day: u32,
}

/// Settings of trainings. What is not set depends on the machine or the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingSettings {
    /// Backend that trains models.
    pub backend: Backend,
    /// Time limit of the fit.
    pub time_limit: Duration,
    /// Number of processors; `None` for all of this machine, and one of a cluster.
    pub cpus: Option<u32>,
    /// Memory in bytes; `None` for most of this machine.
    pub memory: Option<u64>,
    /// Number of GPUs of a cluster.
    pub gpus: u32,
    /// Maximum number of concurrent trainings.
    pub concurrency: u32,
    /// Directory of pretrained models.
    pub checkpoints: Option<PathBuf>,
}

/// Settings of models that predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictorSettings {
    /// Maximum number of processes.
    pub limit: u32,
    /// Time without a prediction after which a process is ended.
    pub idle: Duration,
    /// Memory of a process, in bytes.
    pub memory: u64,
}

/// Settings of SQL logins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlSettings {
    /// Listening address of PostgreSQL's protocol, with the embedded PostgreSQL.
    pub bind: Option<SocketAddr>,
    /// Files of certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// True if several organizations may share the catalogs of PostgreSQL.
    pub is_shared: bool,
}

/// All settings, checked.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Listening address.
    pub bind: SocketAddr,
    /// True if `bind` was set, false if it is the default.
    pub bind_given: bool,
    /// The data directory.
    pub data_dir: PathBuf,
    /// URL of the database; `None` for the embedded one.
    pub database_url: Option<Secret>,
    /// URL of a replica that runs queries; `None` for the database itself.
    pub query_database_url: Option<Secret>,
    /// Directory of the embedded server's programs; `None` to search.
    pub pg_bin_dir: Option<PathBuf>,
    /// URL of the file storage; `None` for the data directory.
    pub storage_url: Option<String>,
    /// True if clients upload directly to the cloud; `None` for the storage's default.
    pub direct_uploads: Option<bool>,
    /// Quota of an organization.
    pub storage_quota: StorageQuota,
    /// Maximum time in which a table is sent while it is read.
    pub export_time: Duration,
    /// Retention of logs.
    pub log_retention: LogRetention,
    /// Keys with the write scope may make tables and add columns.
    pub writers_define_tables: bool,
    /// Days for which earlier versions of rows and series are retained.
    pub history_days: Option<u32>,
    /// Days for which deleted files, tables and columns can be restored.
    pub trash_days: u32,
    /// Triggers, schedules and backfills run published versions of scripts only.
    pub jobs_require_published: bool,
    /// Base of signed URLs; `None` for the listening address.
    pub public_url: Option<String>,
    /// Admin key to store at the first start; `None` to create one.
    pub bootstrap_key: Option<PlainApiKey>,
    /// Sign-in by an identity provider.
    pub oidc: Option<OidcSettings>,
    /// Backend that runs job scripts.
    pub job_backend: Backend,
    /// True if several organizations may share a Ray cluster.
    pub job_ray_shared: bool,
    /// Trainings of models.
    pub trainings: TrainingSettings,
    /// Models that predict.
    pub predictors: PredictorSettings,
    /// Time that a client may keep a response waiting.
    pub stall: Duration,
    /// Maximum time until the response to a request without a file.
    pub request_timeout: Duration,
    /// Maximum number of requests of one API key per minute; `None` for no limit.
    pub rate_limit_per_minute: Option<u32>,
    /// Bearer token of the Ray cluster.
    pub ray_token: Option<Secret>,
    /// Certificate authorities of the Ray cluster; `None` for those of the machine.
    pub ray_ca_file: Option<PathBuf>,
    /// Python interpreter of scripts that run on this machine.
    pub python: Option<PathBuf>,
    /// Path of uv, which installs their dependencies.
    pub uv: Option<PathBuf>,
    /// Least isolation under which scripts run on this machine; `None` for the command's default.
    pub job_isolation: Option<Isolation>,
    /// Network of scripts that run on this machine.
    pub job_network: JobNetwork,
    /// Private networks that scripts reach nevertheless.
    pub job_network_allow: Vec<IpNet>,
    /// Private networks that webhooks reach nevertheless.
    pub webhook_allow: Vec<IpNet>,
    /// PostgreSQL for people's tools.
    pub sql: SqlSettings,
    /// Maximum size of installed dependencies per organization, in bytes.
    pub job_cache_quota: u64,
    /// Maximum number of concurrent runs.
    pub job_concurrency: u32,
    /// Time limit of a script, in minutes.
    pub job_timeout_minutes: u32,
    /// The language model.
    pub llm: LlmSettings,
    /// Limits of agent runs.
    pub agent: AgentSettings,
    /// Notifications.
    pub notifications: NotificationSettings,
    /// Logs.
    pub log: LogSettings,
}

impl Settings {
    /// URL of the file storage.
    #[must_use]
    pub fn storage_url(&self) -> String {
        self.storage_url
            .clone()
            .unwrap_or_else(|| objects_below(&self.data_dir))
    }

    /// True if the server cannot know its own name, so that URLs in responses follow the request's `Host`.
    #[must_use]
    pub fn follows_host(&self) -> bool {
        self.public_url.is_none() && self.bind.ip().is_unspecified()
    }

    /// Base of the platform's URLs for a server that listens on this address.
    #[must_use]
    pub fn public_url(&self, listening: SocketAddr) -> String {
        self.public_url.clone().unwrap_or_else(|| url_of(listening))
    }
}

/// Builds `file://<data dir>/objects`.
fn objects_below(data_dir: &Path) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    // Readers decode the URL, so a `%` in a directory's name has to be escaped.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b'/');
    let path = data_dir.join("objects");
    format!(
        "file://{}",
        utf8_percent_encode(&path.to_string_lossy(), ESCAPED)
    )
}

/// URL of the address as seen from this machine: loopback replaces an unspecified address.
#[must_use]
pub fn url_of(address: SocketAddr) -> String {
    let mut address = address;
    // 0.0.0.0 is an address to listen on; connecting to it works on some systems only.
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_url_names_every_interface() {
        assert_eq!(url_of("0.0.0.0:80".parse().unwrap()), "http://127.0.0.1:80");
        assert_eq!(url_of("[::]:80".parse().unwrap()), "http://[::1]:80");
    }
}
