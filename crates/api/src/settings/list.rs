//! The list of settings: name, accepted value, default and help text of each.

/// Placeholder of a setting that is true or false.
pub(crate) const BOOLEAN: &str = "BOOLEAN";

/// A setting's names in the environment, in `labdata.toml` and on the command line.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Key in `labdata.toml`.
    pub(crate) key: &'static str,
    /// Environment variable.
    pub(crate) env: &'static str,
    /// Flag, without the dashes.
    pub(crate) flag: &'static str,
    /// Placeholder of the value in the help.
    pub(crate) value: &'static str,
    /// Purpose, for the help.
    pub(crate) help: &'static str,
    /// Default, for the help; the values themselves are in [`super::Settings`].
    pub(crate) default: &'static str,
}

macro_rules! settings {
    ($($key:ident $env:literal $flag:literal $value:literal, $default:literal, $help:literal;)*) => {
        /// Every setting, in the order of the help.
        pub(crate) const SETTINGS: &[Setting] = &[$(Setting {
            key: stringify!($key),
            env: $env,
            flag: $flag,
            value: $value,
            help: $help,
            default: $default,
        }),*];
    };
}

settings! {
    bind "LABDATA_BIND" "bind" "ADDRESS:PORT", "127.0.0.1:8080",
        "Listening address; port 0 picks a free one";
    data_dir "LABDATA_DATA_DIR" "data-dir" "DIRECTORY", "./.labdata",
        "PostgreSQL cluster, objects, caches";
    database_url "DATABASE_URL" "database-url" "URL", "unset: embedded PostgreSQL",
        "The PostgreSQL database, postgresql://user:password@host/database";
    query_database_url "LABDATA_QUERY_DATABASE_URL" "query-database-url" "URL", "unset: DATABASE_URL",
        "A replica of that database, which runs the queries of people and agents";
    pg_bin_dir "LABDATA_PG_BIN_DIR" "pg-bin-dir" "DIRECTORY", "unset: searched, else fetched",
        "Directory of initdb and postgres for the embedded PostgreSQL";
    storage_url "LABDATA_STORAGE_URL" "storage-url" "URL", "file://<data dir>/objects",
        "Storage of file contents: file://, s3://, gs:// or az:// with bucket and prefix";
    upload_mode "LABDATA_UPLOAD_MODE" "upload-mode" "MODE", "direct on gs://, else gateway",
        "Receiver of signed uploads: `direct` (the cloud) or `gateway` (this server)";
    storage_quota "LABDATA_STORAGE_QUOTA" "storage-quota" "BYTES", "unset: no limit",
        "Most bytes that an organization stores: files, datasets, models, logs, history";
    log_days "LABDATA_LOG_DAYS" "log-days" "NUMBER", "90",
        "Days after its end for which the log of a run is stored; 0 for good";
    writers_define_tables "LABDATA_WRITERS_DEFINE_TABLES" "writers-define-tables" "BOOLEAN", "true",
        "true lets keys with the write scope make tables and add columns (`?mode=ensure`), false admins only";
    history_days "LABDATA_HISTORY_DAYS" "history-days" "DAYS", "unset: for ever",
        "Days for which earlier versions of rows and series are stored, and can be restored";
    trash_days "LABDATA_TRASH_DAYS" "trash-days" "DAYS", "30",
        "Days for which deleted files, tables and columns can be restored; 0: they are deleted for good at once";
    jobs_require_published "LABDATA_JOBS_REQUIRE_PUBLISHED" "jobs-require-published" "BOOLEAN", "false",
        "true lets triggers, schedules and backfills run published versions of scripts only";
    public_url "LABDATA_PUBLIC_URL" "public-url" "URL", "http://<bind>",
        "Base of signed URLs and of the URL given to jobs";
    bootstrap_key "LABDATA_BOOTSTRAP_KEY" "bootstrap-key" "KEY", "unset: made and printed once",
        "The admin key that the very first start stores, ldk_<8 characters>_<secret>";
    oidc_issuer "LABDATA_OIDC_ISSUER" "oidc-issuer" "URL", "unset: no sign-in by a provider",
        "Issuer of the OpenID provider by which people sign in";
    oidc_client_id "LABDATA_OIDC_CLIENT_ID" "oidc-client-id" "ID", "unset",
        "Id of this platform at that provider";
    oidc_client_secret "LABDATA_OIDC_CLIENT_SECRET" "oidc-client-secret" "SECRET", "unset",
        "Secret of this platform at that provider";
    oidc_scopes "LABDATA_OIDC_SCOPES" "oidc-scopes" "SCOPE …", "openid email profile",
        "Scopes to ask the provider for";
    oidc_groups_claim "LABDATA_OIDC_GROUPS_CLAIM" "oidc-groups-claim" "CLAIM", "groups",
        "Claim of the provider's tokens with a person's groups";
    oidc_roles "LABDATA_OIDC_ROLES" "oidc-roles" "GROUP=ROLE,…", "unset: required with an issuer",
        "Roles of groups, lab-admins=admin,lab=member,guests=viewer; * stands for everyone";
    oidc_create_users "LABDATA_OIDC_CREATE_USERS" "oidc-create-users" "DOMAIN,…", "false",
        "Domains of e-mail addresses whose people get a user at their first sign-in";
    oidc_organization "LABDATA_OIDC_ORGANIZATION" "oidc-organization" "NAME", "default",
        "Organization that the provider's people sign in to";
    job_backend "LABDATA_JOB_BACKEND" "job-backend" "BACKEND", "local",
        "Backend that runs job scripts: `local` or ray+https://host:8265 (or ray+http://)";
    job_ray_shared "LABDATA_JOB_RAY_SHARED" "job-ray-shared" "BOOLEAN", "false",
        "true lets several organizations share a Ray cluster, whose users see all their runs";
    ml_backend "LABDATA_ML_BACKEND" "ml-backend" "BACKEND", "that of the jobs",
        "Backend that trains models: `local` or ray+https://host:8265 (or ray+http://)";
    training_time_limit "LABDATA_TRAINING_TIME_LIMIT" "training-time-limit" "SECONDS", "600",
        "Seconds in which a training fits models; reading, evaluating and packing come on top";
    training_cpus "LABDATA_TRAINING_CPUS" "training-cpus" "NUMBER", "all; 1 on a Ray cluster",
        "Processors of a training";
    training_memory "LABDATA_TRAINING_MEMORY" "training-memory" "BYTES", "3/4 of this machine's",
        "Most bytes of memory of a training";
    training_gpus "LABDATA_TRAINING_GPUS" "training-gpus" "NUMBER", "0",
        "GPUs of a training, on a Ray cluster only";
    training_concurrency "LABDATA_TRAINING_CONCURRENCY" "training-concurrency" "NUMBER", "1",
        "Number of trainings that the worker runs at a time";
    training_checkpoints "LABDATA_TRAINING_CHECKPOINTS" "training-checkpoints" "DIRECTORY", "unset",
        "Pretrained models for images and texts, in its directories image, text and segmentation";
    predictors "LABDATA_PREDICTORS" "predictors" "NUMBER", "4",
        "Number of models that predict at a time, each in a process on this machine";
    predictor_idle "LABDATA_PREDICTOR_IDLE" "predictor-idle" "SECONDS", "600",
        "Seconds without a prediction after which a model's process is ended";
    predictor_memory "LABDATA_PREDICTOR_MEMORY" "predictor-memory" "BYTES", "4294967296",
        "Most bytes of memory of a model's process";
    ray_token "LABDATA_RAY_TOKEN" "ray-token" "TOKEN", "unset",
        "The Ray cluster's bearer token, its RAY_AUTH_TOKEN";
    ray_ca_file "LABDATA_RAY_CA_FILE" "ray-ca-file" "FILE", "unset: this machine's authorities",
        "PEM file of the certificate authorities of a Ray cluster at ray+https://";
    python "LABDATA_PYTHON" "python" "PATH", "python3 of the path",
        "The Python that runs scripts of the local job backend";
    uv "LABDATA_UV" "uv" "PATH", "unset: searched, else fetched",
        "The uv that installs the dependencies of those scripts";
    job_isolation "LABDATA_JOB_ISOLATION" "job-isolation" "LEVEL", "landlock; none in the demo",
        "Least isolation under which scripts run: namespaces, landlock or none";
    job_network "LABDATA_JOB_NETWORK" "job-network" "NETWORK", "internet",
        "Network of scripts: internet (public addresses), platform (it only) or all (this machine's)";
    job_network_allow "LABDATA_JOB_NETWORK_ALLOW" "job-network-allow" "CIDR,…", "unset",
        "Private networks that scripts reach nevertheless, such as 10.20.0.0/16";
    webhook_allow "LABDATA_WEBHOOK_ALLOW" "webhook-allow" "CIDR,…", "unset",
        "Private networks that webhooks reach nevertheless, such as 10.20.0.0/16";
    sql_bind "LABDATA_SQL_BIND" "sql-bind" "ADDRESS:PORT", "unset: no SQL logins",
        "Listening address of PostgreSQL's protocol for SQL logins, with the embedded PostgreSQL";
    sql_certificate "LABDATA_SQL_CERTIFICATE" "sql-certificate" "FILE", "unset: no TLS",
        "Chain of certificates (PEM) of `sql-bind`; needed off this machine";
    sql_key "LABDATA_SQL_KEY" "sql-key" "FILE", "unset",
        "Private key (PEM) of that certificate";
    sql_shared "LABDATA_SQL_SHARED" "sql-shared" "BOOLEAN", "false",
        "true allows SQL logins where several organizations share the platform: they see the names of all tables";
    job_cache_quota "LABDATA_JOB_CACHE_QUOTA" "job-cache-quota" "BYTES", "21474836480: 20 GiB",
        "Most bytes of installed dependencies per organization; the least recently used are removed";
    job_concurrency "LABDATA_JOB_CONCURRENCY" "job-concurrency" "NUMBER", "2",
        "Number of job runs that the worker runs at a time; from 2 on, one more for an organization that runs none";
    job_timeout_minutes "LABDATA_JOB_TIMEOUT_MINUTES" "job-timeout-minutes" "NUMBER", "60",
        "Minutes after which a job's script is stopped and its run fails";
    llm_provider "LABDATA_LLM_PROVIDER" "llm-provider" "PROVIDER", "unset: no agent runs",
        "openai (any compatible server), anthropic, gemini or ollama";
    llm_base_url "LABDATA_LLM_BASE_URL" "llm-base-url" "URL", "unset: the provider's own",
        "Base URL of the language model's API";
    llm_api_key "LABDATA_LLM_API_KEY" "llm-api-key" "KEY", "unset",
        "API key for the language model";
    llm_model "LABDATA_LLM_MODEL" "llm-model" "MODEL", "unset",
        "The model of agent runs that name none";
    llm_models "LABDATA_LLM_MODELS" "llm-models" "MODEL,…", "unset: that one model",
        "The models that a request may name";
    llm_timeout_seconds "LABDATA_LLM_TIMEOUT_SECONDS" "llm-timeout-seconds" "NUMBER", "60",
        "Seconds that an agent run waits for the next byte from the model";
    agent_max_steps "LABDATA_AGENT_MAX_STEPS" "agent-max-steps" "NUMBER", "25",
        "Steps after which an agent run ends with its result so far";
    agent_max_tool_calls "LABDATA_AGENT_MAX_TOOL_CALLS" "agent-max-tool-calls" "NUMBER", "50",
        "Tool calls after which an agent run ends with its result so far";
    agent_timeout_minutes "LABDATA_AGENT_TIMEOUT_MINUTES" "agent-timeout-minutes" "NUMBER", "10",
        "Minutes after which an agent run ends with its result so far";
    agent_concurrency "LABDATA_AGENT_CONCURRENCY" "agent-concurrency" "NUMBER", "4",
        "Number of agent runs of an organization at a time";
    agent_monthly_tokens "LABDATA_AGENT_MONTHLY_TOKENS" "agent-monthly-tokens" "NUMBER", "unset: no limit",
        "Most tokens that the agent runs of an organization use in a month";
    agent_python_concurrency "LABDATA_AGENT_PYTHON_CONCURRENCY" "agent-python-concurrency" "NUMBER", "4",
        "Number of Python snippets of the agent at a time, each of up to 1 GiB of memory";
    smtp_url "LABDATA_SMTP_URL" "smtp-url" "URL", "unset: no e-mail is sent",
        "The mail server, smtp://user:password@host:587 or smtps://…";
    mail_from "LABDATA_MAIL_FROM" "mail-from" "ADDRESS", "unset: no e-mail is sent",
        "The sender's e-mail address";
    notifications_per_hour "LABDATA_NOTIFICATIONS_PER_HOUR" "notifications-per-hour" "NUMBER", "60",
        "Maximum notifications to a user per hour";
    notifications_per_day "LABDATA_NOTIFICATIONS_PER_DAY" "notifications-per-day" "NUMBER", "1000",
        "Maximum notifications in an organization per day";
    stall_seconds "LABDATA_STALL_SECONDS" "stall-seconds" "NUMBER", "30",
        "Seconds that a client may keep a response waiting before it is cut off; what it reads adds to them";
    request_timeout_seconds "LABDATA_REQUEST_TIMEOUT_SECONDS" "request-timeout-seconds" "NUMBER", "900",
        "Seconds until a request without a file is answered, or given up with 503";
    export_seconds "LABDATA_EXPORT_SECONDS" "export-seconds" "NUMBER", "3600",
        "Seconds after which an export that its client still reads is cut off";
    rate_limit_per_minute "LABDATA_RATE_LIMIT_PER_MINUTE" "rate-limit-per-minute" "NUMBER", "unset: no limit",
        "Maximum requests of one API key per minute and server; more are answered with 429";
    log "LABDATA_LOG" "log" "FILTER", "info; warn for commands other than serve and worker",
        "Log filter: error, warn, info, debug, trace, or target=level,…";
    log_format "LABDATA_LOG_FORMAT" "log-format" "FORMAT", "text",
        "Format of log lines on standard error: text or json";
}

/// Finds a setting by its key.
pub(crate) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}
