//! The check of each dependency.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, StreamExt};
use labdata_domain::{agent::Message, work::Isolation};
use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings as PostgresSettings};
use labdata_ports::{
    agent::{LanguageModel, ModelRequest},
    maintenance::Dependency,
};
use labdata_redacted::redacted_url;
use labdata_sandbox::{
    Isolation as SandboxIsolation, Python, Sandbox, Settings as SandboxSettings, Uv,
};
use tempfile::TempDir;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    compose::{
        Location, check_identity_provider, database_state, language_model, open_storage,
        ray_runner, sandbox_settings, smtp_mailer, this_program,
    },
    settings::{Backend, Settings},
    system::SystemIds,
};

/// Maximum duration of a check.
const CHECK_WITHIN: Duration = Duration::from_mins(1);

/// Time that an external database is waited for.
const DATABASE_WITHIN: Duration = Duration::from_secs(5);

/// Finding of a check, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It works.
    Works(String),
    /// It is not set up, and need not be.
    Unused(String),
    /// It does not work; says what to do.
    Fails(String),
}

impl From<Result<String, String>> for Finding {
    fn from(outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(found) => Self::Works(found),
            Err(reason) => Self::Fails(reason),
        }
    }
}

/// Checks the dependency.
pub async fn check(settings: &Settings, dependency: Dependency) -> Finding {
    let check = match dependency {
        Dependency::Database => database(settings).map(Into::into).boxed(),
        Dependency::Storage => storage(settings).map(Into::into).boxed(),
        Dependency::Python => python(settings).map(Into::into).boxed(),
        Dependency::Uv => uv(settings).map(Into::into).boxed(),
        Dependency::JobIsolation => isolation(settings).map(Into::into).boxed(),
        Dependency::Ray => ray(settings).boxed(),
        Dependency::Smtp => smtp(settings).boxed(),
        Dependency::Llm => llm(settings).boxed(),
        Dependency::OpenId => identity_provider(settings).boxed(),
    };
    // Some wait long for a host that drops packets; one of them must not hold up the report.
    let finding = timeout(CHECK_WITHIN, check).await;
    finding.unwrap_or_else(|_| {
        Finding::Fails(format!("no response within {} s", CHECK_WITHIN.as_secs()))
    })
}

