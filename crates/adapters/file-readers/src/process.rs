//! A process that reads files, from its start to its end.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use labdata_domain::{
    ids::OrganizationId,
    instruments::{MAX_READING_BYTES, READING_TIME_LIMIT, Reading, ReadingFailure},
};
use labdata_ports::instruments::ReadingRequest;
use labdata_sandbox::{
    ActiveWorkspace, EndCause, HostCapabilities, KillOnDrop, Limits, PlatformProgram,
    ProcessOutcome, ProcessPipes, SandboxError, StopSignal, Streams, Workspace, frames,
    process_pipes, stop_channel,
};
use serde_json::{Value, json};
use tokio::{
    io::BufReader, net::unix::pipe, sync::OwnedSemaphorePermit, task::JoinHandle, time::timeout,
};

use crate::program::unavailable;

/// Number of threads of numeric libraries.
const THREADS: u32 = 1;

/// Total size of the files of a process, in bytes. Readers unpack archives.
const SCRATCH: u64 = 512 << 20;

/// Maximum number of processes and threads.
const PROCESSES: u32 = 64;

/// Time limit of a process, which idle times end much earlier.
const LIFETIME: Duration = Duration::from_hours(24 * 365);

/// Number of files after which a process is replaced: its own processor time has a limit too.
const MAX_READINGS: u32 = 2_000;

/// Time within which a process has imported all readers, which takes some seconds.
const START: Duration = Duration::from_mins(1);

/// Maximum length of the frame that says that a process is ready.
const MAX_READY: usize = 16;

/// Start of a process: all that is needed for it.
pub(crate) struct Launch {
    pub(crate) organization: OrganizationId,
    pub(crate) program: PlatformProgram,
    pub(crate) host: Arc<HostCapabilities>,
    pub(crate) workspace: Workspace,
    /// Memory of the process and its children, in bytes.
    pub(crate) memory: u64,
    /// Returned when no process is left and the workspace is removed.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Process that has imported all readers and waits for the next file of its organization. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct WarmProcess {
    pub(crate) organization: OrganizationId,
    /// Time at which it read its last file.
    pub(crate) last_used: Instant,
    /// Number of files that it read.
    readings: u32,
    input: pipe::Sender,
    output: BufReader<pipe::Receiver>,
    end: JoinHandle<Result<ProcessOutcome, ReadingFailure>>,
    stop: KillOnDrop,
}

impl Launch {
    /// Starts the process, and waits until it has imported all readers.
    pub(crate) async fn start(self) -> Result<WarmProcess, ReadingFailure> {
        let (pipes, Streams { input, output }) = process_pipes()
            .map_err(|error| unavailable(SandboxError::Unavailable(error.to_string())))?;
        let (stop, signal) = stop_channel();
        let mut process = WarmProcess {
            organization: self.organization,
            last_used: Instant::now(),
            readings: 0,
            input,
            output: BufReader::with_capacity(1 << 16, output),
            // A separate task, so that a caller that leaves does not leave the workspace behind.
            end: tokio::spawn(self.run(pipes, signal)),
            stop: KillOnDrop(Arc::new(stop)),
        };
        match timeout(START, frames::read(&mut process.output, MAX_READY)).await {
            Ok(Ok(_)) => Ok(process),
            Ok(Err(error)) => Err(process.early_end(&error).await),
            Err(_) => Err(ReadingFailure::Unavailable(
                "the readers did not start in time".to_owned(),
            )),
        }
    }

    /// Runs the process, and removes the workspace when no process is left.
    async fn run(
        self,
        pipes: ProcessPipes,
        mut signal: StopSignal,
    ) -> Result<ProcessOutcome, ReadingFailure> {
        let active = self.host.activate(&self.workspace, self.program.script());
        let outcome = match active.await {
            Ok(active) => self.run_in(&active, pipes, &mut signal).await,
            Err(error) => Err(unavailable(error)),
        };
        if let Err(error) = self.workspace.remove().await {
            tracing::warn!(%error, "could not remove the workspace of a reader");
        }
        drop(self.permit);
        outcome
    }

    async fn run_in(
        &self,
        active: &ActiveWorkspace,
        pipes: ProcessPipes,
        signal: &mut StopSignal,
    ) -> Result<ProcessOutcome, ReadingFailure> {
        let packages = self.program.installed(&self.host, active, signal).await;
        let packages = packages.map_err(unavailable)?;
        let spec = PlatformProgram::process(active, packages, THREADS, self.limits());
        let running = self.host.serve(active, &spec, pipes, signal, |_| ());
        running.await.map_err(unavailable)
    }

    /// Limits of the process. Readers parse files that anyone may have made.
    fn limits(&self) -> Limits {
        Limits {
            wall_clock: LIFETIME,
            // Of each process, and so of each file: children inherit the limit, not what was used.
            cpu_time: 2 * READING_TIME_LIMIT,
            memory: self.memory,
            file_size: SCRATCH,
            scratch: SCRATCH,
            processes: PROCESSES,
            grace: Duration::from_secs(1),
        }
    }
}

impl WarmProcess {
    /// Returns true if the process reads no further file.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_finished() || self.readings >= MAX_READINGS
    }

    /// Reads a file. After a failure the process reads no other.
    pub(crate) async fn read(
        &mut self,
        request: &ReadingRequest,
    ) -> Result<Reading, ReadingFailure> {
        let report = match timeout(READING_TIME_LIMIT, self.exchange(request)).await {
            Ok(Ok(report)) => report,
            Ok(Err(error)) => return Err(self.early_end(&error).await),
            Err(_) => return Err(ReadingFailure::TimedOut),
        };
        self.last_used = Instant::now();
        self.readings += 1;
        interpret(&report)
    }

    async fn exchange(&mut self, request: &ReadingRequest) -> io::Result<Vec<u8>> {
        let header = json!({
            "file_name": request.file_name,
            "reader": request.reader,
            "preferred": request.preferred,
            "timezone": request.timezone,
            "output_limit": MAX_READING_BYTES,
        });
        frames::write(&mut self.input, header.to_string().as_bytes()).await?;
        frames::write(&mut self.input, &request.content).await?;
        frames::read(&mut self.output, MAX_READING_BYTES).await
    }

    /// Ends the process, which sent no result, and returns what that means.
    async fn early_end(&mut self, error: &io::Error) -> ReadingFailure {
        // Other than a kill, this has an outcome, which says why.
        self.stop.0.cancel();
        match (&mut self.end).await {
            Ok(Ok(outcome)) => meaning_of_end(error, &outcome),
            Ok(Err(failure)) => failure,
            Err(error) => ReadingFailure::Unavailable(error.to_string()),
        }
    }
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
fn meaning_of_end(error: &io::Error, outcome: &ProcessOutcome) -> ReadingFailure {
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
            } else if last.contains("SIGXCPU") {
                ReadingFailure::TimedOut
            } else {
                ReadingFailure::Broken(last.chars().take(200).collect())
            }
        }
    }
}
