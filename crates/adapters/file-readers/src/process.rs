//! The process of a reading, from its start to its result.

use std::{io, sync::Arc, time::Duration};

use labdata_domain::instruments::{
    MAX_READING_BYTES, READING_MEMORY, READING_TIME_LIMIT, Reading, ReadingFailure,
};
use labdata_ports::instruments::ReadingRequest;
use labdata_redacted::Variables;
use labdata_sandbox::{
    ActiveWorkspace, EndCause, HostCapabilities, Limits, Network, ProcessOutcome, ProcessSpec,
    SandboxError, ScriptEnvironment, StopHandle, StopSignal, Streams, Workspace, frames,
    process_pipes,
};
use serde_json::{Value, json};
use tokio::io::BufReader;

use crate::{
    packages::{installed, unavailable},
    program::program,
};

/// Number of threads of numeric libraries.
const THREADS: &str = "1";

/// Total size of the files of a process, in bytes. Readers unpack archives.
const SCRATCH: u64 = 512 << 20;

/// Maximum number of processes and threads.
const PROCESSES: u32 = 64;

/// Start of a process: all that is needed for it.
pub(crate) struct ReadingProcess {
    pub(crate) host: Arc<HostCapabilities>,
    pub(crate) workspace: Workspace,
    pub(crate) request: ReadingRequest,
    /// Ends the process.
    pub(crate) stop: Arc<StopHandle>,
    pub(crate) signal: StopSignal,
}

impl ReadingProcess {
    /// Reads the file, and removes the workspace when no process is left.
    pub(crate) async fn run(mut self) -> Result<Reading, ReadingFailure> {
        let active = self.host.activate(&self.workspace, &program()).await;
        let outcome = match active {
            Ok(active) => self.run_in(&active).await,
            Err(error) => Err(unavailable(&error)),
        };
        if let Err(error) = self.workspace.remove().await {
            tracing::warn!(%error, "could not remove the workspace of a reading");
        }
        outcome
    }

    async fn run_in(&mut self, active: &ActiveWorkspace) -> Result<Reading, ReadingFailure> {
        let packages = installed(&self.host, active, &mut self.signal).await?;
        let spec = specification(active, packages);
        let (pipes, streams) = process_pipes()
            .map_err(|error| unavailable(&SandboxError::Unavailable(error.to_string())))?;
        let (request, stop) = (&self.request, &self.stop);
        let exchange = async {
            let report = exchange(request, streams).await;
            // Nothing that is left is needed.
            stop.cancel();
            report
        };
        let running = self
            .host
            .serve(active, &spec, pipes, &mut self.signal, |_| ());
        // Side by side: the process waits for its input, and would block on a full pipe of output.
        let (report, outcome) = tokio::join!(exchange, running);
        match (report, outcome) {
            (Ok(report), _) => interpret(&report),
            (Err(_), Err(error)) => Err(unavailable(&error)),
            (Err(error), Ok(outcome)) => Err(early_end(&error, &outcome)),
        }
    }
}

fn specification(active: &ActiveWorkspace, packages: Option<ScriptEnvironment>) -> ProcessSpec {
    let script = active.script_path().to_string_lossy().into_owned();
    let environment = [
        ("MPLBACKEND", "Agg"),
        ("OMP_NUM_THREADS", THREADS),
        ("OPENBLAS_NUM_THREADS", THREADS),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ];
    ProcessSpec {
        // Isolated: modules in the working directory do not replace installed ones.
        arguments: vec!["-I".to_owned(), script],
        packages,
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect::<Variables>(),
        // Readers parse files that anyone may have made.
        network: Network::Denied,
        limits: Limits {
            wall_clock: READING_TIME_LIMIT,
            cpu_time: 2 * READING_TIME_LIMIT,
            memory: READING_MEMORY,
            file_size: SCRATCH,
            scratch: SCRATCH,
            processes: PROCESSES,
            grace: Duration::from_secs(1),
        },
        logged: 0,
    }
}

async fn exchange(request: &ReadingRequest, streams: Streams) -> io::Result<Vec<u8>> {
    let Streams { mut input, output } = streams;
    let header = json!({
        "file_name": request.file_name,
        "reader": request.reader,
        "preferred": request.preferred,
        "timezone": request.timezone,
        "output_limit": MAX_READING_BYTES,
    });
    frames::write(&mut input, header.to_string().as_bytes()).await?;
    frames::write(&mut input, &request.content).await?;
    drop(input);
    let mut output = BufReader::with_capacity(1 << 16, output);
    frames::read(&mut output, MAX_READING_BYTES).await
}

fn interpret(report: &[u8]) -> Result<Reading, ReadingFailure> {
    if report.len() < 100
        && let Ok(Value::Object(object)) = serde_json::from_slice(report)
        && object.contains_key("too_large")
    {
        return Err(ReadingFailure::ResultTooLarge);
    }
    Reading::from_report(report)
        .ok_or_else(|| ReadingFailure::Broken("its result does not fit together".to_owned()))
}

/// Returns the meaning of the end of a process that sent no result.
fn early_end(error: &io::Error, outcome: &ProcessOutcome) -> ReadingFailure {
    match outcome.cause {
        EndCause::TimedOut => ReadingFailure::TimedOut,
        EndCause::Memory => ReadingFailure::Memory,
        EndCause::Processes | EndCause::Scratch | EndCause::DiskFull => {
            ReadingFailure::Broken(format!("it reached a limit ({:?})", outcome.cause))
        }
        EndCause::Exited | EndCause::Cancelled => {
            let errors = &outcome.error_tail;
            tracing::warn!(%error, errors, "the process of a reading sent no result");
            let last = errors.lines().next_back().unwrap_or_default();
            if last.contains("MemoryError") {
                ReadingFailure::Memory
            } else {
                ReadingFailure::Broken(last.chars().take(200).collect())
            }
        }
    }
}
