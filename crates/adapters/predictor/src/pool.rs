//! The processes of all models, and which one must go when another is needed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use labdata_domain::{
    ids::{ModelVersionId, OrganizationId},
    models::PredictionDelay,
};
use labdata_ports::models::ServedModel;
use labdata_sandbox::Sandbox;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
};

use crate::{
    session::{MAX_REQUESTS, Pending, Session, SessionPhase},
    settings::PredictorSettings,
};

/// Time for which a model that could not be started is not started again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(5);

/// Time that processes may take to end when the pool is closed.
const CLOSING: Duration = Duration::from_secs(10);

/// Maximum size of the requests that wait for one process, in bytes.
const MAX_WAITING: usize = 64 << 20;

/// Key of a process: a version, in its organization.
pub(crate) type Key = (OrganizationId, ModelVersionId);

/// The processes. They end with it.
#[derive(Debug)]
pub(crate) struct Pool {
    sandbox: Arc<Sandbox>,
    settings: PredictorSettings,
    /// One permit per process, held until none of its descendants is left.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    failures: HashMap<Key, (Instant, PredictionDelay)>,
    /// Number of sessions that were started.
    started: u64,
    is_closed: bool,
    /// Tasks of the sessions.
    tasks: JoinSet<()>,
}

/// Process that is being prepared or serves. It ends when its entry is removed.
#[derive(Debug)]
struct Entry {
    number: u64,
    requests: mpsc::Sender<Pending>,
    phase: watch::Receiver<SessionPhase>,
    _running: watch::Sender<()>,
    users: usize,
    /// Size of the requests of all users, in bytes.
    waiting: usize,
    last_used: Instant,
}

/// Use of a process, which is not ended for another one as long as this exists.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Weak<Pool>,
    key: Key,
    number: u64,
    /// Size of the request, in bytes.
    size: usize,
    /// Channel to which requests are sent.
    pub(crate) requests: mpsc::Sender<Pending>,
    /// Phase of the process.
    pub(crate) phase: watch::Receiver<SessionPhase>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        // Of this session only: the model may have another process by now, whose users it must not count.
        if let Some(entry) = pool.state().entry(self.key, self.number) {
            entry.users = entry.users.saturating_sub(1);
            entry.waiting = entry.waiting.saturating_sub(self.size);
            entry.last_used = Instant::now();
        }
    }
}

impl State {
    /// Returns the entry of the session with that number.
    fn entry(&mut self, key: Key, number: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&key);
        entry.filter(|entry| entry.number == number)
    }

    /// Removes the entry that was not used for the longest time, of that organization or of any.
    /// Returns false if all are in use.
    fn remove_idle(&mut self, owner: Option<OrganizationId>) -> bool {
        let idle = self.entries.iter().filter(|((organization, _), entry)| {
            entry.users == 0 && owner.is_none_or(|owner| owner == *organization)
        });
        let oldest = idle.min_by_key(|(_, entry)| entry.last_used);
        match oldest.map(|(key, _)| *key) {
            Some(key) => self.entries.remove(&key).is_some(),
            None => false,
        }
    }
}

