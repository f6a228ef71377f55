//! Workers, which hold runs as `labdata-worker` does, their scripts, and sweepers.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use labdata_application::{
    Services,
    agent::end_write_sessions,
    data::write_data::write_data,
    executions::sweep_executions::sweep_executions,
    people::authenticate::authenticate,
    work::{
        WorkContext,
        begin_run::RunContext,
        begin_work::{Begun, begin_work},
        claim_work::claim_work,
        end_work::end_work,
        renew_lease::WorkLease,
        sweep_work::sweep_work,
    },
};
use labdata_domain::work::{BackendPolicy, FreeSlots, RunEnd, RunLimits, WORK_HEARTBEAT, WorkEnd};
use labdata_ports::work::{ClaimedWork, WorkClaim, runner::RunSpec};
use time::Duration;

use super::{lab::Lab, servers::Server};

/// Number of runs that a worker holds at a time.
const CONCURRENCY: u32 = 2;

/// Pause after the store was not reached.
const RETRY_AFTER: Duration = Duration::SECOND;

/// Attempts to record an end.
const ATTEMPTS: usize = 10;

/// Starts a worker on every server but the first, and two sweepers.
pub(super) fn start(lab: &Arc<Lab>) {
    for number in 1..lab.servers.len() {
        lab.simulation.spawn(work(Arc::clone(lab), number));
    }
    for number in [0, 1] {
        lab.simulation.spawn(sweep(Arc::clone(lab), number));
    }
}

fn context() -> WorkContext {
    WorkContext::Run(RunContext {
        limits: RunLimits::default(),
        base_url: "http://lab".to_owned(),
        policy: BackendPolicy::default(),
    })
}

async fn work(lab: Arc<Lab>, number: usize) {
    let (server, services) = &lab.servers[number];
    let held = Arc::new(AtomicU32::new(0));
    loop {
        lab.simulation.sleep(lab.simulation.seconds(1, 5)).await;
        server.awake().await;
        let slots = FreeSlots::of_worker(CONCURRENCY, held.load(Ordering::Relaxed));
        let asked_at = services.clock.elapsed();
        let Ok(claimed) = claim_work(services, &context(), slots).await else {
            continue;
        };
        for claimed in claimed {
            held.fetch_add(1, Ordering::Relaxed);
            let (lab, held) = (Arc::clone(&lab), Arc::clone(&held));
            lab.simulation.clone().spawn(async move {
                let (server, services) = &lab.servers[number];
                run(&lab, server, services, &claimed, asked_at).await;
                held.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

/// Runs a script and records its end, unless the worker loses it.
async fn run(
    lab: &Arc<Lab>,
    server: &Server,
    services: &Services,
    claimed: &ClaimedWork,
    asked_at: Duration,
) {
    let claim = claimed.claim;
    let lease = WorkLease::since(asked_at, claim);
    let Ok(Begun::Ready(spec)) = begin_work(services, claimed, &context()).await else {
        return;
    };
    // Time may have passed, and with it the lease.
    if lease.remaining(services).is_zero() {
        return;
    }
    lab.ledger.began(claim, server, asked_at);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let script = script(Arc::clone(lab), *spec, Arc::clone(&is_stopped));
    lab.simulation.spawn(script);
    let has_ended = hold(lab, server, services, lease, claim).await;
    is_stopped.store(true, Ordering::Relaxed);
    lab.ledger.stopped(claim);
    if has_ended {
        let end = if lab.simulation.one_in(4) {
            RunEnd::failed("the script failed")
        } else {
            RunEnd::exited(0, "")
        };
        for _ in 0..ATTEMPTS {
            match end_work(services, claim, &WorkEnd::Run(end.clone())).await {
                Ok(true) => return lab.ledger.finished(claim),
                Ok(false) => return,
                Err(_) => lab.simulation.sleep(RETRY_AFTER).await,
            }
        }
    }
}

/// Renews the lease until the script ends; returns false if the worker loses the run before.
async fn hold(
    lab: &Lab,
    server: &Server,
    services: &Services,
    mut lease: WorkLease,
    claim: WorkClaim,
) -> bool {
    let until = lab.simulation.now() + lab.simulation.seconds(1, 90);
    let mut pause = WORK_HEARTBEAT;
    loop {
        let left = lease.remaining(services).min(until - lab.simulation.now());
        lab.simulation.sleep(pause.min(left)).await;
        server.awake().await;
        if lease.remaining(services).is_zero() {
            return false;
        }
        if lab.simulation.now() >= until {
            return true;
        }
        let asked_at = lab.simulation.now();
        match lease.renew(services).await {
            Ok(true) => {
                lab.ledger.renewed(claim, asked_at);
                pause = WORK_HEARTBEAT;
            }
            Ok(false) => return false,
            Err(_) => pause = RETRY_AFTER,
        }
    }
}

/// A script: writes with the key of its run, through any server, until it is stopped or refused.
async fn script(lab: Arc<Lab>, spec: RunSpec, is_stopped: Arc<AtomicBool>) {
    let mut environment = spec.environment.iter();
    let key = environment.find_map(|(name, value)| (name == "LABDATA_API_KEY").then_some(value));
    let key = key.unwrap().to_owned();
    while !is_stopped.load(Ordering::Relaxed) {
        lab.simulation.sleep(lab.simulation.seconds(1, 8)).await;
        let (_, services) = lab.server();
        let Ok(actor) = authenticate(services, &key).await else {
            return;
        };
        let execution = actor.execution.unwrap();
        let after_end = lab.ledger.has_ended(execution);
        if write_data(services, &actor, lab.write()).await.is_ok() {
            lab.ledger.written(execution, after_end);
        }
    }
}

/// Sweeps what was left, and checks the rows.
async fn sweep(lab: Arc<Lab>, number: usize) {
    let (_, services) = &lab.servers[number];
    loop {
        if lab.is_busy() {
            lab.simulation.sleep(lab.simulation.seconds(1, 4)).await;
            lab.ledger.check_rows();
        } else {
            lab.simulation.sleep(lab.simulation.seconds(5, 15)).await;
        }
        // Errors are those of a server that is cut off.
        sweep_work(services).await.ok();
        sweep_executions(services).await.ok();
        end_write_sessions(services).await.ok();
    }
}
