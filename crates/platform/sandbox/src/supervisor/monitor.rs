//! Monitor of a program until none of its processes is left.

use std::{
    io::{self, ErrorKind, PipeReader, Read},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

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

#[cfg(target_os = "linux")]
use super::usage::Usage;
use super::{processes, program::LoggedOutput, tail::Tail};
use crate::{
    launch::{CANCEL, Event, LaunchRequest},
    log_segments::Writer,
    spec::{EndCause, Exit, ProcessOutcome, is_refused_memory},
};

/// Interval of checks of the limits of the whole run, and of repeated kills.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Minimum interval between two reports of the log's length.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// Time that killed processes may take to disappear.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// Interval of checks for the end of a process that has no descriptor.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);

struct Monitor<'a> {
    request: &'a LaunchRequest,
    program: Pid,
    output: Option<PipeReader>,
    error: Option<PipeReader>,
    log: Writer,
    tail: Tail,
    cause: Option<EndCause>,
    exit: Option<Exit>,
    reported: u64,
}

/// Monitors the program until it and all its descendants have ended. Returns none if the platform
/// closed the control channel.
pub(super) fn run_to_end(
    request: &LaunchRequest,
    program: Pid,
    logged: LoggedOutput,
    log: Writer,
) -> Option<ProcessOutcome> {
    for pipe in logged.output.iter().chain([&logged.error]) {
        // A read must not block.
        let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    }
    let mut monitor = Monitor {
        request,
        program,
        output: logged.output,
        error: Some(logged.error),
        reported: log.length(),
        log,
        tail: Tail::default(),
        cause: None,
        exit: None,
    };
    let listening = monitor.follow();
    monitor.kill_remaining();
    listening.then(|| monitor.into_outcome())
}

