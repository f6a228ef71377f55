//! Triggers: events and ticks of schedules become runs in one transaction.

mod backfill;
mod facts;
pub(crate) mod outbox;
pub(crate) mod rows;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{ids::OrganizationId, work::NewRun};
use labdata_ports::{
    PortError,
    triggers::{BackfillRequest, DecideBackfill, DecideEvent, DecideTick, Fired, TriggerStore},
    work::Wakeups,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, transacted},
        listen::Channel,
        pool::{Connection, Database},
    },
    executions::rows::queue,
    schema::{job, job_trigger},
    triggers::facts::{Facts, load_candidates},
};

/// Triggers in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTriggerStore {
    database: Database,
}

impl PgTriggerStore {
    /// The triggers of that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

async fn act_on_events(
    connection: &mut Connection,
    limit: u32,
    decide: DecideEvent<'_>,
) -> Result<Fired, Fault> {
    let events = outbox::take(connection, limit).await?;
    let mut fired = Fired::default();
    if events.is_empty() {
        return Ok(fired);
    }
    // Loaded for the whole batch: a query per event would make bursts slow.
    let facts = Facts::load(connection, &events).await?;
    for event in &events {
        fired.handled += 1;
        // An event without facts is handled as well: its file was deleted, and it must not come again.
        let runs = facts.of(event).map_or_else(Vec::new, decide);
        for run in runs {
            queue(connection, event.organization, &run).await?;
            fired.runs += 1;
        }
    }
    Ok(fired)
}

async fn fire_schedules(
    connection: &mut Connection,
    now: OffsetDateTime,
    limit: u32,
    decide: DecideTick<'_>,
) -> Result<Fired, Fault> {
    let active = job::table
        .filter(job::archived.eq(false))
        .filter(job::version_number.is_not_null())
        .select(job::id);
    // A locked trigger is being changed or fired by another transaction.
    let due: Vec<Uuid> = job_trigger::table
        .filter(job_trigger::next_fire_at.le(now))
        .filter(job_trigger::job_id.eq_any(active))
        // The most overdue first, so that a limited pass starves none.
        .order(job_trigger::next_fire_at)
        .limit(i64::from(limit))
        .for_update()
        .skip_locked()
        .select(job_trigger::job_id)
        .load(connection)
        .await?;
    let mut fired = Fired::default();
    for (organization, candidates) in load_candidates(connection, due).await? {
        for candidate in candidates {
            fired.handled += 1;
            let decision = decide(&candidate);
            let own = job_trigger::table.find(candidate.trigger.id.as_uuid());
            diesel::update(own)
                // In the transaction of the run: a crash neither loses the tick nor fires it twice.
                .set(job_trigger::next_fire_at.eq(decision.next_at))
                .execute(connection)
                .await?;
            if let Some(run) = decision.run {
                queue(connection, organization, &run).await?;
                fired.runs += 1;
            }
        }
    }
    Ok(fired)
}

#[async_trait]
impl TriggerStore for PgTriggerStore {
    async fn act_on_events(&self, limit: u32, decide: DecideEvent<'_>) -> Result<Fired, PortError> {
        Ok(transacted!(self.database, connection => act_on_events(connection, limit, decide))?)
    }

    async fn fire_schedules(
        &self,
        now: OffsetDateTime,
        limit: u32,
        decide: DecideTick<'_>,
    ) -> Result<Fired, PortError> {
        Ok(transacted!(
            self.database,
            connection => fire_schedules(connection, now, limit, decide)
        )?)
    }

    async fn backfill(
        &self,
        organization: OrganizationId,
        request: &BackfillRequest,
        decide: DecideBackfill<'_>,
    ) -> Result<Vec<NewRun>, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => backfill::backfill(connection, organization, request, decide)
        )?)
    }

    fn subscribe(&self) -> Box<dyn Wakeups> {
        Box::new(self.database.listen(Channel::Event))
    }
}
