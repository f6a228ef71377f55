//! Supervisor process between the platform and a program.
//!
//! One supervisor is started per program, with one thread, so that it may fork. It sets up the
//! requested isolation, starts the program in it, copies its output into the log, enforces its
//! limits, and ends only when no process of the run is left. When the platform dies, the
//! supervisor's standard input ends, and it kills the run.
//!
//! Two processes share this work. The outer one creates the namespaces and forks; the inner one is
//! the first process of the new process namespace, so the kernel kills the rest of the namespace
//! with it. Without namespaces the inner one is the subreaper of the run's processes, and finds them
//! by their parents.

#[cfg(target_os = "linux")]
mod disk_usage;
mod fork;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod memory_usage;
mod monitor;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
mod privileges;
mod processes;
mod program;
pub(crate) mod resource_limits;
mod system_calls;
mod tail;
#[cfg(target_os = "linux")]
mod usage;

use std::{fs::File, io, os::fd::AsFd, process::ExitCode};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        stat::{Mode, umask},
        wait::{WaitStatus, waitpid},
    },
    unistd::read,
};

use crate::{
    descriptors,
    launch::{Event, LaunchAccount, LaunchRequest},
    log_segments,
    pipes::ProcessPipes,
    spec::Isolation,
};

use self::fork::{Forked, fork};
#[cfg(target_os = "linux")]
pub(crate) use self::landlock_rules::can_limit_tcp;
pub(crate) use self::privileges::drop_privileges;
pub use self::tail::ERROR_TAIL_BYTES;

/// Maximum length of a launch request, in bytes.
const MAX_REQUEST_BYTES: u64 = 16 << 20;

/// Denies this process every file but those that it has open, the network, and other programs.
pub(crate) fn refuse_all_but_pipes() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    landlock_rules::restrict_to_open_files()?;
    system_calls::restrict_to_pipes()
}

/// Runs the process that a [`Sandbox`](crate::Sandbox) requests on standard input.
///
/// Called by the program in [`Settings::supervisor`](crate::Settings::supervisor), before it starts
/// any thread.
#[must_use]
pub fn supervise() -> ExitCode {
    match supervised() {
        Ok(code) => code,
        Err(reason) => {
            Event::Failed(reason).send();
            ExitCode::FAILURE
        }
    }
}

fn supervised() -> Result<ExitCode, String> {
    // The program's account must be able to read the new root's directories.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let request = read_request().map_err(|error| format!("no launch request: {error}"))?;
    let pipes = request.has_pipes.then(receive_pipes).transpose()?;
    // Held by both processes of the supervisor until none of the run is left.
    let _account = request.account.as_ref().map(hold_account).transpose()?;
    // Opened here: in namespaces the file does not exist.
    let cgroup = request.cgroup.as_ref().map(|file| {
        let opened = File::options().write(true).open(file);
        opened.map_err(|error| format!("{}: {error}", file.display()))
    });
    let cgroup = cgroup.transpose()?;
    let log = log_segments::Writer::open(&request.log, request.logged)
        .map_err(|error| format!("the log cannot be written: {error}"))?;
    #[cfg(target_os = "linux")]
    if request.isolation == Isolation::Namespaces {
        namespaces::enter(request.network).map_err(|error| format!("no namespaces: {error}"))?;
        network::set_up(&request.namespace)?;
    }
    // A process that creates a process namespace stays outside of it: only its child is inside.
    match fork().map_err(|error| format!("fork: {error}"))? {
        Forked::Parent(child) => {
            // Only the program has them open, so they end with it.
            drop(pipes);
            loop {
                match waitpid(child, None) {
                    // A signal interrupted the wait, not the child.
                    Err(Errno::EINTR) => {}
                    Ok(WaitStatus::Exited(_, 0)) => return Ok(ExitCode::SUCCESS),
                    _ => return Ok(ExitCode::FAILURE),
                }
            }
        }
        Forked::Child => inner(&request, pipes, cgroup, log),
    }
}

/// Retains the account in use. Fails if the platform has died, because the account may have been
/// allocated again before it was locked here.
fn hold_account(account: &LaunchAccount) -> Result<File, String> {
    let failed = |error: io::Error| format!("{}: {error}", account.file.display());
    let file = File::open(&account.file).map_err(failed)?;
    file.lock_shared().map_err(failed)?;
    let stdin = io::stdin();
    let mut control = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    // The result is in `revents`; an error leaves that empty, which reads as "alive".
    let _ = poll(&mut control, PollTimeout::ZERO);
    let hung_up = control.iter().any(|control| {
        control
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLHUP))
    });
    if hung_up {
        return Err("the platform has died".to_owned());
    }
    Ok(file)
}

/// Runs the inner process.
fn inner(
    request: &LaunchRequest,
    pipes: Option<ProcessPipes>,
    cgroup: Option<File>,
    log: log_segments::Writer,
) -> Result<ExitCode, String> {
    // First: a platform that dies from here on must not leave the program behind.
    processes::bind_to_parent();
    #[cfg(target_os = "linux")]
    if request.isolation == Isolation::Namespaces {
        namespaces::build_root(request)?;
    }
    let (program, output) = program::start(request, pipes, cgroup)?;
    #[cfg(target_os = "linux")]
    let _held = landlock_rules::hold_own_files(request, program);
    match monitor::run_to_end(request, program, output, log) {
        Some(outcome) => {
            Event::Ended(outcome).send();
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::FAILURE),
    }
}

/// Receives the program's standard input and output.
fn receive_pipes() -> Result<ProcessPipes, String> {
    let files = descriptors::receive(io::stdin()).map_err(|error| format!("pipes: {error}"))?;
    ProcessPipes::from_files(files).ok_or_else(|| "no pipes".to_owned())
}

/// Reads the launch request without a buffer: later bytes are for the monitor.
fn read_request() -> io::Result<LaunchRequest> {
    let mut length = [0; 8];
    read_exactly(&mut length)?;
    let length = u64::from_le_bytes(length);
    // Bounds the allocation below before anything of the message is believed.
    if length > MAX_REQUEST_BYTES {
        return Err(io::Error::other("too long"));
    }
    let mut text = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    read_exactly(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn read_exactly(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(io::stdin(), buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