impl Monitor<'_> {
    /// Follows the program to its end. Returns false if the platform closed the control channel.
    fn follow(&mut self) -> bool {
        let started = Instant::now();
        let timeout = started.checked_add(self.request.limits.wall_clock);
        // The first report at once: a short script shows its first line without a pause.
        let (mut check_at, mut report_at, mut kill_at) =
            (started + CHECK_INTERVAL, started, None::<Instant>);
        // Lets `poll` end with the program; without it (macOS) the loop asks every few milliseconds.
        let descriptor = descriptor(self.program);
        #[cfg(target_os = "linux")]
        let mut usage = Usage::new(self.request);
        loop {
            self.collect_exits();
            if self.exit.is_some() {
                return true;
            }
            let now = Instant::now();
            // The first cause stays: a script that is already being ended must not be reported otherwise.
            if self.cause.is_none() && timeout.is_some_and(|at| now >= at) {
                self.cause = Some(EndCause::TimedOut);
                kill_at = Some(now);
            }
            // Reading /proc and the disk costs time that the script would miss, hence not at every turn.
            if now >= check_at {
                check_at = now + CHECK_INTERVAL;
                #[cfg(target_os = "linux")]
                if self.cause.is_none()
                    && let Some(exceeded) = usage.exceeded()
                {
                    self.cause = Some(exceeded);
                    kill_at = Some(now);
                }
            }
            if kill_at.is_some_and(|at| now >= at) {
                self.signal(Signal::SIGKILL);
                // Processes forked in the meantime are found the next time.
                kill_at = Some(now + CHECK_INTERVAL);
            }
            if self.log.length() != self.reported && now >= report_at {
                self.report_length();
                report_at = now + REPORT_INTERVAL;
            }
            let mut next = check_at;
            // A timeout that has passed already would make every wait zero, and the loop would spin until the program
            // ends.
            next = next.min(timeout.filter(|_| self.cause.is_none()).unwrap_or(next));
            next = next.min(kill_at.unwrap_or(next));
            if self.log.length() != self.reported {
                next = next.min(report_at);
            }
            if descriptor.is_none() {
                next = next.min(now + EXIT_POLL_INTERVAL);
            }
            let ready = self.poll(descriptor.as_ref(), next.saturating_duration_since(now));
            if ready.output {
                copy(&mut self.output, |bytes| self.log.write(bytes));
            }
            if ready.error {
                let tail = &mut self.tail;
                copy(&mut self.error, |bytes| {
                    tail.push(bytes);
                    self.log.write(bytes)
                });
            }
            if ready.control {
                match read_control() {
                    // SIGTERM first: a script may close its files and write what it has within the grace time.
                    Control::Cancel if self.cause.is_none() => {
                        self.cause = Some(EndCause::Cancelled);
                        self.signal(Signal::SIGTERM);
                        kill_at = Some(Instant::now() + self.request.limits.grace);
                    }
                    // The platform has died: no one could read an outcome.
                    Control::Closed => return false,
                    Control::Cancel | Control::Nothing => {}
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        processes::signal_all(self.request.isolation, self.program, signal);
    }

    /// Waits for input, an exit or the timeout.
    fn poll(&self, program: Option<&OwnedFd>, timeout: Duration) -> Ready {
        let stdin = io::stdin();
        let mut descriptors = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let sources = [
            self.output.as_ref().map(AsFd::as_fd),
            self.error.as_ref().map(AsFd::as_fd),
            program.map(AsFd::as_fd),
        ];
        let sources = sources.into_iter().flatten();
        descriptors.extend(sources.map(|source| PollFd::new(source, PollFlags::POLLIN)));
        // Rounded up: a wait that ends too early would only be repeated.
        let timeout = timeout.saturating_add(Duration::from_millis(1));
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        // An error, such as a signal, is an empty turn: the loop looks at everything again.
        let _ = poll(&mut descriptors, timeout);
        let mut states = descriptors
            .iter()
            .map(|descriptor| descriptor.any().unwrap_or(true));
        Ready {
            control: states.next().unwrap_or(false),
            output: self.output.is_some() && states.next().unwrap_or(false),
            error: self.error.is_some() && states.next().unwrap_or(false),
        }
    }

    /// Records every child that has ended.
    fn collect_exits(&mut self) {
        loop {
            let exit = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    (pid, Exit::Signal(i32::from(Number(signal))))
                }
                // As subreaper this process must also collect orphans, or they stay as zombies.
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                // Stopped or continued: no end, so it must not be taken for one.
                Ok(_) => continue,
            };
            if exit.0 == self.program {
                self.exit = Some(exit.1);
            }
        }
    }

    /// Kills the remaining processes and waits until they no longer exist.
    fn kill_remaining(&mut self) {
        let end = Instant::now() + KILL_DEADLINE;
        loop {
            self.signal(Signal::SIGKILL);
            self.collect_exits();
            let left = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG));
            if left == Err(Errno::ECHILD) || Instant::now() >= end {
                return;
            }
            // A killed process needs a moment; a fork between two kills is caught by the next.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Reads the rest of the output and returns the outcome.
    fn into_outcome(mut self) -> ProcessOutcome {
        // The pipes may hold output that arrived after the program's end was noticed.
        while self.output.is_some() && copy(&mut self.output, |bytes| self.log.write(bytes)) {}
        let tail = &mut self.tail;
        while self.error.is_some()
            && copy(&mut self.error, |bytes| {
                tail.push(bytes);
                self.log.write(bytes)
            })
        {}
        // Without a collected exit the program outlived the deadline of its kill, as in a disk wait.
        let exit = self.exit.unwrap_or(Exit::Signal(9));
        let tail = self.tail.into_lines();
        let last = tail.lines().next_back().unwrap_or_default();
        // With RLIMIT_AS the kernel kills nothing: allocations fail, and Python says so in its last line.
        let refused_memory = exit != Exit::Code(0) && is_refused_memory(last);
        ProcessOutcome {
            cause: match self.cause {
                Some(cause) => cause,
                // The kernel refused memory, and Python reported it.
                None if refused_memory => EndCause::Memory,
                None => EndCause::Exited,
            },
            exit,
            error_tail: tail,
            logged: self.log.length(),
        }
    }

    /// Reports the log's length, unless the pipe to the platform is full.
    fn report_length(&mut self) {
        let stdout = io::stdout();
        // A slow platform must not block the supervisor, whose limits would then hold no longer.
        let mut room = [PollFd::new(stdout.as_fd(), PollFlags::POLLOUT)];
        if matches!(poll(&mut room, PollTimeout::ZERO), Ok(1..)) {
            self.reported = self.log.length();
            // Only its length: the platform reads the log itself, so a flood of output never passes through this
            // pipe.
            Event::Logged(self.reported).send();
        }
    }
}

/// Sources that [`Monitor::poll`] found ready.
struct Ready {
    control: bool,
    output: bool,
    error: bool,
}

/// Signal, for the conversion to its number.
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

/// Returns a descriptor that can be polled for the end of the process.
#[cfg(target_os = "linux")]
fn descriptor(program: Pid) -> Option<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(program.as_raw())?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: Pid) -> Option<OwnedFd> {
    None
}

/// Request from the platform.
enum Control {
    Cancel,
    Closed,
    Nothing,
}

fn read_control() -> Control {
    let mut bytes = [0; 16];
    match read(io::stdin(), &mut bytes) {
        Ok(0) => Control::Closed,
        Ok(_) if bytes.contains(&CANCEL) => Control::Cancel,
        Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => Control::Nothing,
        // A broken socket is the same as a closed one: the platform is lost.
        Err(_) => Control::Closed,
    }
}

/// Copies up to 1 MiB from the pipe, and drops the pipe at its end. Returns false if it was empty.
fn copy(pipe: &mut Option<PipeReader>, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> bool {
    // The size of a pipe on Linux.
    let mut buffer = vec![0; 64 * 1024];
    // Bounds a turn: a flood of output must not keep the loop from its checks.
    for _ in 0..16 {
        let Some(open) = pipe else { return false };
        match open.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                // A full disk must not stop the program.
                let _ = take(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => *pipe = None,
        }
    }
    true
}