/// An empty directory that ends with the check. PostgreSQL and scripts may run as another user, who
/// can enter it.
fn scratch() -> Result<TempDir, String> {
    let made = tempfile::Builder::new()
        .prefix("labdata-doctor-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir();
    // Independent of the umask.
    let opened = made.and_then(|directory| {
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        Ok(directory)
    });
    opened.map_err(|error| format!("no temporary directory can be made: {error}; set TMPDIR"))
}

async fn database(settings: &Settings) -> Result<String, String> {
    if let Some(url) = &settings.database_url {
        let described = described(url.reveal())
            .await
            .map_err(|reason| format!("{reason}; check DATABASE_URL"))?;
        return match &settings.query_database_url {
            Some(replica) => {
                let replica = query_replica(replica.reveal()).await?;
                Ok(format!("{described}; queries run on {replica}"))
            }
            None => Ok(described),
        };
    }
    // A check must not create a cluster in the data directory, so a missing one is tried elsewhere.
    let exists = settings.data_dir.join("postgres/PG_VERSION").exists();
    let scratch = scratch()?;
    let data_dir = if exists {
        settings.data_dir.clone()
    } else {
        scratch.path().to_owned()
    };
    let server = EmbeddedPostgres::start(PostgresSettings {
        data_dir,
        bin_dir: settings.pg_bin_dir.clone(),
        durability: Durability::Durable,
    })
    .await
    .map_err(|error| error.to_string())?;
    let found = if exists {
        let how = if server.attached() {
            "embedded, in use by a running server"
        } else {
            "embedded"
        };
        let described = described(server.database_url()).await;
        described.map(|described| format!("{described}, {how}"))
    } else {
        Ok("embedded PostgreSQL runs here; the first start makes the cluster".to_owned())
    };
    // Only detaches where a running server has the cluster.
    server.stop().await.map_err(|error| error.to_string())?;
    found
}

async fn query_replica(url: &str) -> Result<String, String> {
    let state = database_state(url, DATABASE_WITHIN)
        .await
        .map_err(|reason| format!("{reason}; check LABDATA_QUERY_DATABASE_URL"))?;
    Ok(format!(
        "a replica with PostgreSQL {}",
        state.server_version
    ))
}

async fn described(url: &str) -> Result<String, String> {
    let state = database_state(url, DATABASE_WITHIN).await?;
    if let Some(language) = state.foreign_messages {
        return Err(format!(
            "the server reports errors in the language {language}, and the platform reads English: \
             GRANT SET ON PARAMETER lc_messages TO its role, or set lc_messages = 'C' on the server"
        ));
    }
    let (version, pending) = (state.server_version, state.pending);
    let migrated = match pending {
        0 => format!("PostgreSQL {version}, up to date"),
        _ => format!("PostgreSQL {version}; the next start applies {pending} migrations"),
    };
    let migrated = if state.may_create_roles {
        migrated
    } else {
        format!(
            "{migrated}; no SQL logins, as the platform's role may not create roles: grant it CREATEROLE"
        )
    };
    Ok(if state.open_to_everyone.is_empty() {
        migrated
    } else {
        let open = state.open_to_everyone.join(", ");
        // Not a failure: on servers of some providers no one can revoke it.
        format!(
            "{migrated}; everyone may use {open}, with which queries can hold up other organizations: let a \
             superuser run docs/deploy/revoke-public.sql"
        )
    })
}

async fn storage(settings: &Settings) -> Result<String, String> {
    let url = settings.storage_url();
    let location: Location = url.parse().map_err(|error| format!("{error}"))?;
    let displayed = location.to_string();
    if let Location::Local(directory) = &location
        && !directory.exists()
    {
        // The check must leave no trace, so it tries whether the directory could be created.
        let parent = nearest_existing(directory);
        return match tempfile::tempfile_in(&parent) {
            Ok(_) => Ok(format!("{displayed} will be made at the first start")),
            Err(error) => Err(format!(
                "{displayed} cannot be made in {}: {error}; give the platform's account write access",
                parent.display()
            )),
        };
    }
    let scratch = scratch()?;
    // Copies go to the scratch directory, so that the check leaves no trace.
    open_storage(&location, scratch.path().to_owned())
        .await
        .map_err(|error| format!("{error}; check LABDATA_STORAGE_URL and the cloud's variables"))?;
    Ok(format!("{displayed} accepts objects"))
}

fn nearest_existing(directory: &Path) -> PathBuf {
    let mut ancestors = directory.ancestors();
    let found = ancestors.find(|ancestor| fs::metadata(ancestor).is_ok_and(|it| it.is_dir()));
    found.unwrap_or(Path::new(".")).to_owned()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| format!("the check broke: {error}"))?
}

async fn found_python(settings: &Settings) -> Result<Python, String> {
    let named = settings.python.clone();
    blocking(move || Python::find(named.as_deref())).await
}

async fn python(settings: &Settings) -> Result<String, String> {
    let python = found_python(settings).await?;
    let program = python.program().display();
    Ok(format!("{} at {program}", python.version()))
}

async fn uv(settings: &Settings) -> Result<String, String> {
    let python = found_python(settings)
        .await
        // The check of Python has the reason.
        .map_err(|_| "needs Python, see above".to_owned())?;
    let named = settings.uv.clone();
    let scratch = scratch()?;
    // Without that directory the check fetches into a temporary one, so that it leaves no trace.
    let stored = settings.data_dir.join("jobs/tools");
    let tools = if stored.is_dir() {
        stored
    } else {
        scratch.path().to_owned()
    };
    let is_fetched = tools == scratch.path();
    let uv = blocking(move || Uv::find(named.as_deref(), &tools, &python)).await?;
    Ok(if is_fetched && uv.program().starts_with(scratch.path()) {
        "can be downloaded; the first script with dependencies does".to_owned()
    } else {
        uv.program().display().to_string()
    })
}

async fn isolation(settings: &Settings) -> Result<String, String> {
    let scratch = scratch()?;
    let program = this_program().map_err(|error| error.to_string())?;
    let of_jobs = sandbox_settings(settings, program, &settings.public_url(settings.bind));
    let sandbox = Sandbox::new(SandboxSettings {
        data_dir: scratch.path().to_owned(),
        ..of_jobs
    });
    let host = sandbox.host().await.map_err(|error| {
        format!("{error}; LABDATA_JOB_ISOLATION sets the least that you accept")
    })?;
    let minimum = settings.job_isolation.unwrap_or(Isolation::DEFAULT_MINIMUM);
    Ok(format!(
        "{}, at least {} is asked for",
        level(host.isolation()),
        minimum.name()
    ))
}

