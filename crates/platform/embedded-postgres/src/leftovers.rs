//! Cleanup of processes and files that an earlier owner of the cluster has left.
//!
//! The caller holds the lock of the data directory, so no living process owns the server: a
//! postmaster that still runs is shutting down (its parent died) or is an orphan.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::Error;
use crate::layout::SOCKET_NAME;
use crate::postmaster_pid::{FILE_NAME, PostmasterPid};
use crate::process::{exists, is_server_of, servers_of, signal};

/// Time limit of a fast shutdown, which writes a checkpoint.
const FAST_SHUTDOWN: Duration = Duration::from_mins(1);

/// Time limit of an immediate shutdown.
const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(10);

/// Interval between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Ends every process of the cluster and removes the lock files that would block the start.
///
/// The `postmaster.pid` of a dead postmaster stays, because the server itself checks it for shared
/// memory in use. It goes when its process id belongs to another program by now, or to a zombie:
/// the server would take that for a running postmaster. The socket and its lock file always go.
pub(crate) fn clear(cluster: &Path, socket_dir: &Path) -> Result<(), Error> {
    if let Some(file) = PostmasterPid::read(cluster)
        && is_server_of(file.pid, cluster)
    {
        stop_postmaster(&file, cluster)?;
    }
    // Backends outlive a postmaster that was killed with SIGKILL, and may still write.
    end_backends(cluster)?;
    if let Some(file) = PostmasterPid::read(cluster)
        && exists(file.pid)
    {
        let path = cluster.join(FILE_NAME);
        tracing::warn!(
            pid = file.pid.as_raw_nonzero().get(),
            "removing a stale postmaster.pid that names a process of another program",
        );
        // PostgreSQL would take any living process of that id for its predecessor and not start.
        fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    // The lock has a process id, too, which may be that of another program by now.
    for name in [SOCKET_NAME.to_owned(), format!("{SOCKET_NAME}.lock")] {
        let path = socket_dir.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::Io {
                    what: "remove",
                    path,
                    source: error,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

fn stop_postmaster(file: &PostmasterPid, cluster: &Path) -> Result<(), Error> {
    let deleted = || !is_server_of(file.pid, cluster);
    tracing::info!(
        pid = file.pid.as_raw_nonzero().get(),
        status = file.status,
        "waiting for an earlier PostgreSQL on this data directory to stop",
    );
    if !file.is_stopping() {
        signal(file.pid, Signal::INT);
    }
    if wait_until(FAST_SHUTDOWN, deleted) {
        return Ok(());
    }
    // PostgreSQL reads INT as its fast shutdown, and QUIT as the immediate one, after which the next start recovers
    // from the log.
    signal(file.pid, Signal::QUIT);
    if wait_until(IMMEDIATE_SHUTDOWN, deleted) {
        Ok(())
    } else {
        Err(remaining(file.pid))
    }
}

/// Processes whose postmaster was killed end by themselves, unless they are busy.
fn end_backends(cluster: &Path) -> Result<(), Error> {
    // QUIT lets a backend release its locks; one that does not react gets KILL.
    for kind in [Signal::QUIT, Signal::KILL] {
        for pid in servers_of(cluster) {
            signal(pid, kind);
        }
        if wait_until(IMMEDIATE_SHUTDOWN, || servers_of(cluster).is_empty()) {
            return Ok(());
        }
    }
    servers_of(cluster)
        .first()
        .map_or(Ok(()), |pid| Err(remaining(*pid)))
}

fn remaining(pid: Pid) -> Error {
    Error::EarlierServer {
        pid: pid.as_raw_nonzero().get(),
    }
}

fn wait_until(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > limit {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}
