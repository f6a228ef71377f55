//! The program's settings (contract §1): environment, `labdata.toml`, flags, the later winning.
//!
//! Everything is checked for its form before anything starts; what is wrong is refused with one
//! line that names the setting as the person wrote it and says what it takes.

mod flags;
mod list;
mod read;
mod secret;
mod source;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use labdata_domain::api_key::PlainApiKey;

pub use flags::Flags;
pub use secret::Secret;

/// A setting is wrong; one line for the person who set it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Where logs go and how much of them there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Directives of `tracing_subscriber::EnvFilter`; the command's own when none are given.
    pub filter: Option<String>,
    /// How lines look.
    pub format: LogFormat,
}

/// What runs scripts or trains models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Processes of this machine.
    Local,
    /// A Ray cluster's job API at that HTTP URL.
    Ray(String),
}

/// Whose API the language model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmProvider {
    /// `OpenAI`, or any server that speaks its language.
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
    /// Whose API.
    pub provider: Option<LlmProvider>,
    /// Where it is, unless the provider's own.
    pub base_url: Option<String>,
    /// The key for it.
    pub api_key: Option<Secret>,
    /// The model of runs that name none.
    pub model: Option<String>,
    /// The models that a request may name.
    pub models: Vec<String>,
    /// How long a run waits for a byte, in seconds.
    pub timeout_seconds: u32,
    /// After how many steps a run ends.
    pub max_steps: u32,
}

/// Messages to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationSettings {
    /// The mail server.
    pub smtp_url: Option<Secret>,
    /// The sender's address.
    pub mail_from: Option<String>,
    /// The most to a user in an hour.
    pub per_hour: u32,
    /// The most in an organization in a day.
    pub per_day: u32,
}

/// Every setting, checked for its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the server listens.
    pub bind: SocketAddr,
    /// Whether somebody said so, rather than the default.
    pub bind_given: bool,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The database; the embedded one when none is given.
    pub database_url: Option<Secret>,
    /// Where the embedded server's programs are.
    pub pg_bin_dir: Option<PathBuf>,
    /// Where files are kept, when not in the data directory.
    pub storage_url: Option<String>,
    /// Whether clients send bytes straight to the cloud; by default the storage tells.
    pub direct_uploads: Option<bool>,
    /// Base of signed URLs, when not the address itself.
    pub public_url: Option<String>,
    /// The first start's admin key.
    pub bootstrap_key: Option<PlainApiKey>,
    /// What runs job scripts.
    pub job_backend: Backend,
    /// What trains models.
    pub ml_backend: Backend,
    /// The token of the Ray cluster, where it wants one.
    pub ray_token: Option<Secret>,
    /// The Python of scripts that run on this machine.
    pub python: Option<PathBuf>,
    /// The uv that installs their dependencies.
    pub uv: Option<PathBuf>,
    /// How many runs at a time.
    pub job_concurrency: u32,
    /// After how many minutes a script is stopped.
    pub job_timeout_minutes: u32,
    /// The language model.
    pub llm: LlmSettings,
    /// Notifications.
    pub notifications: NotificationSettings,
    /// Logs.
    pub log: LogSettings,
}

impl Settings {
    /// Reads the settings of this process: its environment, the file, these flags.
    ///
    /// # Errors
    /// [`SettingsError`] for the first one that is wrong.
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

    /// The storage as a URL.
    #[must_use]
    pub fn storage_url(&self) -> String {
        self.storage_url
            .clone()
            .unwrap_or_else(|| objects_below(&self.data_dir))
    }

    /// The base of the platform's URLs, when the server listens at that address.
    #[must_use]
    pub fn public_url(&self, listening: SocketAddr) -> String {
        self.public_url.clone().unwrap_or_else(|| url_of(listening))
    }
}

/// `file://<data dir>/objects`.
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

/// A URL that this machine reaches the address by: nobody can call "every interface".
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
