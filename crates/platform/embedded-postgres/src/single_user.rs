//! Statements for a cluster whose server does not run.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::process::server_command;
use crate::{Durability, Error};

/// Settings of single-user mode. A statement may contain a password, which must not be logged.
const SINGLE_USER: &[&str] = &[
    "log_checkpoints=off",
    "log_statement=none",
    "log_min_duration_statement=-1",
    "log_min_error_statement=panic",
    "password_encryption=scram-sha-256",
];

/// Runs statements, one per line, in single-user mode, which needs neither socket nor client, nor a
/// password. They go through a pipe, so no other process sees them.
pub(crate) fn run_single_user(
    cluster: &Path,
    account: Account,
    binaries: &Binaries,
    durability: Durability,
    statements: &str,
) -> Result<(), Error> {
    let program = binaries.program("postgres");
    let mut command = server_command(&program, account, Signal::INT);
    command.arg("--single");
    for setting in SINGLE_USER {
        command.args(["-c", setting]);
    }
    if durability == Durability::Throwaway {
        command.args(["-c", "fsync=off"]);
    }
    let mut child = command
        .arg("-D")
        .arg(cluster)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("run", &program))?;
    if let Some(mut input) = child.stdin.take() {
        // If this fails, the program fails too and reports the reason.
        let _ = input.write_all(statements.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(Error::io("run", &program))?;
    // In single-user mode a failed statement does not fail the program.
    let complained = String::from_utf8_lossy(&output.stderr).contains("ERROR:");
    if output.status.success() && !complained {
        Ok(())
    } else {
        Err(failure(&output))
    }
}

/// Returns the error of a program that failed.
pub(crate) fn failure(output: &Output) -> Error {
    let mut text = crate::log::last_lines(&output.stderr);
    if text.is_empty() {
        text = crate::log::last_lines(&output.stdout);
    }
    Error::Initdb {
        output: format!("{text} ({})", output.status),
    }
}
