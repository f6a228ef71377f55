//! Fires triggers: queues one run per due event or schedule tick.

use labdata_domain::{
    ids::ExecutionId,
    jobs::TriggeredVersion,
    triggers::{Candidate, Response, TriggerEvent},
    work::NewRun,
};
use labdata_ports::{IdSource, triggers::TickDecision};
use time::OffsetDateTime;

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Largest number of events or schedules that one transaction handles.
const BATCH: u32 = 50;

/// Handles all events and schedules that are due, and queues the runs that follow from them.
/// Returns the number of runs. No caller requests it: it is the platform's own work for all
/// organizations. Several servers may do it at once; each event and each tick is handled once. On a full
/// disk all of them wait.
///
/// # Errors
/// Errors of the store. Unhandled events and ticks stay for the next call.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn fire_triggers(services: &Services) -> Result<u32, Error> {
    let mut runs = 0_u32;
    // Events stay in their outbox, so none is lost while the disk is full.
    if require_reserve(services).is_err() {
        return Ok(runs);
    }
    loop {
        // In each round, because schedules come due while batches are handled.
        let now = services.clock.now();
        let ids = &*services.ids;
        let runs_version = services.triggered_version;
        let on_event = |event: TriggerEvent<'_>| runs_after(event, runs_version, ids, now);
        let on_tick = |candidate: &Candidate| tick(candidate, runs_version, ids, now);
        let events = services.triggers.act_on_events(BATCH, &on_event).await?;
        let ticks = services
            .triggers
            .fire_schedules(now, BATCH, &on_tick)
            .await?;
        runs = runs.saturating_add(events.runs).saturating_add(ticks.runs);
        if events.handled == 0 && ticks.handled == 0 {
            return Ok(runs);
        }
    }
}

fn runs_after(
    event: TriggerEvent<'_>,
    version: TriggeredVersion,
    ids: &dyn IdSource,
    now: OffsetDateTime,
) -> Vec<NewRun> {
    let mut runs = Vec::new();
    for (candidate, response) in event.responses(version) {
        match response {
            Response::Runs(firings) => runs.extend(
                firings
                    .into_iter()
                    .map(|firing| firing.into_run(ExecutionId::new(ids.next_id()), now)),
            ),
            // The job itself shows why.
            Response::Unpublished => tracing::warn!(
                job = %candidate.job,
                trigger = %candidate.trigger.id,
                event = %event.event.id,
                "a trigger does not fire: no version of the script is published"
            ),
            // Only logged: there is no run to which the reason could be attached.
            Response::Loop => tracing::warn!(
                job = %candidate.job,
                trigger = %candidate.trigger.id,
                event = %event.event.id,
                "a trigger does not fire: the job would follow from itself, or the chain is too long"
            ),
        }
    }
    runs
}

fn tick(
    candidate: &Candidate,
    version: TriggeredVersion,
    ids: &dyn IdSource,
    now: OffsetDateTime,
) -> TickDecision {
    let tick = candidate.tick(now, version);
    if candidate.version(version).is_none() {
        tracing::warn!(
            job = %candidate.job,
            trigger = %candidate.trigger.id,
            "a schedule does not fire: no version of the script is published"
        );
    }
    TickDecision {
        run: tick
            .firing
            .map(|firing| firing.into_run(ExecutionId::new(ids.next_id()), now)),
        next_at: tick.next_at,
    }
}
