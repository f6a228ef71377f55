//! Parses the given texts into settings.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;
use labdata_application::services::{EXPORT_TIME, TRASH_DAYS};
use labdata_domain::{
    people::PlainApiKey,
    storage::StorageQuota,
    work::{Isolation, LogRetention},
};
use tracing_subscriber::filter::LevelFilter;
use url::Url;

use super::{
    AgentSettings, Backend, JobNetwork, LlmProvider, LlmSettings, LogFormat, LogSettings,
    NotificationSettings, PredictorSettings, Secret, Settings, SettingsError, SqlSettings,
    TrainingSettings, oidc,
    source::Given,
    values::{Values, http_url},
};

/// Checks of values that adapters use; an error is the reason in one line, without secrets.
pub(super) struct Checks {
    /// The database's URL.
    pub(super) database_url: fn(&str) -> Result<(), String>,
    /// A storage URL, given whether clients upload directly.
    pub(super) storage_url: fn(&str, bool) -> Result<(), String>,
    /// The address of a Ray cluster.
    pub(super) cluster_url: fn(&str) -> Result<(), String>,
    /// The file of certificate authorities of a Ray cluster.
    pub(super) cluster_authorities: fn(&str) -> Result<(), String>,
    /// The mail server's URL.
    pub(super) mail_server: fn(&str) -> Result<(), String>,
    /// The sender's e-mail address.
    pub(super) sender: fn(&str) -> Result<(), String>,
    /// The issuer of an identity provider.
    pub(super) issuer: fn(&str) -> Result<(), String>,
    /// The key of a model's provider.
    pub(super) model_key: fn(&str) -> Result<(), String>,
}

/// Parses all settings; fails with the first wrong one.
pub(super) fn settings(
    given: &BTreeMap<&'static str, Given>,
    checks: &Checks,
) -> Result<Settings, SettingsError> {
    let values = Values(given);
    let bind = values.parsed(
        "bind",
        "an IP address and a port, such as 127.0.0.1:8080",
        address,
    )?;
    let direct_uploads = direct_uploads(&values, checks)?;
    Ok(Settings {
        bind: bind.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 8080).into()),
        bind_given: bind.is_some(),
        data_dir: match values.directory("data_dir")? {
            Some(directory) => directory,
            None => std::path::absolute(".labdata")
                .map_err(|error| SettingsError(format!("no working directory: {error}")))?,
        },
        database_url: database_url(&values, "database_url", checks)?,
        query_database_url: query_database_url(&values, checks)?,
        pg_bin_dir: values.existing("pg_bin_dir", "a directory that exists", |path| {
            path.is_dir()
        })?,
        storage_url: storage_url(&values, checks)?,
        direct_uploads,
        storage_quota: values
            .bytes("storage_quota")?
            .map_or(StorageQuota::UNLIMITED, StorageQuota::of_bytes),
        log_retention: values
            .parsed("log_days", "a number of days; 0 for good", |value| {
                value.trim().parse().ok().map(LogRetention::of_days)
            })?
            .unwrap_or_default(),
        writers_define_tables: values
            .parsed("writers_define_tables", "true or false", |value| {
                value.parse().ok()
            })?
            .unwrap_or(true),
        history_days: values.optional_number("history_days")?,
        trash_days: values
            .parsed("trash_days", "a number of days; 0 for none", |value| {
                value.trim().parse().ok()
            })?
            .unwrap_or(TRASH_DAYS),
        jobs_require_published: values
            .parsed("jobs_require_published", "true or false", |value| {
                value.parse().ok()
            })?
            .unwrap_or_default(),
        public_url: values.http_url("public_url")?,
        bootstrap_key: values.secret(
            "bootstrap_key",
            "ldk_<8 lower-case letters or digits>_<16 to 128 letters, digits, - or _>",
            PlainApiKey::parse,
        )?,
        job_backend: backend(&values, "job_backend", checks)?.unwrap_or(Backend::Local),
        job_ray_shared: values
            .parsed("job_ray_shared", "true or false", |value| {
                value.parse().ok()
            })?
            .unwrap_or_default(),
        trainings: trainings(&values, checks)?,
        predictors: predictors(&values)?,
        stall: Duration::from_secs(values.number("stall_seconds", STALL_SECONDS)?.into()),
        request_timeout: Duration::from_secs(
            values
                .number("request_timeout_seconds", REQUEST_TIMEOUT_SECONDS)?
                .into(),
        ),
        export_time: values
            .optional_number("export_seconds")?
            .map_or(EXPORT_TIME, |seconds| Duration::from_secs(seconds.into())),
        rate_limit_per_minute: values.optional_number("rate_limit_per_minute")?,
        ray_token: values.secret("ray_token", "a token", |value| {
            (!value.trim().is_empty()).then(|| Secret::new(value.to_owned()))
        })?,
        ray_ca_file: ray_ca_file(&values, checks)?,
        python: values.existing("python", PROGRAM, is_program)?,
        uv: values.existing("uv", PROGRAM, is_program)?,
        job_isolation: values.parsed(
            "job_isolation",
            "namespaces, landlock or none",
            Isolation::parse,
        )?,
        oidc: oidc::read(&values, checks)?,
        job_network: job_network(&values)?,
        job_network_allow: networks(&values, "job_network_allow")?,
        webhook_allow: networks(&values, "webhook_allow")?,
        sql: sql(&values)?,
        job_cache_quota: values.bytes("job_cache_quota")?.unwrap_or(JOB_CACHE_BYTES),
        job_concurrency: values.number("job_concurrency", 2)?,
        job_timeout_minutes: values.number("job_timeout_minutes", 60)?,
        llm: llm(&values, checks)?,
        agent: agent(&values)?,
        notifications: notifications(&values, checks)?,
        log: log(&values)?,
    })
}

