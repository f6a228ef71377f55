//! Start of the program, after all privileges were dropped.

use std::{
    fs::File,
    io::PipeReader,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use nix::unistd::{Pid, setsid};

use super::{
    fork::{Forked, fork},
    privileges, resource_limits, system_calls,
};
use crate::{launch::LaunchRequest, pipes::ProcessPipes, spec::Isolation};

/// Output of the program that is logged.
pub(super) struct LoggedOutput {
    /// Standard output, unless the platform reads it.
    pub(super) output: Option<PipeReader>,
    /// Standard error.
    pub(super) error: PipeReader,
}

/// Standard input, output and error of the program.
struct Stdios {
    input: Stdio,
    output: Stdio,
    error: Stdio,
}

/// Starts the program as a child of this process, in the control group that has this file. Its standard
/// input and output are the pipes, if there are any.
pub(super) fn start(
    request: &LaunchRequest,
    pipes: Option<ProcessPipes>,
    cgroup: Option<File>,
) -> Result<(Pid, LoggedOutput), String> {
    let pipe = || std::io::pipe().map_err(|error| format!("pipe: {error}"));
    let (error, error_end) = pipe()?;
    let (output, stdios) = if let Some(pipes) = pipes {
        let stdios = Stdios {
            input: pipes.input.into(),
            output: pipes.output.into(),
            error: error_end.into(),
        };
        (None, stdios)
    } else {
        let (output, output_end) = pipe()?;
        let stdios = Stdios {
            input: Stdio::null(),
            output: output_end.into(),
            error: error_end.into(),
        };
        (Some(output), stdios)
    };
    // The child reports errors here; the descriptor closes when the program is executed.
    let (mut report, report_end) = pipe()?;
    match fork()? {
        Forked::Parent(child) => {
            // The streams end with the program.
            drop((stdios, report_end));
            let mut reason = String::new();
            // Ends at once when the program is executed, because its copy of the descriptor closes then.
            std::io::Read::read_to_string(&mut report, &mut reason)
                .map_err(|error| format!("the program's start: {error}"))?;
            if reason.is_empty() {
                Ok((child, LoggedOutput { output, error }))
            } else {
                Err(reason)
            }
        }
        Forked::Child => {
            let reason = become_program(request, cgroup, stdios);
            let mut report_end = report_end;
            let _ = std::io::Write::write_all(&mut report_end, reason.as_bytes());
            drop(report_end);
            // As a shell reports a command that cannot be run.
            std::process::exit(127)
        }
    }
}

/// Executes the program. Returns only on failure, with the reason.
fn become_program(request: &LaunchRequest, cgroup: Option<File>, stdios: Stdios) -> String {
    let prepare = || -> Result<(), String> {
        if let Some(mut members) = cgroup {
            // The kernel reads 0 as the process that writes (cgroups(7)).
            std::io::Write::write_all(&mut members, b"0")
                .map_err(|error| format!("the control group: {error}"))?;
        }
        // A separate session: the terminal's signals and job control do not reach the script.
        setsid().map_err(|error| format!("setsid: {error}"))?;
        // Before the account changes: an ordinary account may lower limits, not raise them.
        resource_limits::apply(&resource_limits::of_program(request))?;
        if let Some(account) = &request.account {
            privileges::become_account(account)?;
        }
        // Sets `no_new_privs`, without which neither Landlock nor seccomp can be installed.
        privileges::drop_privileges()?;
        #[cfg(target_os = "linux")]
        if request.isolation != Isolation::Nothing {
            super::landlock_rules::restrict(request)?;
        }
        // Last: the steps before need calls that the filter forbids.
        system_calls::restrict()
    };
    if let Err(reason) = prepare() {
        return reason;
    }
    let Some((program, arguments)) = request.command.split_first() else {
        return "no command".to_owned();
    };
    let error = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(
            request
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .current_dir(&request.directory)
        .stdin(stdios.input)
        .stdout(stdios.output)
        .stderr(stdios.error)
        .exec();
    format!("{program}: {error}")
}