impl Pool {
    pub(crate) fn new(sandbox: Arc<Sandbox>, settings: PredictorSettings) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(settings.limit.max(1))),
            sandbox,
            settings,
            state: Mutex::default(),
        }
    }

    pub(crate) const fn settings(&self) -> &PredictorSettings {
        &self.settings
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of the model's process for a request of that size, which is started if there is
    /// none.
    ///
    /// # Errors
    /// [`PredictionDelay::Busy`] if all processes are in use, or all of the organization's, or as many
    /// requests wait as may; the failure of a start shortly before.
    pub(crate) fn lease(
        self: &Arc<Self>,
        model: &ServedModel,
        size: usize,
    ) -> Result<Lease, PredictionDelay> {
        let key = (model.organization, model.version);
        let mut state = self.state();
        let now = Instant::now();
        self.ensure_started(&mut state, model, now)?;
        let entry = state.entries.get_mut(&key).ok_or(PredictionDelay::Busy)?;
        // A request alone is accepted however large it is, or it would never be.
        let is_full = entry.users > 0 && entry.waiting + size > MAX_WAITING;
        if is_full || entry.users >= MAX_REQUESTS {
            return Err(PredictionDelay::Busy);
        }
        entry.users += 1;
        entry.waiting += size;
        entry.last_used = now;
        Ok(Lease {
            pool: Arc::downgrade(self),
            key,
            number: entry.number,
            size,
            requests: entry.requests.clone(),
            phase: entry.phase.clone(),
        })
    }

    /// Starts the model's process if there is none and room for it.
    pub(crate) fn prepare(self: &Arc<Self>, model: &ServedModel) {
        let started = self.ensure_started(&mut self.state(), model, Instant::now());
        if let Err(delay) = started {
            let version = model.version;
            tracing::debug!(%version, %delay, "a version cannot be prepared now");
        }
    }

    /// Returns true if the model's process responds to requests.
    pub(crate) fn is_ready(&self, model: &ServedModel) -> bool {
        let state = self.state();
        let entry = state.entries.get(&(model.organization, model.version));
        entry.is_some_and(|entry| *entry.phase.borrow() == SessionPhase::Ready)
    }

    /// Starts the model's process if there is none.
    fn ensure_started(
        self: &Arc<Self>,
        state: &mut State,
        model: &ServedModel,
        now: Instant,
    ) -> Result<(), PredictionDelay> {
        let key = (model.organization, model.version);
        // A model that cannot start would otherwise be started by every request, and take the place of one that
        // works.
        state.failures.retain(|_, (until, _)| now < *until);
        if let Some((_, failure)) = state.failures.get(&key) {
            return Err(failure.clone());
        }
        if !state.entries.contains_key(&key) {
            self.make_room(state, model.organization)?;
            self.start(state, key, model);
        }
        Ok(())
    }

    /// Ends an idle process if there are as many as may be. An organization never has all of them, unless
    /// there is only one.
    fn make_room(
        &self,
        state: &mut State,
        organization: OrganizationId,
    ) -> Result<(), PredictionDelay> {
        // A process that starts after the closing would have no one to end it.
        if state.is_closed {
            return Err(PredictionDelay::Busy);
        }
        let limit = self.settings.limit.max(1);
        let own = state
            .entries
            .keys()
            .filter(|(owner, _)| *owner == organization);
        let has_room = if own.count() >= limit.saturating_sub(1).max(1) {
            state.remove_idle(Some(organization))
        } else {
            true
        };
        let has_room = has_room && (state.entries.len() < limit || state.remove_idle(None));
        has_room.then_some(()).ok_or(PredictionDelay::Busy)
    }

    fn start(self: &Arc<Self>, state: &mut State, key: Key, model: &ServedModel) {
        state.started += 1;
        let number = state.started;
        let (requests, waiting) = mpsc::channel(MAX_REQUESTS);
        let (progress, phase) = watch::channel(SessionPhase::Preparing);
        let (running, stopped) = watch::channel(());
        let session = Session {
            number,
            model: model.clone(),
            settings: self.settings.clone(),
            sandbox: Arc::clone(&self.sandbox),
            requests: waiting,
            phase: progress,
            stopped,
        };
        // Without this, the set would grow with each process that has ended.
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(supervise(
            Arc::downgrade(self),
            Arc::clone(&self.permits),
            key,
            session,
        ));
        state.entries.insert(
            key,
            Entry {
                number,
                requests,
                phase,
                _running: running,
                users: 0,
                waiting: 0,
                last_used: Instant::now(),
            },
        );
    }

    /// Removes the entry if its process was idle long enough. Returns true if it has no entry then.
    pub(crate) fn retire_idle(&self, key: Key, number: u64) -> bool {
        let mut state = self.state();
        let Some(entry) = state.entry(key, number) else {
            return true;
        };
        let is_idle = entry.users == 0 && entry.last_used.elapsed() >= self.settings.idle;
        if is_idle {
            state.entries.remove(&key);
        }
        is_idle
    }

    /// Removes the entry of a session that has ended, and remembers why it could not be started.
    fn ended(&self, key: Key, number: u64, failure: Option<PredictionDelay>) {
        let mut state = self.state();
        // By its number: once this process was retired, the key may be that of a later one.
        if state.entry(key, number).is_some() {
            state.entries.remove(&key);
        }
        if let Some(failure) = failure {
            let until = Instant::now() + FAILURE_LIFETIME;
            state.failures.insert(key, (until, failure));
        }
    }

    /// Ends all processes, and waits until they no longer exist.
    pub(crate) async fn close(&self) {
        let (entries, mut tasks) = {
            let mut state = self.state();
            state.is_closed = true;
            (
                std::mem::take(&mut state.entries),
                std::mem::take(&mut state.tasks),
            )
        };
        // An entry holds the channel whose end stops its process.
        drop(entries);
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING, ended).await.is_err() {
            tracing::warn!("predictors did not end in time and are killed");
        }
    }
}

/// Runs a session to its end.
async fn supervise(pool: Weak<Pool>, permits: Arc<Semaphore>, key: Key, session: Session) {
    // That of a process which was ended for this one becomes free when it no longer exists.
    let Ok(_permit) = permits.acquire_owned().await else {
        return;
    };
    let number = session.number;
    let retire = {
        let pool = Weak::clone(&pool);
        move || {
            pool.upgrade()
                .is_none_or(|pool| pool.retire_idle(key, number))
        }
    };
    let ended = {
        let pool = Weak::clone(&pool);
        move |failure| {
            if let Some(pool) = pool.upgrade() {
                pool.ended(key, number, failure);
            }
        }
    };
    session.run(retire, ended).await;
}
