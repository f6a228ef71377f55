//! The program's settings (contract §1), from the environment, `labdata.toml` and flags, in rising
//! precedence.
//!
//! Every value is checked before anything starts. A wrong value is refused with one line that names
//! the setting as the person wrote it, and the accepted values.

mod flags;
mod list;
mod read;
mod secret;
mod source;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use labdata_domain::keys::PlainApiKey;

pub use flags::Flags;
pub use secret::Secret;

/// A wrong setting: one line for the person who set it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

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
    /// Directives of `tracing_subscriber::EnvFilter`; `None` for the command's default.
    pub filter: Option<String>,
    /// Format of log lines.
    pub format: LogFormat,
}

/// Backend that runs scripts or trains models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Processes on this machine.
    Local,
    /// A Ray cluster's job API at this HTTP URL.
    Ray(String),
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
    pub base_url: Option<String>,
    /// API key.
    pub api_key: Option<Secret>,
    /// Model of runs that name none.
    pub model: Option<String>,
    /// Models that a request may name.
    pub models: Vec<String>,
    /// Maximum wait for the next byte, in seconds.
    pub timeout_seconds: u32,
    /// Maximum number of steps of a run.
    pub max_steps: u32,
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

/// All settings, checked.
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
    /// Directory of the embedded server's programs; `None` to search.
    pub pg_bin_dir: Option<PathBuf>,
    /// URL of the file storage; `None` for the data directory.
    pub storage_url: Option<String>,
    /// True if clients upload directly to the cloud; `None` for the storage's default.
    pub direct_uploads: Option<bool>,
    /// Base of signed URLs; `None` for the listening address.
    pub public_url: Option<String>,
    /// Admin key to store at the first start; `None` to create one.
    pub bootstrap_key: Option<PlainApiKey>,
    /// Backend that runs job scripts.
    pub job_backend: Backend,
    /// Backend that trains models.
    pub ml_backend: Backend,
    /// Bearer token of the Ray cluster.
    pub ray_token: Option<Secret>,
    /// Python interpreter of scripts that run on this machine.
    pub python: Option<PathBuf>,
    /// Path of uv, which installs their dependencies.
    pub uv: Option<PathBuf>,
    /// Maximum number of concurrent runs.
    pub job_concurrency: u32,
    /// Time limit of a script, in minutes.
    pub job_timeout_minutes: u32,
    /// The language model.
    pub llm: LlmSettings,
    /// Notifications.
    pub notifications: NotificationSettings,
    /// Logs.
    pub log: LogSettings,
}

impl Settings {
    /// Loads the settings from this process's environment, the file and the flags.
    ///
    /// # Errors
    /// [`SettingsError`] for the first wrong setting.
    pub fn load(config: Option<&Path>, flags: &Flags) -> Result<Self, SettingsError> {
        Self::load_from(&|name| std::env::var(name).ok(), config, flags)
    }

    fn load_from(
        environment: &dyn Fn(&str) -> Option<String>,
        config: Option<&Path>,
        flags: &Flags,
    ) -> Result<Self, SettingsError> {
        read::settings(&source::gather(environment, config, &flags.0)?)
    }

    /// URL of the file storage.
    #[must_use]
    pub fn storage_url(&self) -> String {
        self.storage_url
            .clone()
            .unwrap_or_else(|| objects_below(&self.data_dir))
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

    fn load(environment: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Settings::load_from(&find, None, &Flags::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_set_gives_the_documented_defaults() {
        let settings = load(&[]).unwrap();
        assert_eq!(settings.bind.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.public_url(settings.bind), "http://127.0.0.1:8080");
        assert!(settings.storage_url().ends_with("/.labdata/objects"));
        assert_eq!(
            (
                settings.notifications.per_hour,
                settings.notifications.per_day
            ),
            (60, 1000)
        );
        assert_eq!(
            (settings.llm.max_steps, settings.llm.timeout_seconds),
            (25, 60)
        );
        assert_eq!(settings.job_concurrency, 2);
    }

    #[test]
    fn every_wrong_value_is_one_line_that_names_the_setting() {
        let wrong = [
            ("LABDATA_BIND", "8080"),
            ("LABDATA_BIND", "example.org:80"),
            ("DATABASE_URL", "mysql://host/db"),
            ("LABDATA_STORAGE_URL", "s3://bucket/../prefix"),
            ("LABDATA_STORAGE_URL", "/objects"),
            ("LABDATA_UPLOAD_MODE", "sideways"),
            ("LABDATA_UPLOAD_MODE", "direct"),
            ("LABDATA_PUBLIC_URL", "lab.example.org"),
            ("LABDATA_BOOTSTRAP_KEY", "ldk_short_x"),
            ("LABDATA_JOB_BACKEND", "ray"),
            ("LABDATA_ML_BACKEND", "http://host"),
            ("LABDATA_JOB_CONCURRENCY", "0"),
            ("LABDATA_LLM_PROVIDER", "oracle"),
            ("LABDATA_LLM_BASE_URL", "ftp://host"),
            ("LABDATA_LLM_MODELS", "a,,b"),
            ("LABDATA_LLM_TIMEOUT_SECONDS", "-1"),
            ("LABDATA_AGENT_MAX_STEPS", "many"),
            ("LABDATA_SMTP_URL", "http://host"),
            ("LABDATA_MAIL_FROM", "nobody"),
            ("LABDATA_NOTIFICATIONS_PER_HOUR", "1.5"),
            ("LABDATA_NOTIFICATIONS_PER_DAY", "99999999999"),
            ("LABDATA_LOG", "info=,=,"),
            ("LABDATA_LOG_FORMAT", "xml"),
        ];
        for (name, value) in wrong {
            let line = load(&[(name, value)]).expect_err(name);
            assert!(line.starts_with(name), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn secrets_show_neither_in_errors_nor_in_debug() {
        let line = load(&[("LABDATA_BOOTSTRAP_KEY", "ldk_hunter2")]).unwrap_err();
        assert!(!line.contains("hunter2"), "{line}");
        let line = load(&[("DATABASE_URL", "mysql://u:hunter2@host/db")]).unwrap_err();
        assert!(!line.contains("hunter2"), "{line}");
        let settings = load(&[
            ("DATABASE_URL", "postgres://u:hunter2@host/db"),
            ("LABDATA_LLM_API_KEY", "hunter2"),
            ("LABDATA_RAY_TOKEN", "hunter2"),
            ("LABDATA_SMTP_URL", "smtp://u:hunter2@host"),
            (
                "LABDATA_BOOTSTRAP_KEY",
                "ldk_aaaaaaaa_hunter2hunter2hunter2",
            ),
        ]);
        assert!(!format!("{:?}", settings.unwrap()).contains("hunter2"));
    }

    #[test]
    fn nobody_is_sent_to_every_interface() {
        assert_eq!(url_of("0.0.0.0:80".parse().unwrap()), "http://127.0.0.1:80");
        assert_eq!(url_of("[::]:80".parse().unwrap()), "http://[::1]:80");
    }
}
