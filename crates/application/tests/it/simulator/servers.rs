//! Servers over one store: each with its own clock, and with requests that wait, are lost, or stop.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use labdata_application::Services;
use labdata_domain::{
    executions::{
        AgentEnd, Execution, FinalStatus,
        started_by::{StartedBy, Starter},
    },
    ids::{ExecutionId, OrganizationId},
    page::{Page, PageRequest},
    work::{FreeSlots, NewRun, WORK_HEARTBEAT, WorkEnd, WorkId, WorkKind, WorkRecord},
};
use labdata_memory::{Memory, ports, repositories};
use labdata_ports::{
    Clock, IdSource, PortError,
    executions::{
        CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository,
        OverdueExecution,
    },
    work::{
        ClaimTerms, ClaimedWork, ExpiredWork, HeldWork, LostWork, Wakeups, WorkClaim, WorkNews,
        WorkQueue,
    },
};
use time::{Duration, OffsetDateTime, macros::datetime};

use super::{Plant, ledger::AGENT, time::Simulation};

/// Wall time at the start.
const START: OffsetDateTime = datetime!(2026-01-01 00:00:00 UTC);

/// Age up to which [`Plant::CancelWhileOpening`] loses the end of an execution.
const OPENING: Duration = Duration::seconds(10);

/// State of a server that disturbances change. Clones are the same.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) number: usize,
    pub(super) simulation: Simulation,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy)]
struct State {
    /// Difference of its clock from the store's.
    offset: Duration,
    paused_until: Duration,
    unreachable_until: Duration,
}

impl Server {
    pub(super) fn new(number: usize, simulation: &Simulation) -> Self {
        Self {
            number,
            simulation: simulation.clone(),
            state: Arc::new(Mutex::new(State {
                offset: Duration::ZERO,
                // None was suspended yet.
                paused_until: -Duration::HOUR,
                unreachable_until: Duration::ZERO,
            })),
        }
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Steps its clock.
    pub(super) fn step_clock(&self, by: Duration) {
        self.change(|state| state.offset += by);
    }

    /// Sets its clock right.
    pub(super) fn set_clock_right(&self) {
        self.change(|state| state.offset = Duration::ZERO);
    }

    /// Suspends its process for a time.
    pub(super) fn pause(&self, time: Duration) {
        let until = self.simulation.now() + time;
        // Pauses may overlap.
        self.change(|state| state.paused_until = state.paused_until.max(until));
    }

    /// Cuts it off from the store for a time.
    pub(super) fn cut_off(&self, time: Duration) {
        let until = self.simulation.now() + time;
        self.change(|state| state.unreachable_until = state.unreachable_until.max(until));
    }

    pub(super) fn is_paused(&self) -> bool {
        self.simulation.now() < self.state().paused_until
    }

    /// True while it is suspended, and until the next heartbeats of its workers find out what happened.
    pub(super) fn was_paused(&self) -> bool {
        let noticed = WORK_HEARTBEAT + Duration::SECOND;
        self.simulation.now() < self.state().paused_until + noticed
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.simulation.now() < self.state().unreachable_until
    }

    /// Waits while the process is suspended.
    pub(super) async fn awake(&self) {
        while self.is_paused() {
            let left = self.state().paused_until - self.simulation.now();
            self.simulation.sleep(left).await;
        }
    }

    /// The way of a request to the store.
    async fn request(&self) -> Result<(), PortError> {
        self.simulation.turn().await;
        self.awake().await;
        if self.is_cut_off() {
            return Err(PortError::Unavailable("cut off".to_owned()));
        }
        Ok(())
    }

    /// The way of a response back.
    async fn response(&self) -> Result<(), PortError> {
        self.simulation.turn().await;
        self.awake().await;
        if self.is_cut_off() {
            return Err(PortError::OutcomeUnknown("cut off".to_owned()));
        }
        Ok(())
    }
}

/// The clock of a server.
struct ServerClock {
    server: Server,
    plant: Plant,
}

impl Clock for ServerClock {
    fn now(&self) -> OffsetDateTime {
        START + self.server.simulation.now() + self.server.state().offset
    }

    fn elapsed(&self) -> Duration {
        let elapsed = self.server.simulation.now();
        match self.plant {
            Plant::LeasesByServerClock => elapsed + self.server.state().offset,
            _ => elapsed,
        }
    }
}

/// The clock of the store, which is right.
struct StoreClock(Simulation);

impl Clock for StoreClock {
    fn now(&self) -> OffsetDateTime {
        START + self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.now()
    }
}

/// A store, and what its servers share.
pub(super) struct Store {
    pub(super) memory: Memory,
    ids: Arc<dyn IdSource>,
    clock: Arc<dyn Clock>,
}

impl Store {
    pub(super) fn new(simulation: &Simulation) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(StoreClock(simulation.clone()));
        Self {
            memory: Memory::new().on_clock(Arc::clone(&clock)),
            ids: Arc::new(labdata_memory::SequentialIds::default()),
            clock,
        }
    }

