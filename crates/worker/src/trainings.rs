//! Trainings of models as work.

use async_trait::async_trait;
use labdata_application::{
    Error, Ports,
    models::training::{
        begin_training::{BegunTraining, TrainingContext, begin_training, training_run},
        claim_trainings::{HeldTraining, claim_trainings},
        end_training::{InterpretedTraining, end_training, interpret_training, release_training},
        watch_trainings::{watch_ended_trainings, watch_queued_trainings},
    },
    subscription::Subscription,
};
use labdata_domain::{models::TrainingEnd, work::FreeSlots};
use labdata_ports::{
    models::TrainingClaim,
    work::runner::{JobRunner, RunId, ScriptEnd},
};

use crate::work::workload::{BackendSettings, Begun, Interpretation, NotBegun, WorkLog, Workload};

/// Settings of the worker that trains models.
#[derive(Clone, Debug)]
pub struct TrainingWorkerSettings {
    /// Backend that runs trainings.
    pub backend: BackendSettings,
    /// Limits of trainings, URL of the platform, and rules for the backend.
    pub context: TrainingContext,
}

/// Output of a training, which is not stored: its reports say what there is to say.
#[derive(Debug)]
pub(crate) struct NoLog;

#[async_trait]
impl WorkLog for NoLog {
    async fn catch_up(&mut self, _: &Ports, _: &dyn JobRunner) {}

    async fn finish(&mut self, _: &Ports, _: &dyn JobRunner) {}

    async fn append_notice(&self, _: &Ports, _: &str) {}
}

#[async_trait]
impl Workload for TrainingWorkerSettings {
    type Claim = TrainingClaim;
    type Claimed = HeldTraining;
    type End = TrainingEnd;
    type Log = NoLog;

    fn backend(&self) -> &BackendSettings {
        &self.backend
    }

    fn claim_of(&self, held: &HeldTraining) -> TrainingClaim {
        held.training.claim
    }

    fn run_of(&self, held: &HeldTraining) -> RunId {
        training_run(held.training.claim)
    }

    fn open_log(&self, _: &HeldTraining) -> NoLog {
        NoLog
    }

    fn watch_queued(&self, ports: &Ports) -> Subscription {
        watch_queued_trainings(ports)
    }

    fn watch_ended(&self, ports: &Ports) -> Subscription {
        watch_ended_trainings(ports)
    }

    async fn claim(&self, ports: &Ports, slots: FreeSlots) -> Result<Vec<HeldTraining>, Error> {
        claim_trainings(ports, slots).await
    }

    async fn begin(&self, ports: &Ports, held: &HeldTraining) -> Result<Begun<TrainingEnd>, Error> {
        Ok(match begin_training(ports, held, &self.context).await? {
            BegunTraining::Ready(spec) => Begun::Ready(spec),
            BegunTraining::Lost => Begun::Lost,
            BegunTraining::Refused(refusal) => {
                Begun::Ended(TrainingEnd::not_submitted(&refusal.to_string()))
            }
        })
    }

    fn not_begun(&self, reason: NotBegun) -> TrainingEnd {
        match reason {
            NotBegun::NotAssembled => TrainingEnd::not_assembled(),
            NotBegun::NotSubmitted(cause) | NotBegun::Refused(cause) => {
                TrainingEnd::not_submitted(&cause)
            }
        }
    }

    async fn interpret(
        &self,
        ports: &Ports,
        held: &HeldTraining,
        end: &ScriptEnd,
        prepared: bool,
    ) -> Result<Interpretation<TrainingEnd>, Error> {
        let limits = self.context.limits;
        let interpreted = interpret_training(ports, held, limits, end, prepared);
        Ok(match interpreted.await? {
            InterpretedTraining::Ended(end) => Interpretation::Ended(end),
            InterpretedTraining::LostByBackend => Interpretation::LostByBackend,
            InterpretedTraining::LostByWorker => Interpretation::LostByWorker,
        })
    }

    async fn record(
        &self,
        ports: &Ports,
        held: &HeldTraining,
        end: &TrainingEnd,
    ) -> Result<bool, Error> {
        end_training(ports, held.training.claim, end).await
    }

    async fn release(&self, ports: &Ports, held: &HeldTraining) -> Result<bool, Error> {
        release_training(ports, held.training.claim).await
    }
}

#[cfg(test)]
mod tests;
