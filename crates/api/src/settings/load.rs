//! Loads the settings of this process.

use std::path::Path;

use super::{Flags, Settings, SettingsError, read, source};
use crate::compose;

impl Settings {
    /// Loads the settings from the file, this process's environment and the flags.
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
        read::settings(
            &source::gather(environment, config, &flags.0)?,
            &read::Checks {
                database_url: compose::check_database,
                storage_url: compose::check_storage_url,
                cluster_url: compose::check_cluster_url,
                cluster_authorities: compose::check_cluster_authorities,
                mail_server: compose::check_mail_server,
                sender: compose::check_sender,
                issuer: compose::check_issuer,
                model_key: compose::check_model_key,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::Backend;

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
            (settings.agent.max_steps, settings.llm.timeout_seconds),
            (25, 60)
        );
        assert_eq!(settings.agent.concurrency, 4);
        assert_eq!(settings.agent.python_concurrency, 4);
        assert_eq!(settings.job_concurrency, 2);
        assert_eq!(settings.stall, crate::app::STALL);
        assert_eq!(settings.request_timeout, crate::app::REQUEST_TIMEOUT);
        assert_eq!(settings.rate_limit_per_minute, None);
    }

    #[test]
    fn models_are_trained_where_jobs_run_unless_another_backend_is_named() {
        let ray = ("LABDATA_JOB_BACKEND", "ray+http://host:8265");
        let settings = load(&[ray, ("LABDATA_TRAINING_GPUS", "1")]).unwrap();
        assert_eq!(settings.trainings.backend, settings.job_backend);
        assert_eq!(settings.trainings.gpus, 1);
        let settings = load(&[ray, ("LABDATA_ML_BACKEND", "local")]).unwrap();
        assert_eq!(settings.trainings.backend, Backend::Local);
        assert_eq!(settings.trainings.time_limit, Duration::from_mins(10));
    }

    #[test]
    fn four_models_predict_at_a_time_unless_set_otherwise() {
        let predictors = load(&[]).unwrap().predictors;
        let minutes = predictors.idle.as_secs() / 60;
        assert_eq!(
            (predictors.limit, minutes, predictors.memory),
            (4, 10, 4 << 30)
        );
        let settings = load(&[
            ("LABDATA_PREDICTORS", "1"),
            ("LABDATA_PREDICTOR_IDLE", "30"),
        ]);
        let predictors = settings.unwrap().predictors;
        assert_eq!((predictors.limit, predictors.idle.as_secs()), (1, 30));
    }

