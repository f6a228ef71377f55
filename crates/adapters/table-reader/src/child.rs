//! The platform's side: start and end of a reader.

use std::{
    ffi::OsString,
    io::{self, BufWriter},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use labdata_ports::{
    PortError,
    reading::{ReaderEnd, ReaderProcess, StartedReader, TableReader},
};

/// Signals by which a reader ends (signal(7)).
const ABORT: i32 = 6;
const KILL: i32 = 9;
const CPU_TIME: i32 = 24;

/// Readers that are processes of a program.
#[derive(Clone, Debug)]
pub struct ChildTableReader {
    program: OsString,
    arguments: Vec<OsString>,
}

impl ChildTableReader {
    /// Creates readers that run this program with these arguments, which calls
    /// [`read_table`](crate::read_table).
    #[must_use]
    pub const fn new(program: OsString, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    fn spawn(&self) -> io::Result<StartedReader> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            // The platform's own environment holds secrets.
            .env_clear()
            // A reader must not hold the platform's working directory, which may be unmounted.
            .current_dir("/")
            // Ctrl-C is for the platform, which ends its readers with their requests.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An allocation that fails is reported there, and the exit status says it as well.
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = Arc::new(ReaderChild {
            child: Mutex::new(child),
            is_killed: AtomicBool::new(false),
        });
        match (input, output) {
            (Some(input), Some(output)) => Ok(StartedReader {
                input: Box::new(BufWriter::new(input)),
                output: Box::new(output),
                process,
            }),
            _ => Err(io::Error::other("a reader without pipes")),
        }
    }
}

impl TableReader for ChildTableReader {
    fn start(&self) -> Result<StartedReader, PortError> {
        self.spawn().map_err(|error| {
            PortError::Internal(format!("a reader of tables does not start: {error}"))
        })
    }
}

struct ReaderChild {
    child: Mutex<Child>,
    is_killed: AtomicBool,
}

impl ReaderChild {
    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderProcess for ReaderChild {
    fn kill(&self) {
        let mut child = self.lock();
        // One that has ended by itself has a better reason.
        if matches!(child.try_wait(), Ok(None)) {
            self.is_killed.store(true, Ordering::Relaxed);
            // It may have ended since.
            let _ = child.kill();
        }
    }

    fn end(&self) -> ReaderEnd {
        let mut child = self.lock();
        // The kernel has decided on the status before it closes the pipes: this ends only a reader that has
        // closed them itself.
        let _ = child.kill();
        match child.wait() {
            Ok(status) if status.success() => ReaderEnd::Done,
            Ok(_) if self.is_killed.load(Ordering::Relaxed) => ReaderEnd::Killed,
            Ok(status) => interpret_exit(status),
            Err(_) => ReaderEnd::Crashed,
        }
    }
}

/// Returns why a reader ended that was not killed.
fn interpret_exit(status: ExitStatus) -> ReaderEnd {
    match status.signal() {
        // Rust aborts when an allocation fails, and the kernel kills when the machine has no memory left.
        Some(ABORT | KILL) => ReaderEnd::OutOfMemory,
        Some(CPU_TIME) => ReaderEnd::OutOfTime,
        _ => ReaderEnd::Crashed,
    }
}

impl Drop for ReaderChild {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Reaped as well, since it would stay a zombie.
        let _ = child.kill();
        let _ = child.wait();
    }
}
