//! Observations of the simulated people and workers, and the invariants that they must meet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use futures::FutureExt;
use labdata_application::Services;
use labdata_domain::{
    data::read::{ReadPlan, ReadTarget, RowSelection},
    executions::Execution,
    ids::{ExecutionId, OrganizationId},
    page::PageRequest,
    work::{MAX_LOST_WORKERS, WORK_LEASE, WorkId},
};
use labdata_ports::{
    executions::ExecutionFilter,
    work::{WorkClaim, runner::RunId},
};
use serde_json::{Map, Value};
use time::Duration;

use super::{servers::Server, time::Simulation};

/// Tables that the simulated people write.
pub(super) const TABLES: [&str; 2] = ["sample", "aliquot"];

/// Name of the job of the agent's executions.
pub(super) const AGENT: &str = "Agent";

/// Runs of a script on workers, and effects that were acknowledged.
pub(super) struct Ledger {
    simulation: Simulation,
    organization: OrganizationId,
    observer: Services,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    holders: BTreeMap<RunId, Holder>,
    /// The last attempt that began, by the work's first run.
    attempts: BTreeMap<WorkId, u32>,
    /// Executions whose end was acknowledged.
    ended: BTreeSet<ExecutionId>,
    /// Executions that were reverted after their end.
    reverted: BTreeSet<ExecutionId>,
}

/// A worker that runs a script.
struct Holder {
    server: Server,
    /// When it last asked for the lease that it got.
    renewed_at: Duration,
}

impl Ledger {
    pub(super) fn new(
        simulation: &Simulation,
        organization: OrganizationId,
        observer: Services,
    ) -> Self {
        Self {
            simulation: simulation.clone(),
            organization,
            observer,
            seen: Mutex::default(),
        }
    }

