//! Backends that run scripts and train models, and the settings of a worker.

use std::{
    collections::BTreeMap, path::PathBuf, sync::Arc, thread::available_parallelism, time::Duration,
};

use anyhow::Context;
use labdata_application::{
    models::training::{Checkpoints, begin_training::TrainingContext},
    work::{WorkContext, begin_run::RunContext},
};
use labdata_domain::{
    models::{TaskType, TrainingLimits},
    work::{BackendPolicy, Isolation, WorkKind},
};
use labdata_embedded_postgres::machine_memory;
use labdata_http_client::Authorities;
use labdata_local_runner::LocalRunner;
use labdata_object_store::Location;
use labdata_ports::{
    models::TrainingScripts,
    notifications::mailer::Mailer,
    outward::webhooks::WebhookSender,
    work::runner::{JobRunner, RunLimits, RunResources},
};
use labdata_ray_runner::{Access, RayRunner, Settings as RaySettings};
use labdata_redacted::redacted_url;
use labdata_sandbox::{
    Isolation as SandboxIsolation, Network, NetworkSettings, Sandbox, Settings as SandboxSettings,
    is_permitted,
};
use labdata_table_reader::ChildTableReader;
use labdata_trainer_scripts::{EntryPoint, training_script};
use labdata_webhook_sender::HttpWebhookSender;
use labdata_worker::{
    BACKEND_TIMEOUT, BackendSettings, MailSettings, WebhookSettings, WorkSettings, WorkerSettings,
};

use crate::settings::{Backend, JobNetwork, Settings};

/// Hidden command of this program that runs [`labdata_sandbox::supervise`].
const SUPERVISE: &str = "run-supervisor";

/// Command of this program that reads the table of one file.
const READ_TABLE: &str = "read-table";

/// Kinds of pretrained models, each a directory of the same name.
const CHECKPOINTS: [&str; 3] = ["image", "text", "segmentation"];

/// Memory of a training where that of the machine is not known, in bytes.
const UNKNOWN_MEMORY: u64 = 8 << 30;

/// Settings of a worker whose scripts and e-mails refer to the platform by `public_url`.
///
/// # Errors
/// When the address of a backend is unusable.
pub fn worker_settings(
    settings: &Settings,
    mailer: Option<Arc<dyn Mailer>>,
    public_url: &str,
) -> anyhow::Result<WorkerSettings> {
    let public_url = public_url.trim_end_matches('/').to_owned();
    let runners = Runners::open(settings, &public_url)?;
    let runs = WorkSettings {
        backend: BackendSettings {
            runner: runners.jobs,
            concurrency: settings.job_concurrency,
            timeout: BACKEND_TIMEOUT,
        },
        context: WorkContext::Run(RunContext {
            limits: RunLimits {
                wall_clock: Duration::from_secs(60 * u64::from(settings.job_timeout_minutes)),
                ..RunLimits::default()
            },
            base_url: public_url.clone(),
            policy: backend_policy(settings, WorkKind::Run),
        }),
    };
    let trainings = WorkSettings {
        backend: BackendSettings {
            runner: runners.trainings,
            concurrency: settings.trainings.concurrency,
            timeout: BACKEND_TIMEOUT,
        },
        context: WorkContext::Training(training_context(settings, public_url.clone())),
    };
    let mail = mailer.map(|mailer| MailSettings { mailer, public_url });
    Ok(WorkerSettings {
        work: vec![trainings, runs],
        mail,
        webhooks: Some(WebhookSettings(webhook_sender(settings))),
    })
}

/// Creates the sender of webhooks.
fn webhook_sender(settings: &Settings) -> Arc<dyn WebhookSender> {
    let authorities = || {
        Authorities::of_machine().unwrap_or_else(|error| {
            // Receivers by http are reached nevertheless.
            tracing::warn!(%error, "no webhook is sent by https");
            Authorities::none()
        })
    };
    let allow = settings.webhook_allow.clone();
    Arc::new(HttpWebhookSender::new(authorities, allow, is_permitted))
}

fn training_context(settings: &Settings, base_url: String) -> TrainingContext {
    let wanted = &settings.trainings;
    let is_local = wanted.backend == Backend::Local;
    let cpus = wanted.cpus.unwrap_or_else(|| {
        // The processors of this machine say nothing about those of a cluster.
        let all = available_parallelism().ok().filter(|_| is_local);
        all.and_then(|all| all.get().try_into().ok()).unwrap_or(1)
    });
    let memory = wanted.memory.unwrap_or_else(|| match machine_memory() {
        0 => UNKNOWN_MEMORY,
        memory => memory / 4 * 3,
    });
    TrainingContext {
        base_url,
        limits: TrainingLimits {
            time_limit: wanted.time_limit,
            cpus,
            memory,
            gpus: wanted.gpus,
        },
        resources: RunResources {
            cpus,
            gpus: wanted.gpus,
            // Not the memory of this machine, which the nodes of a cluster need not have.
            memory: wanted.memory,
        },
        policy: backend_policy(settings, WorkKind::Training),
        checkpoints: checkpoints(settings),
        scripts: Arc::new(EmbeddedScripts),
    }
}

/// Returns the directories of pretrained models. Those of a cluster cannot be seen from here.
fn checkpoints(settings: &Settings) -> Checkpoints {
    let Some(directory) = &settings.trainings.checkpoints else {
        return BTreeMap::new();
    };
    let is_local = settings.trainings.backend == Backend::Local;
    CHECKPOINTS
        .into_iter()
        .map(|kind| (kind, directory.join(kind)))
        // On a cluster these are directories of its nodes, which cannot be looked at from here.
        .filter(|(_, path)| !is_local || path.is_dir())
        .map(|(kind, path)| (kind.to_owned(), path.to_string_lossy().into_owned()))
        .collect()
}

