//! Job of a run, as it is submitted to Ray.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use labdata_domain::jobs::{ScriptFlaw, ScriptMetadata};
use labdata_domain::work::WorkKind;
use labdata_ports::work::runner::{GRACE, RETAINED_LOG_BYTES, RunSpec, RunnerError};
use labdata_python_packages::{CLIENT_WHEEL, DeclaredPackages};
use labdata_ray_client::{JobRequest, RuntimeEnvironment};
use serde_json::{Map, Value, json};

/// Maximum length of the packed order. Ray passes the whole environment to a process as one argument,
/// which Linux limits to 128 KiB. A job with a longer one would stay pending forever.
const MAX_ORDER_CHARS: usize = 100_000;

/// Placeholder for the URL of the Python client's wheel, whose directory is chosen on the node.
const CLIENT_URL: &str = "file:///labdata-client.invalid";

/// Program that runs on the cluster.
const ENTRY: &str = include_str!("entry.py");

/// Command line of the job.
const COMMAND: &str = "exec python3 -c 'import base64,os,zlib;exec(zlib.decompress(base64.b64decode(os.environ[\"LABDATA_RUN_ENTRY\"])))'";

/// Returns the job of a run.
///
/// # Errors
/// [`RunnerError::Refused`] if the script is too long, its metadata are invalid, or a variable has an
/// invalid name or value.
pub(crate) fn job_request(id: &str, spec: &RunSpec) -> Result<JobRequest, RunnerError> {
    // The entry point would fail with a traceback on the cluster, minutes later.
    spec.check_environment()?;
    let environment: Map<String, Value> = spec
        .environment
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.clone())))
        .collect();
    let key_exchange = spec.key_exchange.as_ref().map(|exchange| {
        json!({
            "url": exchange.url,
            "nonce": exchange.nonce,
            "variable": exchange.variable,
        })
    });
    let packages =
        declared_packages(&spec.script).map_err(|flaw| RunnerError::Refused(flaw.to_string()))?;
    let limits = &spec.limits;
    let order = json!({
        "name": id,
        "script": spec.script,
        "has_dependencies": packages.as_ref().is_some_and(DeclaredPackages::has_dependencies),
        "client": packages.as_ref().map(client).transpose()?.flatten(),
        "environment": environment,
        "key_exchange": key_exchange,
        "log_limit": RETAINED_LOG_BYTES,
        "limits": {
            "preparation": limits.preparation.as_secs_f64(),
            "wall_clock": limits.wall_clock.as_secs_f64(),
            // RLIMIT_CPU counts whole seconds, and 0 kills at once.
            "cpu_seconds": limits.cpu_time.as_secs().max(1),
            "memory": limits.memory,
            "file_size": limits.file_size,
        },
    });
    let order = pack(&order.to_string())?;
    // Refused here, since Ray would accept it and never start it.
    if order.len() > MAX_ORDER_CHARS {
        return Err(RunnerError::Refused(format!(
            "this script is too long for a Ray cluster: compressed, with its environment, it has \
             {} characters, and {MAX_ORDER_CHARS} get through",
            order.len()
        )));
    }
    let mut variables = Map::new();
    variables.insert("LABDATA_RUN_ORDER".to_owned(), order.into());
    variables.insert("LABDATA_RUN_ENTRY".to_owned(), pack(ENTRY)?.into());
    // Ray's grace period exceeds that of the entry point, which needs time to clean up.
    let grace = (GRACE.as_secs() + 3).to_string();
    variables.insert("RAY_JOB_STOP_WAIT_TIME_S".to_owned(), grace.into());
    // For people who look at Ray's dashboard: the platform finds its jobs by their ids.
    let work = match spec.run.work.kind() {
        WorkKind::Run => "labdata_execution",
        WorkKind::Training => "labdata_model_version",
    };
    let metadata = [
        ("labdata_organization", spec.organization.to_string()),
        (work, spec.run.work.to_string()),
    ];
    Ok(JobRequest {
        submission_id: id.to_owned(),
        entrypoint: COMMAND.to_owned(),
        processors: spec.resources.cpus,
        gpus: spec.resources.gpus,
        memory: spec.resources.memory,
        runtime: RuntimeEnvironment { variables },
        metadata: metadata
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect(),
    })
}

/// Compresses a text, and encodes it in characters that are safe in a shell and in an environment.
fn pack(text: &str) -> Result<String, RunnerError> {
    // The order has to fit one argument, so size matters more than time.
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    let bytes = packer
        .write_all(text.as_bytes())
        .and_then(|()| packer.finish())
        .map_err(|error| RunnerError::Unavailable(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}

/// Returns the packages that a script declares.
fn declared_packages(script: &str) -> Result<Option<DeclaredPackages>, ScriptFlaw> {
    let metadata = ScriptMetadata::read(script)?;
    Ok(metadata.map(|metadata| DeclaredPackages {
        block: metadata.block,
        dependencies: metadata.dependencies,
        requires_python: metadata.requires_python,
    }))
}

/// Returns what a script that depends on the Python client installs: the wheel, a byte as a character, and
/// the metadata with a placeholder for its URL.
fn client(packages: &DeclaredPackages) -> Result<Option<Value>, RunnerError> {
    if !packages.names_client() {
        return Ok(None);
    }
    let script = packages
        .script_with_client(CLIENT_URL)
        .map_err(RunnerError::Refused)?;
    // A character per byte, since JSON has no bytes; the entry point encodes them as Latin-1.
    let wheel: String = CLIENT_WHEEL.bytes.iter().copied().map(char::from).collect();
    Ok(Some(json!({
        "file_name": CLIENT_WHEEL.file_name,
        "wheel": wheel,
        "script": script,
        "url": CLIENT_URL,
    })))
}