/// Networks, separated by commas; none unless given.
fn networks(values: &Values<'_>, key: &str) -> Result<Vec<IpNet>, SettingsError> {
    let takes = "networks such as 10.20.0.0/16, separated by commas";
    let parse = |value: &str| value.split(',').map(|it| it.trim().parse().ok()).collect();
    Ok(values.parsed(key, takes, parse)?.unwrap_or_default())
}

/// Default of [`Settings::job_cache_quota`].
const JOB_CACHE_BYTES: u64 = 20 << 30;

/// Description of the values that [`is_program`] accepts.
const PROGRAM: &str = "the path of a program that can be executed";

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    // Follows links: the Python of a virtual environment is one.
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn address(value: &str) -> Option<SocketAddr> {
    match value.strip_prefix("localhost:") {
        // Other names would have to be resolved, and may have several addresses.
        Some(port) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        None => value.parse().ok(),
    }
}

fn database_url(
    values: &Values<'_>,
    key: &str,
    checks: &Checks,
) -> Result<Option<Secret>, SettingsError> {
    let url = values.secret(key, "postgresql://user:password@host/database", |value| {
        let (scheme, rest) = value.split_once("://")?;
        (matches!(scheme, "postgres" | "postgresql") && !rest.is_empty())
            .then(|| Secret::new(value.to_owned()))
    })?;
    if let Some(url) = &url {
        values.check(key, url.reveal(), checks.database_url)?;
    }
    Ok(url)
}

/// Parses the settings of SQL logins, and checks that no password crosses a network in the clear.
fn sql(values: &Values<'_>) -> Result<SqlSettings, SettingsError> {
    let bind = values.parsed(
        "sql_bind",
        "an IP address and a port, such as 127.0.0.1:5433",
        address,
    )?;
    let file = |key| values.existing(key, "a file that exists", Path::is_file);
    let certificate = match (file("sql_certificate")?, file("sql_key")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            return Err(SettingsError(
                "LABDATA_SQL_CERTIFICATE and LABDATA_SQL_KEY are set together".to_owned(),
            ));
        }
    };
    if let (Some(bind), Some(Given { name, .. })) = (bind, values.0.get("sql_bind")) {
        if values.0.contains_key("database_url") {
            return Err(SettingsError(format!(
                "{name} is for the embedded PostgreSQL; with DATABASE_URL, SQL logins connect to that server"
            )));
        }
        if !bind.ip().is_loopback() && certificate.is_none() {
            return Err(SettingsError(format!(
                "{name}: {bind} is reached from other machines, which takes TLS: set LABDATA_SQL_CERTIFICATE and \
                 LABDATA_SQL_KEY"
            )));
        }
    }
    let is_shared = values.parsed("sql_shared", "true or false", |value| value.parse().ok())?;
    Ok(SqlSettings {
        bind,
        certificate,
        is_shared: is_shared.unwrap_or_default(),
    })
}

/// Parses the URL of the replica, and checks that there is a database that it may follow.
fn query_database_url(
    values: &Values<'_>,
    checks: &Checks,
) -> Result<Option<Secret>, SettingsError> {
    let url = database_url(values, "query_database_url", checks)?;
    if let (Some(given), None) = (
        values.0.get("query_database_url"),
        values.0.get("database_url"),
    ) {
        let name = &given.name;
        return Err(SettingsError(format!(
            "{name} names a replica of DATABASE_URL, which is not set"
        )));
    }
    Ok(url)
}