/// Scripts that this program contains.
struct EmbeddedScripts;

impl TrainingScripts for EmbeddedScripts {
    fn script(&self, task: TaskType, manifest: &str) -> String {
        let entry = match task {
            TaskType::Tabular => EntryPoint::Tabular,
            TaskType::Multimodal | TaskType::Segmentation => EntryPoint::Multimodal,
        };
        training_script(entry, manifest)
    }
}

/// Rules for the backend of that work.
#[must_use]
pub const fn backend_policy(settings: &Settings, work: WorkKind) -> BackendPolicy {
    let backend = match work {
        WorkKind::Run => &settings.job_backend,
        WorkKind::Training => &settings.trainings.backend,
    };
    BackendPolicy {
        work,
        visibility: match backend {
            Backend::Local => LocalRunner::VISIBILITY,
            Backend::Ray(_) => RayRunner::VISIBILITY,
        },
        allows_sharing: settings.job_ray_shared,
    }
}

/// Backends of a worker: one for both kinds of work, if the settings name it for both.
struct Runners {
    jobs: Arc<dyn JobRunner>,
    trainings: Arc<dyn JobRunner>,
}

impl Runners {
    /// Creates the configured backends, whose scripts reach the platform at `public_url`.
    ///
    /// # Errors
    /// When the address of a cluster is unusable.
    fn open(settings: &Settings, public_url: &str) -> anyhow::Result<Self> {
        let jobs = runner(settings, &settings.job_backend, public_url)?;
        // Shared, so that one worker has one sandbox or one client of the cluster.
        let trainings = if settings.trainings.backend == settings.job_backend {
            Arc::clone(&jobs)
        } else {
            runner(settings, &settings.trainings.backend, public_url)?
        };
        Ok(Self { jobs, trainings })
    }
}

fn runner(
    settings: &Settings,
    backend: &Backend,
    public_url: &str,
) -> anyhow::Result<Arc<dyn JobRunner>> {
    match backend {
        Backend::Local => {
            let sandbox = sandbox(settings, this_program()?, public_url);
            Ok(Arc::new(LocalRunner::new(sandbox)))
        }
        Backend::Ray(address) => {
            let runner = ray_runner(settings, address.reveal())?;
            if runner.sends_in_clear() {
                tracing::warn!(
                    address = redacted_url(address.reveal()),
                    "scripts and the token reach the Ray cluster without encryption: use ray+https:// in \
                     LABDATA_JOB_BACKEND and LABDATA_ML_BACKEND"
                );
            }
            Ok(Arc::new(runner))
        }
    }
}

/// The runner of the cluster at that address.
///
/// # Errors
/// When the address is unusable.
pub(crate) fn ray_runner(settings: &Settings, address: &str) -> anyhow::Result<RayRunner> {
    let token = settings.ray_token.as_ref();
    Ok(RayRunner::new(RaySettings {
        access: Access {
            address: address.to_owned(),
            token: token.map(|token| token.reveal().to_owned()),
            ca_file: settings.ray_ca_file.clone(),
        },
        namespace: "labdata".to_owned(),
    })?)
}

/// Returns the path of this program, which may have been replaced by another version since the start.
///
/// # Errors
/// When the path is not known.
pub(crate) fn this_program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        // `current_exe` reads this link, and its path ends in ` (deleted)` once the file was
        // replaced; the link itself still leads to the running program.
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe().context("the path of this program")
    }
}

/// Creates the readers of tables; `program` is the `labdata` binary.
#[must_use]
pub fn table_reader(program: PathBuf) -> ChildTableReader {
    ChildTableReader::new(program.into_os_string(), vec![READ_TABLE.into()])
}

/// Creates the sandbox of this machine; `program` is the `labdata` binary.
pub(super) fn sandbox(settings: &Settings, program: PathBuf, public_url: &str) -> Arc<Sandbox> {
    Arc::new(Sandbox::new(sandbox_settings(
        settings, program, public_url,
    )))
}

/// Settings of [`sandbox`].
pub(crate) fn sandbox_settings(
    settings: &Settings,
    program: PathBuf,
    public_url: &str,
) -> SandboxSettings {
    let supervisor = vec![program.into_os_string(), SUPERVISE.into()];
    // Files may be stored outside of the data directory, which is hidden anyway.
    let storage = match settings.storage_url().parse::<Location>() {
        Ok(Location::Local(directory)) => vec![directory],
        Ok(Location::Bucket { .. }) | Err(_) => Vec::new(),
    };
    let minimum = settings.job_isolation.unwrap_or(Isolation::DEFAULT_MINIMUM);
    SandboxSettings {
        python: settings.python.clone(),
        uv: settings.uv.clone(),
        minimum: match minimum {
            Isolation::None => SandboxIsolation::Nothing,
            Isolation::Landlock => SandboxIsolation::Landlock,
            Isolation::Namespaces => SandboxIsolation::Namespaces,
        },
        readable: settings.trainings.checkpoints.clone().into_iter().collect(),
        hidden: storage,
        cache_quota: settings.job_cache_quota,
        network: NetworkSettings {
            access: match settings.job_network {
                JobNetwork::Internet => Network::Internet,
                JobNetwork::Platform => Network::Platform,
                JobNetwork::All => Network::Host,
            },
            platform: public_url.parse().ok(),
            allow: settings.job_network_allow.clone(),
        },
        ..SandboxSettings::new(settings.data_dir.clone(), supervisor)
    }
}
