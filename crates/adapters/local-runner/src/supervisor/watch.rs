//! Watching a program until nothing of it is left.

use std::{
    io::{self, ErrorKind, PipeReader, Read},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use labdata_ports::runner::GRACE;
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::Signal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, read},
};

use super::{CANCEL, Cause, Event, Exit, Order, Pipes, processes, say, tail::Tail};
use crate::log_segments::Writer;

/// How often the memory is looked at, and orphans are buried.
const LOOK: Duration = Duration::from_millis(250);

/// How long an announcement of a longer log waits for the next.
const ANNOUNCE: Duration = Duration::from_millis(20);

/// How long the last processes may take to die of KILL.
const BURIAL: Duration = Duration::from_secs(10);

/// Without a descriptor of the process, how often its end is looked for.
const WITHOUT_DESCRIPTOR: Duration = Duration::from_millis(10);

struct Watch<'a> {
    order: &'a Order,
    program: Pid,
    output: Option<PipeReader>,
    error: Option<PipeReader>,
    log: Writer,
    tail: Tail,
    cause: Option<Cause>,
    exit: Option<Exit>,
    announced: u64,
}

/// Watches until the program and all that came from it have ended. None when the runner is gone:
/// then nobody wants to know.
pub(super) fn watch(order: &Order, program: Pid, pipes: Pipes, log: Writer) -> Option<Event> {
    for pipe in [&pipes.output, &pipes.error] {
        // A read that finds nothing must not wait.
        let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    }
    let mut watch = Watch {
        order,
        program,
        output: Some(pipes.output),
        error: Some(pipes.error),
        announced: log.length(),
        log,
        tail: Tail::default(),
        cause: None,
        exit: None,
    };
    let wanted = watch.follow();
    watch.bury();
    wanted.then(|| watch.end())
}