fn level(isolation: SandboxIsolation) -> &'static str {
    let isolation = match isolation {
        SandboxIsolation::Nothing => Isolation::None,
        SandboxIsolation::Landlock => Isolation::Landlock,
        SandboxIsolation::Namespaces => Isolation::Namespaces,
    };
    isolation.name()
}

async fn ray(settings: &Settings) -> Finding {
    let mut clusters: Vec<&str> = Vec::new();
    for backend in [&settings.job_backend, &settings.trainings.backend] {
        if let Backend::Ray(address) = backend
            // Jobs and trainings often share a cluster; it is asked once.
            && !clusters.contains(&address.reveal())
        {
            clusters.push(address.reveal());
        }
    }
    if clusters.is_empty() {
        return Finding::Unused("scripts and trainings run on this machine".to_owned());
    }
    let mut answering = Vec::new();
    for address in clusters {
        let displayed = redacted_url(address);
        let outcome = match ray_runner(settings, address) {
            Ok(runner) => runner.check().await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = outcome {
            return Finding::Fails(format!(
                "{displayed}: {reason}; check LABDATA_JOB_BACKEND, LABDATA_ML_BACKEND and LABDATA_RAY_TOKEN"
            ));
        }
        answering.push(displayed);
    }
    Finding::Works(format!("{} responds", answering.join(", ")))
}

/// Asks the identity provider for its document and keys.
async fn identity_provider(settings: &Settings) -> Finding {
    let Some(wanted) = &settings.oidc else {
        return Finding::Unused("set LABDATA_OIDC_ISSUER to sign people in with it".to_owned());
    };
    match check_identity_provider(wanted).await {
        Ok(()) => Finding::Works(format!(
            "{} responds; its redirect URI is {}/api/v1/session/oidc/callback",
            wanted.issuer,
            settings.public_url(settings.bind)
        )),
        Err(reason) => Finding::Fails(format!(
            "{reason}; LABDATA_OIDC_ISSUER is {}",
            wanted.issuer
        )),
    }
}

async fn smtp(settings: &Settings) -> Finding {
    let notifications = &settings.notifications;
    let (server, from) = match (&notifications.smtp_url, &notifications.mail_from) {
        (Some(server), Some(from)) => (server.reveal(), from),
        (None, None) => {
            return Finding::Unused(
                "no e-mail is sent; LABDATA_SMTP_URL and LABDATA_MAIL_FROM set it up".to_owned(),
            );
        }
        (Some(_), None) => {
            return Finding::Fails("no e-mail is sent: set LABDATA_MAIL_FROM, too".to_owned());
        }
        (None, Some(_)) => {
            return Finding::Fails("no e-mail is sent: set LABDATA_SMTP_URL, too".to_owned());
        }
    };
    let mailer = match smtp_mailer(server, from) {
        Ok(mailer) => mailer,
        Err(reason) => return Finding::Fails(reason),
    };
    let displayed = redacted_url(server);
    match mailer.check().await {
        Ok(()) => Finding::Works(format!("{displayed} responds; mail comes from {from}")),
        Err(reason) => Finding::Fails(format!("{displayed}: {reason}; check LABDATA_SMTP_URL")),
    }
}

/// Asks the model for a response and drops it as soon as it begins.
async fn llm(settings: &Settings) -> Finding {
    if settings.llm.provider.is_none() {
        return Finding::Unused("no agent; LABDATA_LLM_PROVIDER sets it up".to_owned());
    }
    let Some(model) = &settings.llm.model else {
        return Finding::Fails("no agent: set LABDATA_LLM_MODEL, too".to_owned());
    };
    let client = match language_model(settings, Arc::new(SystemIds)) {
        Ok(client) => client,
        Err(error) => return Finding::Fails(error.to_string()),
    };
    let request = ModelRequest {
        model: model.clone(),
        // A short reply: providers charge for its tokens.
        instructions: "Reply with one word.".to_owned(),
        messages: vec![Message::User("Say hello.".to_owned())],
        tools: Arc::new([]),
    };
    // Its first part proves the key and the model; dropping the response spares the rest.
    let began = match client.response(&request).await {
        Ok(mut response) => response.next().await.unwrap_or_else(|| {
            let broken = labdata_domain::agent::BrokenStream::Connection;
            Err(labdata_domain::agent::ModelFailure::Broken(broken))
        }),
        Err(failure) => Err(failure),
    };
    match began {
        Ok(_) => Finding::Works(format!("{model} responds")),
        Err(failure) => Finding::Fails(format!(
            "{failure}; check LABDATA_LLM_PROVIDER, _BASE_URL, _API_KEY and _MODEL"
        )),
    }
}