    fn seen<T>(&self, see: impl FnOnce(&mut Seen) -> T) -> T {
        see(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A worker starts a script. No other may run it: not one that renewed its lease in time, and not one that
    /// could have stopped.
    pub(super) fn began(&self, claim: WorkClaim, server: &Server, claimed_at: Duration) {
        let number = server.number;
        self.simulation
            .trace(format!("worker {number} begins {}", claim.run()));
        if claim.attempt > MAX_LOST_WORKERS {
            self.report(&format!("{} is one attempt too many", claim.run()));
        }
        let now = self.simulation.now();
        let first = self.first_run(claim.work);
        self.seen(|seen| {
            for (other, holder) in &seen.holders {
                let is_held = now < holder.renewed_at + WORK_LEASE;
                let is_same = self.first_run(other.work) == first;
                if is_same && (is_held || !holder.server.was_paused()) {
                    let name = holder.server.number;
                    self.report(&format!(
                        "{other} was taken from worker {name}, which holds it"
                    ));
                }
            }
            let server = server.clone();
            let holder = Holder {
                server,
                renewed_at: claimed_at,
            };
            seen.holders.insert(claim.run(), holder);
            seen.attempts.insert(first, claim.attempt);
        });
    }

    /// The run that this one retries, or the work itself.
    fn first_run(&self, work: WorkId) -> WorkId {
        let Some(id) = work.execution() else {
            return work;
        };
        let execution = self.observer.executions.get(self.organization, id);
        let execution = execution.now_or_never().unwrap().unwrap();
        execution.retry_of().map_or(work, WorkId::Execution)
    }

    /// A worker got a lease that it had asked for at that time.
    pub(super) fn renewed(&self, claim: WorkClaim, asked_at: Duration) {
        self.seen(|seen| {
            if let Some(holder) = seen.holders.get_mut(&claim.run()) {
                holder.renewed_at = asked_at;
            }
        });
    }

    /// A worker has stopped its script.
    pub(super) fn stopped(&self, claim: WorkClaim) {
        self.simulation.trace(format!("{} stops", claim.run()));
        self.seen(|seen| seen.holders.remove(&claim.run()));
    }

    /// The end of a run was recorded for a worker.
    pub(super) fn finished(&self, claim: WorkClaim) {
        self.simulation
            .trace(format!("{} is finished", claim.run()));
        let first = self.first_run(claim.work);
        let last = self.seen(|seen| seen.attempts.get(&first).copied());
        if last.is_some_and(|last| last != claim.attempt) {
            self.report(&format!(
                "{} ended after a later attempt began",
                claim.run()
            ));
        }
        if let Some(execution) = claim.work.execution() {
            self.ended(execution);
        }
    }

    /// The end of an execution was acknowledged.
    pub(super) fn ended(&self, execution: ExecutionId) {
        self.simulation.trace(format!("{execution} has ended"));
        self.seen(|seen| seen.ended.insert(execution));
    }

    pub(super) fn has_ended(&self, execution: ExecutionId) -> bool {
        self.seen(|seen| seen.ended.contains(&execution))
    }

    /// A revert was acknowledged that began after or before the end of its execution.
    pub(super) fn reverted(&self, execution: ExecutionId, after_end: bool) {
        self.simulation.trace(format!("{execution} is reverted"));
        if after_end {
            self.seen(|seen| seen.reverted.insert(execution));
        }
    }

    /// A write under an execution was acknowledged that began after or before its end.
    pub(super) fn written(&self, execution: ExecutionId, after_end: bool) {
        self.simulation.trace(format!("{execution} wrote"));
        if after_end {
            self.report(&format!("{execution} had ended, and took a write"));
        }
    }

    fn report(&self, violation: &str) {
        self.simulation.report(format!("VIOLATION: {violation}"));
    }

    /// Reports a violation of what only its caller can see.
    pub(super) fn refute(&self, is_met: bool, violation: &str) {
        if !is_met {
            self.report(violation);
        }
    }

    /// Checks the stored rows: each names an execution that exists, and none is of a reverted one.
    pub(super) fn check_rows(&self) {
        let catalog = self.observer.catalog.snapshot(self.organization);
        let catalog = catalog.now_or_never().unwrap().unwrap();
        for table in TABLES {
            let Some(target) = ReadTarget::find(&catalog, table, false) else {
                continue;
            };
            let selection = RowSelection {
                columns: Some(vec!["created_by_execution_id".to_owned()]),
                limit: 10_000,
                ..RowSelection::default()
            };
            let plan = ReadPlan::new(target, &catalog, selection).unwrap();
            let page = self.observer.data.read(self.organization, &plan);
            for row in page.now_or_never().unwrap().unwrap().rows {
                let row: Map<String, Value> = serde_json::from_str(row.as_str()).unwrap();
                let id = row["created_by_execution_id"].as_str().unwrap();
                self.check_creator(table, id.parse().unwrap());
            }
        }
    }

    fn check_creator(&self, table: &str, id: ExecutionId) {
        let found = self.observer.executions.get(self.organization, id);
        if found.now_or_never().unwrap().is_err() {
            self.report(&format!(
                "a {table} was created by {id}, which does not exist"
            ));
        }
        if self.seen(|seen| seen.reverted.contains(&id)) {
            self.report(&format!("a {table} is left of {id}, which was reverted"));
        }
    }

    /// Executions in a state of that name.
    pub(super) fn executions(&self, status: &str) -> Vec<Execution> {
        let filter = ExecutionFilter {
            status: Some(status.to_owned()),
            ..ExecutionFilter::default()
        };
        let page = PageRequest {
            limit: None,
            after: None,
        };
        let list = self
            .observer
            .executions
            .list(self.organization, &filter, page);
        list.now_or_never().unwrap().unwrap().items
    }

    /// Checks that an agent's run has left no execution open.
    pub(super) fn check_agent(&self) {
        let mut open = self.executions("running").into_iter();
        if let Some(left) = open.find(|execution| execution.job_name == AGENT) {
            let id = left.id;
            self.report(&format!(
                "{id} is left running by an agent's run that has ended"
            ));
        }
    }

    /// Checks that nothing waits or runs.
    pub(super) fn check_end(&self) {
        for status in ["queued", "running"] {
            for execution in self.executions(status) {
                self.report(&format!("{} is {status} for ever", execution.id));
            }
        }
        self.check_rows();
    }
}
