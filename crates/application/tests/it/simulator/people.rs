//! People, who open, write under, close, cancel and revert executions, and change tables.

use std::sync::Arc;

use futures::{FutureExt, future::select};
use labdata_application::{
    Services,
    catalog::define_table::define_table,
    data::{
        revert_execution::{RevertExecution, revert_execution},
        write_data::write_data,
    },
    executions::{
        cancel_execution::cancel_execution,
        close_execution::close_execution,
        start_execution::{StartExecution, start_execution},
    },
    work::run_job::{RunJob, run_job},
};
use labdata_domain::{executions::FinalStatus, ids::ExecutionId};

use super::lab::{Lab, disturb, sample};

/// Number of people.
const PEOPLE: usize = 3;

/// Starts the people, and the disturbances.
pub(super) fn start(lab: &Arc<Lab>) {
    for _ in 0..PEOPLE {
        lab.simulation.spawn(act(Arc::clone(lab)));
    }
    lab.simulation.spawn(disturb(Arc::clone(lab)));
}

async fn act(lab: Arc<Lab>) {
    let simulation = &lab.simulation;
    let mut known = Vec::new();
    while lab.is_busy() {
        simulation.sleep(simulation.seconds(0, 5)).await;
        let (_, services) = lab.server();
        let step = step(&lab, services, &mut known);
        if simulation.one_in(8) {
            // The caller leaves, sooner or later.
            let turns = simulation.below(6);
            let leaves = async {
                for _ in 0..turns {
                    simulation.turn().await;
                }
            };
            select(step.boxed(), leaves.boxed()).await;
        } else {
            step.await;
        }
    }
}

/// One request.
async fn step(lab: &Lab, services: &Services, known: &mut Vec<ExecutionId>) {
    let (simulation, actor, ledger) = (&lab.simulation, &lab.actor, &lab.ledger);
    let some = simulation.pick(known).copied();
    match (simulation.below(10), some) {
        (0, _) => {
            let queued = run_job(services, actor, lab.job, RunJob::default()).await;
            known.extend(queued.ok().map(|execution| execution.id));
        }
        (1, _) | (_, None) => {
            let minutes = u32::try_from(1 + simulation.below(3)).unwrap();
            let start = StartExecution {
                timeout_minutes: Some(minutes),
                ..StartExecution::default()
            };
            let opened = start_execution(services, actor, start).await;
            known.extend(opened.ok().map(|execution| execution.id));
        }
        (2, Some(id)) => {
            let status = if simulation.one_in(2) {
                FinalStatus::Completed
            } else {
                FinalStatus::Failed
            };
            if close_execution(services, actor, id, status).await.is_ok() {
                ledger.ended(id);
            }
        }
        (3, Some(id)) => {
            if cancel_execution(services, actor, id).await.is_ok() {
                ledger.ended(id);
            }
        }
        (4, Some(id)) => {
            let after_end = ledger.has_ended(id);
            let plain = RevertExecution::default();
            if revert_execution(services, actor, id, plain).await.is_ok() {
                ledger.reverted(id, after_end);
            }
        }
        (5, _) => {
            let definition = sample(simulation.below(3));
            define_table(services, actor, &definition).await.ok();
        }
        (6, _) => {
            write_data(services, actor, lab.delete()).await.ok();
        }
        (_, Some(id)) => {
            let after_end = ledger.has_ended(id);
            let mut write = lab.write();
            write.job_execution_id = (!simulation.one_in(4)).then(|| id.to_string());
            let is_under = write.job_execution_id.is_some();
            if write_data(services, actor, write).await.is_ok() && is_under {
                ledger.written(id, after_end);
            }
        }
    }
}
