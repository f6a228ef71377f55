//! The process that stands between the platform and a script.
//!
//! It is started for each run, with one thread, so that it may fork. It makes the isolation that it
//! was ordered, starts the program in it, copies its output into the log, watches its limits, and
//! ends only when nothing of the run is left. It is killed with the platform: its standard input
//! ends then.
//!
//! Two processes do this. The outer one asks for namespaces and forks; the inner one is the first
//! process of the new process namespace, so the kernel kills all others with it, however they were
//! started. Without namespaces the inner one is their subreaper, and finds them by their parents.

mod account;
mod fork;
#[cfg(target_os = "linux")]
mod landlocked;
mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
mod order;
mod processes;
mod program;
mod tail;
mod watch;

use std::{
    io::{self, PipeReader, Write},
    process::ExitCode,
};

use nix::{
    errno::Errno,
    sys::{
        stat::{Mode, umask},
        wait::{WaitStatus, waitpid},
    },
    unistd::read,
};

use self::fork::{Forked, fork};
pub use self::order::Isolation;
pub(crate) use self::order::{CANCEL, Cause, Event, Exit, Limits, Order};

/// The longest order, in bytes.
const LONGEST_ORDER: u64 = 16 << 20;

/// Does what [`crate::LocalRunner`] orders on standard input. For the hidden command of the
/// program that the runner was told to start, before that has started any thread.
#[must_use]
pub fn supervise() -> ExitCode {
    match supervised() {
        Ok(code) => code,
        Err(reason) => {
            say(&Event::Failed(reason));
            ExitCode::FAILURE
        }
    }
}

fn supervised() -> Result<ExitCode, String> {
    // What is made on the way to the program is for its account to see.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let order = read_order().map_err(|error| format!("no order: {error}"))?;
    let log = crate::log_segments::Writer::open(&order.log, order.logged)
        .map_err(|error| format!("the log cannot be written: {error}"))?;
    #[cfg(target_os = "linux")]
    if order.isolation == Isolation::Namespaces {
        namespaces::enter().map_err(|error| format!("no namespaces: {error}"))?;
    }
    match fork().map_err(|error| format!("fork: {error}"))? {
        Forked::Parent(child) => loop {
            match waitpid(child, None) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Exited(_, 0)) => return Ok(ExitCode::SUCCESS),
                _ => return Ok(ExitCode::FAILURE),
            }
        },
        Forked::Child => inner(&order, log),
    }
}

/// The inner process.
fn inner(order: &Order, log: crate::log_segments::Writer) -> Result<ExitCode, String> {
    processes::belong_to_parent();
    #[cfg(target_os = "linux")]
    if order.isolation == Isolation::Namespaces {
        namespaces::build_root(order)?;
    }
    let (program, pipes) = program::start(order)?;
    let end = watch::watch(order, program, pipes, log);
    match end {
        Some(event) => {
            say(&event);
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::FAILURE),
    }
}

/// The program's standard output and standard error.
pub(crate) struct Pipes {
    pub(crate) output: PipeReader,
    pub(crate) error: PipeReader,
}

/// One event to the runner; nobody is there to be told that it did not arrive.
fn say(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else {
        return;
    };
    line.push(b'\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

/// Reads the order without a buffer: what follows it is for the watch.
fn read_order() -> io::Result<Order> {
    let mut length = [0; 8];
    read_exactly(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_ORDER {
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