    /// Services that see the store as it is, at once.
    pub(super) fn observer(&self) -> Services {
        let mut ports = ports(&self.memory, Arc::clone(&self.clock));
        ports.ids = Arc::clone(&self.ids);
        Services::unlimited(ports)
    }

    /// Services of a server.
    pub(super) fn services(&self, server: &Server, plant: Plant) -> Services {
        let clock: Arc<dyn Clock> = Arc::new(ServerClock {
            server: server.clone(),
            plant,
        });
        let mut ports = ports(&self.memory, Arc::clone(&clock));
        ports.ids = Arc::clone(&self.ids);
        ports.repositories = repositories(&self.memory);
        ports.executions = Arc::new(RemoteExecutions {
            inner: Arc::clone(&ports.executions),
            server: server.clone(),
            plant,
            opened: Mutex::default(),
        });
        ports.work = Arc::new(RemoteQueue {
            inner: Arc::clone(&ports.work),
            server: server.clone(),
        });
        Services::unlimited(ports)
    }
}

/// Calls a port over the network of a server.
macro_rules! remote {
    ($self:ident, $call:expr) => {{
        $self.server.request().await?;
        let outcome = $call.await;
        $self.server.response().await?;
        outcome
    }};
}

/// Executions as a server reaches them.
struct RemoteExecutions {
    inner: Arc<dyn ExecutionRepository>,
    server: Server,
    plant: Plant,
    /// When executions of the agent were opened.
    opened: Mutex<BTreeMap<ExecutionId, Duration>>,
}

impl RemoteExecutions {
    /// True for an end that [`Plant::CancelWhileOpening`] loses.
    fn loses_end(&self, id: ExecutionId) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let age = opened.get(&id).map(|at| self.server.simulation.now() - *at);
        self.plant == Plant::CancelWhileOpening && age.is_some_and(|age| age < OPENING)
    }
}

#[async_trait]
impl ExecutionRepository for RemoteExecutions {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) -> Result<(), PortError> {
        self.server.request().await?;
        if execution.job_name == AGENT {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.insert(execution.id, self.server.simulation.now());
        }
        self.inner.add(organization, execution, started_by).await?;
        self.server.response().await
    }

    async fn queue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        remote!(self, self.inner.queue(organization, run))
    }

    async fn starters(
        &self,
        organization: OrganizationId,
        ids: &[ExecutionId],
    ) -> Result<BTreeMap<ExecutionId, Starter>, PortError> {
        remote!(self, self.inner.starters(organization, ids))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError> {
        remote!(self, self.inner.get(organization, id))
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, PortError> {
        remote!(self, self.inner.list(organization, filter, page))
    }

    async fn close(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        if self.loses_end(id) {
            return Ok(self.inner.get(organization, id).await?);
        }
        remote!(self, self.inner.close(organization, id, status, now))
    }

    async fn end_agent(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        end: &AgentEnd,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        if self.loses_end(id) {
            return Ok(self.inner.get(organization, id).await?);
        }
        remote!(self, self.inner.end_agent(organization, id, end, now))
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        if self.loses_end(id) {
            return Ok(self.inner.get(organization, id).await?);
        }
        remote!(self, self.inner.cancel(organization, id, now))
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        remote!(self, self.inner.fail_overdue(now, limit))
    }
}

/// The queue as a server reaches it.
struct RemoteQueue {
    inner: Arc<dyn WorkQueue>,
    server: Server,
}

#[async_trait]
impl WorkQueue for RemoteQueue {
    async fn claim(
        &self,
        kind: WorkKind,
        slots: FreeSlots,
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimedWork>, PortError> {
        remote!(self, self.inner.claim(kind, slots, terms))
    }

    async fn renew(&self, claim: WorkClaim, lease: Duration) -> Result<bool, PortError> {
        remote!(self, self.inner.renew(claim, lease))
    }

    async fn finish(
        &self,
        claim: WorkClaim,
        end: &WorkEnd,
        now: OffsetDateTime,
    ) -> Result<Option<WorkRecord>, PortError> {
        remote!(self, self.inner.finish(claim, end, now))
    }

    async fn release(&self, claim: WorkClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        remote!(self, self.inner.release(claim, now))
    }

    async fn held(&self) -> Result<Vec<HeldWork>, PortError> {
        remote!(self, self.inner.held())
    }

    async fn expire(
        &self,
        now: OffsetDateTime,
        lost: &[LostWork],
    ) -> Result<ExpiredWork, PortError> {
        remote!(self, self.inner.expire(now, lost))
    }

    fn subscribe(&self, kind: WorkKind, news: WorkNews) -> Box<dyn Wakeups> {
        self.inner.subscribe(kind, news)
    }

    fn follow(&self, work: WorkId) -> Box<dyn Wakeups> {
        self.inner.follow(work)
    }
}