    #[test]
    fn every_wrong_value_is_one_line_that_names_the_setting() {
        let wrong = [
            ("LABDATA_BIND", "8080"),
            ("LABDATA_BIND", "example.org:80"),
            ("DATABASE_URL", "mysql://host/db"),
            ("DATABASE_URL", "postgresql://host/db?sslmode=perhaps"),
            (
                "DATABASE_URL",
                "postgresql://host/db?sslmode=verify-full&sslrootcert=/nowhere",
            ),
            ("DATABASE_URL", "postgresql://host/db?nonsense=1"),
            ("LABDATA_STORAGE_URL", "s3://bucket/../prefix"),
            ("LABDATA_STORAGE_URL", "/objects"),
            ("LABDATA_UPLOAD_MODE", "sideways"),
            ("LABDATA_UPLOAD_MODE", "direct"),
            ("LABDATA_PUBLIC_URL", "lab.example.org"),
            ("LABDATA_BOOTSTRAP_KEY", "ldk_short_x"),
            ("LABDATA_JOB_BACKEND", "ray"),
            ("LABDATA_JOB_BACKEND", "ray+https://host:0x"),
            ("LABDATA_JOB_BACKEND", "ray+ftp://host"),
            ("LABDATA_JOB_RAY_SHARED", "perhaps"),
            ("LABDATA_RAY_CA_FILE", "/nowhere/ca.pem"),
            ("LABDATA_RAY_CA_FILE", "/dev/null"),
            ("LABDATA_PYTHON", "/nowhere/python3"),
            ("LABDATA_PYTHON", "/"),
            ("LABDATA_UV", "/nowhere/uv"),
            ("LABDATA_PG_BIN_DIR", "/nowhere/bin"),
            ("LABDATA_SMTP_URL", "smtp://host?tls=perhaps"),
            ("LABDATA_MAIL_FROM", "lab@exa mple.org"),
            ("LABDATA_MAIL_FROM", "a@b@c"),
            ("LABDATA_ML_BACKEND", "http://host"),
            ("LABDATA_TRAINING_TIME_LIMIT", "ten"),
            ("LABDATA_TRAINING_CPUS", "0"),
            ("LABDATA_TRAINING_MEMORY", "8G"),
            ("LABDATA_TRAINING_MEMORY", "1000000"),
            ("LABDATA_TRAINING_GPUS", "-1"),
            ("LABDATA_TRAINING_GPUS", "1"),
            ("LABDATA_TRAINING_CONCURRENCY", "0"),
            ("LABDATA_PREDICTORS", "0"),
            ("LABDATA_PREDICTOR_IDLE", "10m"),
            ("LABDATA_PREDICTOR_MEMORY", "4G"),
            ("LABDATA_JOB_ISOLATION", "chroot"),
            ("LABDATA_JOB_NETWORK", "host"),
            ("LABDATA_JOB_NETWORK_ALLOW", "10.0.0.1/8,lab"),
            ("LABDATA_WEBHOOK_ALLOW", "lab.example.org"),
            ("LABDATA_JOB_CONCURRENCY", "0"),
            ("LABDATA_LLM_PROVIDER", "oracle"),
            ("LABDATA_LLM_BASE_URL", "ftp://host"),
            ("LABDATA_LLM_MODELS", "a,,b"),
            ("LABDATA_LLM_TIMEOUT_SECONDS", "-1"),
            ("LABDATA_LLM_API_KEY", "sk-\u{1}"),
            ("LABDATA_AGENT_MAX_STEPS", "many"),
            ("LABDATA_AGENT_MAX_TOOL_CALLS", "0"),
            ("LABDATA_AGENT_TIMEOUT_MINUTES", "0.5"),
            ("LABDATA_AGENT_CONCURRENCY", "0"),
            ("LABDATA_AGENT_MONTHLY_TOKENS", "1e6"),
            ("LABDATA_AGENT_PYTHON_CONCURRENCY", "0"),
            ("LABDATA_SMTP_URL", "http://host"),
            ("LABDATA_MAIL_FROM", "nobody"),
            ("LABDATA_NOTIFICATIONS_PER_HOUR", "1.5"),
            ("LABDATA_NOTIFICATIONS_PER_DAY", "99999999999"),
            ("LABDATA_RATE_LIMIT_PER_MINUTE", "0"),
            ("LABDATA_LOG", "info=,=,"),
            ("LABDATA_LOG", "inof"),
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
        for (name, value) in [
            ("LABDATA_BOOTSTRAP_KEY", "ldk_hunter2"),
            ("DATABASE_URL", "mysql://u:hunter2@host/db"),
            ("LABDATA_STORAGE_URL", "s3://key:hunter2@bucket"),
            ("LABDATA_JOB_BACKEND", "ray+ftp://u:hunter2@host"),
            ("LABDATA_JOB_BACKEND", "ray+http://u:hunter2@host:8265"),
            ("LABDATA_LLM_BASE_URL", "ftp://u:hunter2@host"),
            ("LABDATA_PUBLIC_URL", "https://u:hunter2@host?query"),
        ] {
            let line = load(&[(name, value)]).expect_err(name);
            assert!(!line.contains("hunter2"), "{line}");
        }
        let settings = load(&[
            ("DATABASE_URL", "postgres://u:hunter2@host/db"),
            ("LABDATA_LLM_API_KEY", "hunter2"),
            ("LABDATA_LLM_BASE_URL", "https://u:hunter2@host/v1"),
            ("LABDATA_RAY_TOKEN", "hunter2"),
            ("LABDATA_SMTP_URL", "smtp://u:hunter2@host"),
            (
                "LABDATA_BOOTSTRAP_KEY",
                "ldk_aaaaaaaa_hunter2hunter2hunter2",
            ),
        ]);
        assert!(!format!("{:?}", settings.unwrap()).contains("hunter2"));
    }
}
