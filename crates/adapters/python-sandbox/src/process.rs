//! The process of a snippet, from its start to its outcome.

use std::{sync::Arc, time::Duration};

use labdata_domain::agent::{
    PYTHON_MEMORY, PYTHON_PROCESSES, PYTHON_SCRATCH, PythonEnd, PythonOutcome, PythonUnavailable,
};
use labdata_ports::agent::PythonSnippet;
use labdata_sandbox::{
    ActiveWorkspace, EndCause, Exit, HostCapabilities, Limits, PlatformProgram, ProcessOutcome,
    ProcessSpec, SandboxError, ScriptEnvironment, StopHandle, StopRequest, StopSignal, Streams,
    Workspace, process_pipes,
};
use tokio::io::BufReader;

use crate::{
    packages::unavailable,
    report::{BrokenReport, End, Report},
    request,
};

/// Number of threads of numeric libraries.
const THREADS: u32 = 2;

/// Start of a process: all that is needed for it.
pub(crate) struct SnippetRun {
    pub(crate) program: PlatformProgram,
    pub(crate) host: Arc<HostCapabilities>,
    pub(crate) workspace: Workspace,
    pub(crate) snippet: PythonSnippet,
    pub(crate) time_limit: Duration,
    /// Ends the process.
    pub(crate) stop: Arc<StopHandle>,
    pub(crate) signal: StopSignal,
}

impl SnippetRun {
    /// Runs the snippet, and removes its workspace when no process of it is left.
    pub(crate) async fn run(mut self) -> Result<PythonOutcome, PythonUnavailable> {
        let active = self
            .host
            .activate(&self.workspace, self.program.script())
            .await;
        let outcome = match active {
            Ok(active) => self.run_in(&active).await,
            Err(error) => Err(unavailable(error)),
        };
        if let Err(error) = self.workspace.remove().await {
            tracing::warn!(%error, "could not remove the workspace of a snippet");
        }
        outcome
    }

    async fn run_in(
        &mut self,
        active: &ActiveWorkspace,
    ) -> Result<PythonOutcome, PythonUnavailable> {
        let packages = self
            .program
            .installed(&self.host, active, &mut self.signal)
            .await;
        let packages = packages.map_err(unavailable)?;
        let spec = self.specification(active, packages);
        let (pipes, streams) = process_pipes()
            .map_err(|error| unavailable(SandboxError::Unavailable(error.to_string())))?;
        let (snippet, stop) = (&self.snippet, &self.stop);
        let exchange = async {
            let mut report = Report::default();
            match exchange(snippet, streams, &mut report).await {
                // Its outcome says why.
                Err(error @ BrokenReport::Ended(_)) => {
                    tracing::debug!(%error, "a snippet did not report its end");
                }
                Err(error @ BrokenReport::Protocol(_)) => {
                    tracing::info!(%error, "a snippet sent another report");
                    // Its later frames mean nothing, so there is no reason to wait for its end.
                    stop.cancel();
                }
                // Nothing that is left is needed: neither threads nor other processes.
                Ok(()) => stop.cancel(),
            }
            report
        };
        let running = self
            .host
            .serve(active, &spec, pipes, &mut self.signal, |_| ());
        // Side by side: the process waits for its input, and would block on a full pipe of output.
        let (report, outcome) = tokio::join!(exchange, running);
        let outcome = outcome.map_err(|error| match self.signal.requested() {
            Some(StopRequest::Kill) => PythonUnavailable::Unavailable("it was ended".to_owned()),
            _ => unavailable(error),
        })?;
        Ok(interpret(report, outcome))
    }

    /// Snippets are written by a model, perhaps under the influence of data that it has read.
    fn specification(
        &self,
        active: &ActiveWorkspace,
        packages: Option<ScriptEnvironment>,
    ) -> ProcessSpec {
        let limits = Limits {
            wall_clock: self.time_limit,
            // Several threads use up more processor time than passes on the clock.
            cpu_time: 4 * self.time_limit,
            memory: PYTHON_MEMORY,
            file_size: PYTHON_SCRATCH,
            scratch: PYTHON_SCRATCH,
            processes: PYTHON_PROCESSES,
            grace: Duration::from_secs(1),
        };
        let mut spec = PlatformProgram::process(active, packages, THREADS, limits);
        let pool = ["ARROW_DEFAULT_MEMORY_POOL", "system"].map(str::to_owned);
        spec.environment.push(pool.into());
        spec
    }
}

async fn exchange(
    snippet: &PythonSnippet,
    streams: Streams,
    report: &mut Report,
) -> Result<(), BrokenReport> {
    let Streams { mut input, output } = streams;
    request::send(&mut input, snippet).await?;
    drop(input);
    report
        .read(&mut BufReader::with_capacity(1 << 16, output))
        .await
}

fn interpret(mut report: Report, outcome: ProcessOutcome) -> PythonOutcome {
    let (stdout, omitted_figures) = (report.output(), report.omitted_figures());
    let (end, value) = match report.end.take() {
        Some(End {
            is_memory: true, ..
        }) => (PythonEnd::Memory, None),
        Some(End {
            error: Some(traceback),
            ..
        }) => (PythonEnd::Raised(traceback), None),
        Some(End { value, .. }) => (PythonEnd::Completed, value),
        None => (early_end(&outcome), None),
    };
    PythonOutcome {
        end,
        stdout,
        stderr: outcome.error_tail,
        value,
        figures: report.figures,
        omitted_figures,
    }
}

/// Returns the end of a process that did not report one.
fn early_end(outcome: &ProcessOutcome) -> PythonEnd {
    match outcome.cause {
        EndCause::TimedOut => PythonEnd::TimedOut,
        EndCause::Memory => PythonEnd::Memory,
        EndCause::Processes => PythonEnd::Processes,
        EndCause::Scratch => PythonEnd::Scratch,
        EndCause::DiskFull => PythonEnd::DiskFull,
        EndCause::Exited | EndCause::Cancelled => PythonEnd::Exited(match outcome.exit {
            Exit::Code(code) => format!("its process ended with exit code {code}"),
            Exit::Signal(signal) => format!("its process was killed by signal {signal}"),
        }),
    }
}
