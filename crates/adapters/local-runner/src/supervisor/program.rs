//! Starting the program, with everything given up that it must not have.

use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use nix::unistd::{Pid, setsid};

use super::{
    Isolation, Order, Pipes, account,
    fork::{Forked, fork},
    limits,
};

/// Starts it as a child of this process.
pub(super) fn start(order: &Order) -> Result<(Pid, Pipes), String> {
    let pipe = || std::io::pipe().map_err(|error| format!("pipe: {error}"));
    let ((output, output_end), (error, error_end)) = (pipe()?, pipe()?);
    // What goes wrong in the child comes back here; the descriptor closes when it becomes the program.
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
            let reason = become_program(order, output_end.into(), error_end.into());
            let mut report_end = report_end;
            let _ = std::io::Write::write_all(&mut report_end, reason.as_bytes());
            drop(report_end);
            std::process::exit(127)
        }
    }
}

/// Becomes the program. Returns only why it could not.
fn become_program(order: &Order, output: Stdio, error: Stdio) -> String {
    let give_up = || -> Result<(), String> {
        setsid().map_err(|error| format!("setsid: {error}"))?;
        limits::apply(&order.limits)?;
        if let Some(id) = order.account {
            account::become_account(id)?;
        }
        account::give_up_privileges()?;
        #[cfg(target_os = "linux")]
        if order.isolation != Isolation::Nothing {
            super::landlocked::restrict(order)?;
        }
        Ok(())
    };
    if let Err(reason) = give_up() {
        return reason;
    }
    let Some((program, arguments)) = order.command.split_first() else {
        return "no command".to_owned();
    };
    let error = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.directory)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(error)
        .exec();
    format!("{program}: {error}")
}
