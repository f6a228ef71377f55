//! Triggers as the database retains them.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{InstrumentId, JobId, OrganizationId, TriggerId, UserId},
    jobs::Job,
    refusal::Resource,
    triggers::{Arming, Category, Trigger},
};
use labdata_ports::PortError;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    schema::job_trigger,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = job_trigger)]
pub(crate) struct TriggerRow {
    id: Uuid,
    category: String,
    instrument_id: Option<Uuid>,
    conditions: Value,
    set_by: Uuid,
    armed_at: OffsetDateTime,
}

impl TryFrom<TriggerRow> for Trigger {
    type Error = PortError;

    fn try_from(row: TriggerRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("job_trigger", column, row.id);
        Ok(Self {
            id: TriggerId::new(row.id),
            category: Category::from_name(&row.category).ok_or_else(|| corrupt("category"))?,
            instrument: row.instrument_id.map(InstrumentId::new),
            conditions: match row.conditions {
                Value::Object(conditions) => conditions,
                _ => return Err(corrupt("conditions")),
            },
            set_by: UserId::new(row.set_by),
            armed_at: row.armed_at,
        })
    }
}

/// The stored trigger of a job.
pub(crate) async fn load(
    connection: &mut Connection,
    organization: OrganizationId,
    job: JobId,
) -> Result<Option<Trigger>, Fault> {
    let row: Option<TriggerRow> = job_trigger::table
        .filter(job_trigger::organization_id.eq(organization.as_uuid()))
        .filter(job_trigger::job_id.eq(job.as_uuid()))
        .select(TriggerRow::as_select())
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(Trigger::try_from).transpose()?)
}

/// Replaces the stored trigger `before` by the job's.
pub(crate) async fn store(
    connection: &mut Connection,
    organization: OrganizationId,
    job: &Job,
    before: Option<&Trigger>,
) -> Result<(), Fault> {
    let first_tick = match Arming::of_change(before, job.trigger.as_ref()) {
        // An unchanged schedule must not start again: its next tick would move.
        Arming::Keep => return Ok(()),
        Arming::Disarm => None,
        Arming::Arm { first_tick } => first_tick,
    };
    if before.is_some() {
        let stored = job_trigger::table
            .filter(job_trigger::organization_id.eq(organization.as_uuid()))
            .filter(job_trigger::job_id.eq(job.id.as_uuid()));
        diesel::delete(stored).execute(connection).await?;
    }
    let Some(trigger) = &job.trigger else {
        return Ok(());
    };
    diesel::insert_into(job_trigger::table)
        .values((
            job_trigger::id.eq(trigger.id.as_uuid()),
            job_trigger::organization_id.eq(organization.as_uuid()),
            job_trigger::job_id.eq(job.id.as_uuid()),
            job_trigger::category.eq(trigger.category.as_str()),
            job_trigger::instrument_id.eq(trigger.instrument.map(InstrumentId::as_uuid)),
            job_trigger::conditions.eq(Value::Object(trigger.conditions.clone())),
            job_trigger::source_job_id.eq(trigger.source_job().map(JobId::as_uuid)),
            job_trigger::set_by.eq(trigger.set_by.as_uuid()),
            job_trigger::armed_at.eq(trigger.armed_at),
            job_trigger::next_fire_at.eq(first_tick),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("job_trigger_instrument_id_fkey", || {
                    PortError::NotFound(Resource::Instrument)
                })
                .on_violation("job_trigger_source_job_id_fkey", || {
                    PortError::NotFound(Resource::SourceJob)
                })
        })?;
    Ok(())
}