impl Watch<'_> {
    /// Follows the program to its end. False when the runner is gone.
    fn follow(&mut self) -> bool {
        let begun = Instant::now();
        let timeout = begun.checked_add(Duration::from_millis(self.order.limits.wall_clock_ms));
        let (mut look, mut announce, mut kill_at) = (begun + LOOK, begun, None::<Instant>);
        let descriptor = descriptor(self.program);
        loop {
            self.wait_for_exits();
            if self.exit.is_some() {
                return true;
            }
            let now = Instant::now();
            if self.cause.is_none() && timeout.is_some_and(|at| now >= at) {
                self.cause = Some(Cause::TimedOut);
                kill_at = Some(now);
            }
            if now >= look {
                look = now + LOOK;
                let limit = self.order.limits.memory;
                if self.cause.is_none() && processes::use_more_than(self.order.isolation, limit) {
                    self.cause = Some(Cause::Memory);
                    kill_at = Some(now);
                }
            }
            if kill_at.is_some_and(|at| now >= at) {
                self.signal(Signal::SIGKILL);
                // What was forked meanwhile is found the next time.
                kill_at = Some(now + LOOK);
            }
            if self.log.length() != self.announced && now >= announce {
                self.announce();
                announce = now + ANNOUNCE;
            }
            let mut next = look;
            next = next.min(timeout.filter(|_| self.cause.is_none()).unwrap_or(next));
            next = next.min(kill_at.unwrap_or(next));
            if self.log.length() != self.announced {
                next = next.min(announce);
            }
            if descriptor.is_none() {
                next = next.min(now + WITHOUT_DESCRIPTOR);
            }
            let woken = self.poll(descriptor.as_ref(), next.saturating_duration_since(now));
            if woken.output {
                copy(&mut self.output, |bytes| self.log.write(bytes));
            }
            if woken.error {
                let tail = &mut self.tail;
                copy(&mut self.error, |bytes| {
                    tail.push(bytes);
                    self.log.write(bytes)
                });
            }
            if woken.control {
                match control() {
                    Control::Cancel if self.cause.is_none() => {
                        self.cause = Some(Cause::Cancelled);
                        self.signal(Signal::SIGTERM);
                        kill_at = Some(Instant::now() + GRACE);
                    }
                    Control::Gone => return false,
                    Control::Cancel | Control::Nothing => {}
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        processes::signal_all(self.order.isolation, self.program, signal);
    }

    /// Waits for something to do.
    fn poll(&self, program: Option<&OwnedFd>, most: Duration) -> Woken {
        let stdin = io::stdin();
        let mut descriptors = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let sources = [
            self.output.as_ref().map(AsFd::as_fd),
            self.error.as_ref().map(AsFd::as_fd),
            program.map(AsFd::as_fd),
        ];
        let listened = sources.into_iter().flatten();
        descriptors.extend(listened.map(|source| PollFd::new(source, PollFlags::POLLIN)));
        // Rounded up: a wait that ends too early would only be repeated.
        let most = most.saturating_add(Duration::from_millis(1));
        let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut descriptors, timeout);
        let mut ready = descriptors
            .iter()
            .map(|descriptor| descriptor.any().unwrap_or(true));
        Woken {
            control: ready.next().unwrap_or(false),
            output: self.output.is_some() && ready.next().unwrap_or(false),
            error: self.error.is_some() && ready.next().unwrap_or(false),
        }
    }

    /// Takes note of every child that has ended.
    fn wait_for_exits(&mut self) {
        loop {
            let exit = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    (pid, Exit::Signal(i32::from(Number(signal))))
                }
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => continue,
            };
            if exit.0 == self.program {
                self.exit = Some(exit.1);
            }
        }
    }

    /// Kills what is left and waits until it is dead.
    fn bury(&mut self) {
        let end = Instant::now() + BURIAL;
        loop {
            self.signal(Signal::SIGKILL);
            self.wait_for_exits();
            let left = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG));
            if left == Err(Errno::ECHILD) || Instant::now() >= end {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The end, after the rest of the output was read.
    fn end(mut self) -> Event {
        while self.output.is_some() && copy(&mut self.output, |bytes| self.log.write(bytes)) {}
        let tail = &mut self.tail;
        while self.error.is_some()
            && copy(&mut self.error, |bytes| {
                tail.push(bytes);
                self.log.write(bytes)
            })
        {}
        let exit = self.exit.unwrap_or(Exit::Signal(9));
        let tail = self.tail.into_lines();
        let last = tail.lines().next_back().unwrap_or_default();
        let refused_memory = exit != Exit::Code(0) && last.starts_with("MemoryError");
        Event::Ended {
            cause: match self.cause {
                Some(cause) => cause,
                // The kernel refused it, and Python said so.
                None if refused_memory => Cause::Memory,
                None => Cause::Itself,
            },
            exit,
            tail,
            logged: self.log.length(),
        }
    }

    /// Tells the log's length, unless the runner is so far behind that it would have to wait.
    fn announce(&mut self) {
        let stdout = io::stdout();
        let mut room = [PollFd::new(stdout.as_fd(), PollFlags::POLLOUT)];
        if matches!(poll(&mut room, PollTimeout::ZERO), Ok(1..)) {
            self.announced = self.log.length();
            say(&Event::Logged(self.announced));
        }
    }
}

/// What [`Watch::poll`] found.
struct Woken {
    control: bool,
    output: bool,
    error: bool,
}

/// A signal as its number.
struct Number(Signal);

impl From<Number> for i32 {
    #[expect(
        clippy::as_conversions,
        reason = "the enumeration's values are the numbers"
    )]
    fn from(number: Number) -> Self {
        number.0 as Self
    }
}

/// A descriptor that can be polled for the end of the process.
#[cfg(target_os = "linux")]
fn descriptor(program: Pid) -> Option<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(program.as_raw())?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: Pid) -> Option<OwnedFd> {
    None
}

/// What the runner said.
enum Control {
    Cancel,
    Gone,
    Nothing,
}

fn control() -> Control {
    let mut bytes = [0; 16];
    match read(io::stdin(), &mut bytes) {
        Ok(0) => Control::Gone,
        Ok(_) if bytes.contains(&CANCEL) => Control::Cancel,
        Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => Control::Nothing,
        Err(_) => Control::Gone,
    }
}

/// Copies a part of what is in the pipe. The pipe is dropped at its end. False when nothing was
/// there.
fn copy(pipe: &mut Option<PipeReader>, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> bool {
    let mut buffer = vec![0; 64 * 1024];
    for _ in 0..16 {
        let Some(open) = pipe else { return false };
        match open.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                // A full disk must not stop the script.
                let _ = take(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => *pipe = None,
        }
    }
    true
}
