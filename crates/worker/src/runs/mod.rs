//! Job runs as work.

mod log;

use async_trait::async_trait;
use labdata_application::{
    Error, Ports,
    subscription::Subscription,
    work::{
        begin_run::{BegunRun, RunContext, begin_run, run_id},
        claim_runs::claim_runs,
        end_run::{end_run, release_run},
        watch_runs::{watch_ended_runs, watch_queued_runs},
    },
};
use labdata_domain::work::{FreeSlots, RunEnd};
use labdata_ports::work::{
    ClaimedRun, RunClaim,
    runner::{RunId, ScriptEnd},
};

use self::log::RunLog;
use crate::work::workload::{BackendSettings, Begun, Interpretation, NotBegun, Workload};

/// Settings of the run worker.
#[derive(Clone, Debug)]
pub struct RunWorkerSettings {
    /// Backend that runs scripts.
    pub backend: BackendSettings,
    /// Limits of runs, URL of the platform, and rules for the backend.
    pub context: RunContext,
}

#[async_trait]
impl Workload for RunWorkerSettings {
    type Claim = RunClaim;
    type Claimed = ClaimedRun;
    type End = RunEnd;
    type Log = RunLog;

    fn backend(&self) -> &BackendSettings {
        &self.backend
    }

    fn claim_of(&self, claimed: &ClaimedRun) -> RunClaim {
        claimed.claim
    }

    fn run_of(&self, claimed: &ClaimedRun) -> RunId {
        run_id(claimed.claim)
    }

    fn open_log(&self, claimed: &ClaimedRun) -> RunLog {
        RunLog::new(claimed.claim)
    }

    fn watch_queued(&self, ports: &Ports) -> Subscription {
        watch_queued_runs(ports)
    }

    fn watch_ended(&self, ports: &Ports) -> Subscription {
        watch_ended_runs(ports)
    }

    async fn claim(&self, ports: &Ports, slots: FreeSlots) -> Result<Vec<ClaimedRun>, Error> {
        claim_runs(ports, self.context.limits, slots).await
    }

    async fn begin(&self, ports: &Ports, claimed: &ClaimedRun) -> Result<Begun<RunEnd>, Error> {
        Ok(match begin_run(ports, claimed, &self.context).await? {
            BegunRun::Ready(spec) => Begun::Ready(spec),
            BegunRun::Lost => Begun::Lost,
            BegunRun::Refused(refusal) => Begun::Ended(RunEnd::refused(&refusal.to_string())),
        })
    }

    fn not_begun(&self, reason: NotBegun) -> RunEnd {
        match reason {
            NotBegun::NotAssembled => RunEnd::not_assembled(),
            NotBegun::NotSubmitted(cause) => RunEnd::not_submitted(&cause),
            NotBegun::Refused(reason) => RunEnd::refused(&reason),
        }
    }

    async fn interpret(
        &self,
        _: &Ports,
        _: &ClaimedRun,
        end: &ScriptEnd,
        prepared: bool,
    ) -> Result<Interpretation<RunEnd>, Error> {
        let end = end.interpret(self.context.limits, prepared);
        Ok(end.map_or(Interpretation::LostByBackend, Interpretation::Ended))
    }

    async fn record(
        &self,
        ports: &Ports,
        claimed: &ClaimedRun,
        end: &RunEnd,
    ) -> Result<bool, Error> {
        end_run(ports, claimed, end).await
    }

    async fn release(&self, ports: &Ports, claimed: &ClaimedRun) -> Result<bool, Error> {
        release_run(ports, claimed.claim).await
    }
}
