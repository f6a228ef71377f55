//! Warm processes that wait for the next file of their organization.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use labdata_domain::ids::OrganizationId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use crate::process::WarmProcess;

/// The idle processes. They end with it.
#[derive(Debug)]
pub(crate) struct Pool {
    /// One permit per process, held until nothing is left of it.
    permits: Arc<Semaphore>,
    /// Time without a file after which a process is ended.
    idle_limit: Duration,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Ordered by the time of their last file.
    processes: Vec<WarmProcess>,
    /// True if a task ends those that are idle for too long.
    is_swept: bool,
}

impl Pool {
    /// Creates a pool for at most `limit` processes, idle ones included.
    pub(crate) fn new(limit: usize, idle_limit: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limit)),
            idle_limit,
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle process of an organization. Never that of another one: what a file does to a process stays
    /// in the organization whose file it is.
    pub(crate) fn take(&self, organization: OrganizationId) -> Option<WarmProcess> {
        let mut idle = self.idle();
        idle.processes.retain(|process| !process.is_done());
        let position = idle
            .processes
            .iter()
            .rposition(|process| process.organization == organization)?;
        Some(idle.processes.remove(position))
    }

    /// Returns the permit of a new process. Ends the process that was idle for the longest time if there are as
    /// many as may be. At most as many callers may hold processes as there are permits.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Some(permit);
        }
        {
            let mut idle = self.idle();
            if !idle.processes.is_empty() {
                drop(idle.processes.remove(0));
            }
        }
        // Returned when the process that was ended, here or by its last caller, is gone.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Takes back a process after a file.
    pub(crate) fn put_back(self: &Arc<Self>, process: WarmProcess) {
        let mut idle = self.idle();
        idle.processes.push(process);
        // Under the lock of the pool, as `end_idle` clears the flag: no process is left without a task that ends it.
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.idle_limit));
        }
    }

    /// Ends the processes that are idle for too long. Returns the time until the next one is; none if no process
    /// is left.
    fn end_idle(&self) -> Option<Duration> {
        let mut idle = self.idle();
        let now = Instant::now();
        let limit = self.idle_limit;
        let age = |process: &WarmProcess| now.saturating_duration_since(process.last_used);
        idle.processes.retain(|process| age(process) < limit);
        let next = idle.processes.iter().map(age).max();
        idle.is_swept = next.is_some();
        next.map(|oldest| limit.saturating_sub(oldest))
    }
}

/// Ends idle processes until none is left.
async fn sweep(pool: Weak<Pool>, first: Duration) {
    let mut pause = first;
    loop {
        sleep(pause).await;
        // Weak, so that the processes end with the reader of files, not with this task.
        let next = pool.upgrade().and_then(|pool| pool.end_idle());
        let Some(next) = next else { return };
        pause = next;
    }
}