fn storage_url(values: &Values<'_>, checks: &Checks) -> Result<Option<String>, SettingsError> {
    let Some(Given { name, value }) = values.0.get("storage_url") else {
        return Ok(None);
    };
    // Whether it can take direct uploads is checked with `upload_mode`, so that the error names that setting.
    (checks.storage_url)(value, false)
        .map_err(|reason| SettingsError(format!("{name}: {reason}")))?;
    Ok(Some(value.clone()))
}

/// Parses the upload mode, and checks that `direct` has a cloud storage.
fn direct_uploads(values: &Values<'_>, checks: &Checks) -> Result<Option<bool>, SettingsError> {
    let direct = values.parsed(
        "upload_mode",
        "`direct` or `gateway`",
        |value| match value {
            "direct" => Some(true),
            "gateway" => Some(false),
            _ => None,
        },
    )?;
    if direct == Some(true)
        && let Some(Given { name, .. }) = values.0.get("upload_mode")
    {
        let url = values.0.get("storage_url");
        // Without that setting, objects are files below the data directory, which
        // take no direct uploads either.
        let url = url.map_or("file://.", |given| given.value.as_str());
        (checks.storage_url)(url, true)
            .map_err(|reason| SettingsError(format!("{name}: {reason}")))?;
    }
    Ok(direct)
}

/// Least memory of a training, in bytes. With less, its libraries do not start.
const LEAST_TRAINING_MEMORY: u64 = 1 << 30;

/// Default of [`TrainingSettings::time_limit`], in seconds.
const TRAINING_SECONDS: u32 = 600;

fn trainings(values: &Values<'_>, checks: &Checks) -> Result<TrainingSettings, SettingsError> {
    let backend = match backend(values, "ml_backend", checks)? {
        Some(backend) => backend,
        None => backend(values, "job_backend", checks)?.unwrap_or(Backend::Local),
    };
    let gpus = values.parsed(
        "training_gpus",
        "a whole number from 0 to 4294967295",
        |value| value.trim().parse().ok(),
    )?;
    if backend == Backend::Local && gpus.is_some_and(|gpus| gpus > 0) {
        // By `check`, whose error names the setting as the operator gave it.
        values.check("training_gpus", "", |_| {
            Err("only a Ray cluster has GPUs for trainings (LABDATA_ML_BACKEND)".to_owned())
        })?;
    }
    let seconds = values.number("training_time_limit", TRAINING_SECONDS)?;
    Ok(TrainingSettings {
        backend,
        time_limit: Duration::from_secs(seconds.into()),
        cpus: values.optional_number("training_cpus")?,
        memory: values.parsed(
            "training_memory",
            "a number of bytes, at least 1073741824 (1 GiB)",
            |value| {
                let memory = value.trim().parse().ok();
                memory.filter(|bytes| *bytes >= LEAST_TRAINING_MEMORY)
            },
        )?,
        gpus: gpus.unwrap_or(0),
        concurrency: values.number("training_concurrency", 1)?,
        checkpoints: values.directory("training_checkpoints")?,
    })
}

/// Default of [`Settings::stall`].
const STALL_SECONDS: u32 = 30;

/// Default of [`Settings::request_timeout`].
const REQUEST_TIMEOUT_SECONDS: u32 = 900;

/// Defaults of [`PredictorSettings`].
const PREDICTORS: u32 = 4;
const PREDICTOR_IDLE_SECONDS: u32 = 600;
const PREDICTOR_MEMORY: u64 = 4 << 30;

fn predictors(values: &Values<'_>) -> Result<PredictorSettings, SettingsError> {
    let seconds = values.number("predictor_idle", PREDICTOR_IDLE_SECONDS)?;
    Ok(PredictorSettings {
        limit: values.number("predictors", PREDICTORS)?,
        idle: Duration::from_secs(seconds.into()),
        memory: values
            .bytes("predictor_memory")?
            .unwrap_or(PREDICTOR_MEMORY),
    })
}

fn backend(
    values: &Values<'_>,
    key: &str,
    checks: &Checks,
) -> Result<Option<Backend>, SettingsError> {
    let parsed = values.parsed(key, "`local` or ray+https://host:8265", |value| {
        if value == "local" {
            return Some(Backend::Local);
        }
        let url = value.strip_prefix("ray+")?;
        // Without the last slash, so that two settings for one cluster are equal.
        let address = url.trim_end_matches('/').to_owned();
        http_url(url).map(|_| Backend::Ray(Secret::new(address)))
    })?;
    if let Some(Backend::Ray(url)) = &parsed {
        values.check(key, url.reveal(), checks.cluster_url)?;
    }
    Ok(parsed)
}

