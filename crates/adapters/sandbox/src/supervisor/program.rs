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
use crate::{launch::LaunchRequest, spec::Isolation};

/// Standard output and standard error of the program.
pub(super) struct Pipes {
    pub(super) output: PipeReader,
    pub(super) error: PipeReader,
}

/// Starts the program as a child of this process, in the control group that has this file.
pub(super) fn start(request: &LaunchRequest, cgroup: Option<File>) -> Result<(Pid, Pipes), String> {
    let pipe = || std::io::pipe().map_err(|error| format!("pipe: {error}"));
    let ((output, output_end), (error, error_end)) = (pipe()?, pipe()?);
    // The child reports errors here; the descriptor closes when the program is executed.
    let (mut report, report_end) = pipe()?;
    match fork()? {
        Forked::Parent(child) => {
            drop((output_end, error_end, report_end));
            let mut reason = String::new();
            std::io::Read::read_to_string(&mut report, &mut reason)
                .map_err(|error| format!("the program's start: {error}"))?;
            if reason.is_empty() {
                Ok((child, Pipes { output, error }))
            } else {
                Err(reason)
            }
        }
        Forked::Child => {
            let reason = become_program(request, cgroup, output_end.into(), error_end.into());
            let mut report_end = report_end;
            let _ = std::io::Write::write_all(&mut report_end, reason.as_bytes());
            drop(report_end);
            std::process::exit(127)
        }
    }
}

/// Executes the program. Returns only on failure, with the reason.
fn become_program(
    request: &LaunchRequest,
    cgroup: Option<File>,
    output: Stdio,
    error: Stdio,
) -> String {
    let prepare = || -> Result<(), String> {
        if let Some(mut members) = cgroup {
            // This process.
            std::io::Write::write_all(&mut members, b"0")
                .map_err(|error| format!("the control group: {error}"))?;
        }
        setsid().map_err(|error| format!("setsid: {error}"))?;
        resource_limits::apply(&request.limits)?;
        if let Some(account) = &request.account {
            privileges::become_account(account)?;
        }
        privileges::drop_privileges()?;
        #[cfg(target_os = "linux")]
        if request.isolation != Isolation::Nothing {
            super::landlock_rules::restrict(request)?;
        }
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
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(error)
        .exec();
    format!("{program}: {error}")
}
