//! One run, from its workspace to its end.

use std::{sync::Arc, time::Duration};

use labdata_domain::jobs::{ScriptFlaw, ScriptMetadata};
use labdata_ports::work::runner::{
    ERROR_TAIL, EndReason, GRACE, PackageOwner, RETAINED_LOG_BYTES, RunExit, RunLimits, RunNetwork,
    RunSpec, RunStatus, RunView, ScriptEnd,
};
use labdata_sandbox::{
    DeclaredPackages, ERROR_TAIL_BYTES, EndCause, EnvironmentOutcome, EnvironmentRequest, Exit,
    HostCapabilities, LOG_SEGMENT_BYTES, Limits, Network, PLATFORM_SCOPE, ProcessOutcome,
    ProcessSpec, SandboxError, StopSignal, Workspace,
};
use tokio::sync::watch;

// The sandbox retains what the port promises.
const _: () = assert!(LOG_SEGMENT_BYTES >= RETAINED_LOG_BYTES && ERROR_TAIL_BYTES <= ERROR_TAIL);

/// Runs the script to its end, and publishes its progress in `view`.
pub(crate) async fn run(
    host: Arc<HostCapabilities>,
    workspace: Workspace,
    spec: RunSpec,
    mut stop: StopSignal,
    view: watch::Sender<RunView>,
) {
    let end = run_to_end(&host, &workspace, &spec, &mut stop, &view)
        .await
        .unwrap_or_else(|error| {
            let reason = error.to_string();
            tracing::warn!(run = %spec.run, reason, "a run was lost");
            ScriptEnd {
                error_tail: reason,
                ..ScriptEnd::lost()
            }
        });
    // Now rather than when the run is reaped: as long as the disk is full, its end may not be recorded.
    if let Err(error) = workspace.release_scratch().await {
        tracing::warn!(run = %spec.run, %error, "could not remove the scratch directory of a run");
    }
    // Last: who waits for the end may reap the run at once.
    view.send_modify(|view| view.status = RunStatus::Ended(end));
}

async fn run_to_end(
    host: &HostCapabilities,
    workspace: &Workspace,
    spec: &RunSpec,
    stop: &mut StopSignal,
    view: &watch::Sender<RunView>,
) -> Result<ScriptEnd, SandboxError> {
    let active = host.activate(workspace, &spec.script).await?;
    // The log is a file of the workspace: only its length is passed on, and readers fetch what they lack.
    let on_output = |length| view.send_modify(|view| view.logged = length);

    let scope = match spec.packages {
        PackageOwner::Organization => spec.organization.to_string(),
        // Shared by all organizations, as no script chooses what is in it.
        PackageOwner::Platform => PLATFORM_SCOPE.to_owned(),
    };
    let packages = match declared_packages(&spec.script) {
        Ok(packages) => packages,
        Err(flaw) => {
            return Ok(end_without_process(
                EndReason::PreparationFailed,
                flaw.to_string(),
            ));
        }
    };
    let request = EnvironmentRequest {
        scope: &scope,
        packages: packages.as_ref(),
        completion: None,
        // A separate clock: installing a large package must not take from the script's time.
        limits: limits(&spec.limits, spec.limits.preparation),
    };
    let environment = host
        .script_environment(&active, request, stop, on_output)
        .await?;
    // A stop ends the installation as well, whose outcome then means nothing.
    if stop.requested().is_some() {
        return Ok(end_without_process(EndReason::Cancelled, String::new()));
    }
    let packages = match environment {
        EnvironmentOutcome::NotNeeded => None,
        EnvironmentOutcome::Installed(packages) => Some(packages),
        // The author's mistake, not the machine's, so it ends the run and is no error.
        EnvironmentOutcome::Rejected(reason) => {
            return Ok(end_without_process(EndReason::PreparationFailed, reason));
        }
        EnvironmentOutcome::Failed(outcome) => {
            let mut end = run_end(outcome);
            // Limits, such as of memory, say more than that the preparation failed.
            if end.reason == EndReason::Exited {
                end.reason = EndReason::PreparationFailed;
            }
            return Ok(end);
        }
    };

    let process = ProcessSpec {
        arguments: vec![workspace.script_path().to_string_lossy().into_owned()],
        packages,
        environment: spec.environment.clone(),
        network: match spec.network {
            RunNetwork::Configured => host.network(),
            RunNetwork::Platform => Network::Platform,
        },
        limits: limits(&spec.limits, spec.limits.wall_clock),
        // The script's output follows that of the installation in one log.
        logged: view.borrow().logged,
    };
    view.send_modify(|view| view.status = RunStatus::Running);
    let outcome = host.run(&active, &process, stop, on_output).await?;
    // Before the status: a reader that sees the end also sees the whole log.
    view.send_modify(|view| view.logged = outcome.logged);
    Ok(run_end(outcome))
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

fn limits(limits: &RunLimits, wall_clock: Duration) -> Limits {
    Limits {
        wall_clock,
        cpu_time: limits.cpu_time,
        memory: limits.memory,
        file_size: limits.file_size,
        scratch: limits.scratch,
        processes: limits.processes,
        grace: GRACE,
    }
}

/// Returns the end of a run whose script never started.
const fn end_without_process(reason: EndReason, error_tail: String) -> ScriptEnd {
    ScriptEnd {
        reason,
        exit: None,
        error_tail,
    }
}

fn run_end(outcome: ProcessOutcome) -> ScriptEnd {
    ScriptEnd {
        reason: match outcome.cause {
            EndCause::Exited => EndReason::Exited,
            EndCause::Cancelled => EndReason::Cancelled,
            EndCause::TimedOut => EndReason::TimedOut,
            EndCause::Memory => EndReason::Memory,
            EndCause::Processes => EndReason::Processes,
            EndCause::Scratch => EndReason::Scratch,
            EndCause::DiskFull => EndReason::DiskFull,
        },
        exit: Some(match outcome.exit {
            Exit::Code(code) => RunExit::Code(code),
            Exit::Signal(signal) => RunExit::Signal(signal),
        }),
        error_tail: outcome.error_tail,
    }
}