fn ray_ca_file(values: &Values<'_>, checks: &Checks) -> Result<Option<PathBuf>, SettingsError> {
    let path = values.path("ray_ca_file", "the path of a PEM file")?;
    if let Some(path) = &path {
        let path = path.to_string_lossy();
        values.check("ray_ca_file", &path, checks.cluster_authorities)?;
    }
    Ok(path)
}

fn job_network(values: &Values<'_>) -> Result<JobNetwork, SettingsError> {
    let parsed = values.parsed(
        "job_network",
        "internet, platform or all",
        |value| match value {
            "internet" => Some(JobNetwork::Internet),
            "platform" => Some(JobNetwork::Platform),
            "all" => Some(JobNetwork::All),
            _ => None,
        },
    )?;
    Ok(parsed.unwrap_or_default())
}

fn llm(values: &Values<'_>, checks: &Checks) -> Result<LlmSettings, SettingsError> {
    let provider = values.parsed(
        "llm_provider",
        "openai, anthropic, gemini or ollama",
        |value| match value {
            "openai" => Some(LlmProvider::OpenAi),
            "anthropic" => Some(LlmProvider::Anthropic),
            "gemini" => Some(LlmProvider::Gemini),
            "ollama" => Some(LlmProvider::Ollama),
            _ => None,
        },
    )?;
    let models = values.parsed(
        "llm_models",
        "names of models, separated by commas",
        |value| {
            value
                .split(',')
                .map(|name| Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
                .collect::<Option<Vec<_>>>()
        },
    )?;
    let api_key = values.secret("llm_api_key", "a key", |value| {
        (!value.trim().is_empty()).then(|| Secret::new(value.trim().to_owned()))
    })?;
    if let Some(key) = &api_key {
        values.check("llm_api_key", key.reveal(), checks.model_key)?;
    }
    Ok(LlmSettings {
        provider,
        base_url: values.http_url("llm_base_url")?.map(Secret::new),
        api_key,
        model: values.text("llm_model")?,
        models: models.unwrap_or_default(),
        timeout_seconds: values.number("llm_timeout_seconds", 60)?,
    })
}

fn agent(values: &Values<'_>) -> Result<AgentSettings, SettingsError> {
    Ok(AgentSettings {
        max_steps: values.number("agent_max_steps", 25)?,
        max_tool_calls: values.number("agent_max_tool_calls", 50)?,
        timeout_minutes: values.number("agent_timeout_minutes", 10)?,
        concurrency: values.number("agent_concurrency", 4)?,
        monthly_tokens: values.parsed(
            "agent_monthly_tokens",
            "a number of tokens, at least 1",
            |value| value.trim().parse().ok().filter(|tokens| *tokens >= 1),
        )?,
        python_concurrency: values.number("agent_python_concurrency", 4)?,
    })
}

fn notifications(
    values: &Values<'_>,
    checks: &Checks,
) -> Result<NotificationSettings, SettingsError> {
    let smtp_url = values.secret(
        "smtp_url",
        "smtp://user:password@host:587 or smtps://…",
        |value| {
            let url = Url::parse(value).ok()?;
            (matches!(url.scheme(), "smtp" | "smtps") && url.has_host())
                .then(|| Secret::new(value.to_owned()))
        },
    )?;
    let mail_from = values.parsed("mail_from", "an e-mail address", |value| {
        let (local, domain) = value.rsplit_once('@')?;
        let filled = !local.is_empty() && !domain.is_empty();
        (filled && !value.contains(char::is_control)).then(|| value.to_owned())
    })?;
    if let Some(url) = &smtp_url {
        values.check("smtp_url", url.reveal(), checks.mail_server)?;
    }
    if let Some(address) = &mail_from {
        values.check("mail_from", address, checks.sender)?;
    }
    Ok(NotificationSettings {
        smtp_url,
        mail_from,
        per_hour: values.number("notifications_per_hour", 60)?,
        per_day: values.number("notifications_per_day", 1000)?,
    })
}

/// Returns whether every part is a level, or a target with its level. `Targets` alone also accepts
/// misspelled levels, as targets.
fn is_log_filter(value: &str) -> bool {
    let is_level = |level: &str| !level.is_empty() && level.parse::<LevelFilter>().is_ok();
    value.split(',').all(|part| match part.split_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => is_level(part),
    })
}

fn log(values: &Values<'_>) -> Result<LogSettings, SettingsError> {
    let filter = values.parsed(
        "log",
        "error, warn, info, debug, trace, or target=level,…",
        |value| is_log_filter(value).then(|| value.to_owned()),
    )?;
    let format = values.parsed("log_format", "text or json", |value| match value {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    })?;
    Ok(LogSettings {
        filter,
        format: format.unwrap_or_default(),
    })
}
