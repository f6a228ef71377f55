//! Runs in progress and used tokens.

use async_trait::async_trait;
use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Double, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    agent::{RunFacts, RunRefusal, Usage, UsageMonth},
    ids::{AgentRunId, OrganizationId, UserId},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AgentRunRepository, BeginRun, BeginRunError, DecideStart, RenewedRun},
    work::Wakeups,
};
use time::{Duration, OffsetDateTime, Time};

use crate::{
    agent::rows::number,
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        listen::{Channel, notify_of},
        pool::{Connection, Database},
    },
    schema::{agent_run, agent_usage},
};

/// Runs in progress in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgAgentRunRepository {
    database: Database,
}

impl PgAgentRunRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

fn start(month: UsageMonth) -> OffsetDateTime {
    OffsetDateTime::new_utc(month.first_day(), Time::MIDNIGHT)
}

/// Start of the expression of a lease's end. A time of the database, as those of servers differ.
const LEASE_BEGINS: &str = "clock_timestamp() + make_interval(secs => ";

/// Input, output and all tokens.
type Tokens = (i64, i64, i64);

fn usage_of(organization: OrganizationId, tokens: Tokens) -> Result<Usage, PortError> {
    let read = |column, tokens: i64| {
        let tokens =
            u64::try_from(tokens).map_err(|_| corrupt("agent_usage", column, organization));
        tokens.map(Some)
    };
    let (input, output, total) = tokens;
    Ok(Usage {
        input_tokens: read("input_tokens", input)?,
        output_tokens: read("output_tokens", output)?,
        total_tokens: read("total_tokens", total)?,
    })
}

async fn begin(
    connection: &mut Connection,
    run: BeginRun,
    decide: &DecideStart,
) -> Result<Result<(), RunRefusal>, Fault> {
    let organization = run.organization.as_uuid();
    let month = start(UsageMonth::of(run.now));
    // The row has to exist before it can be locked.
    diesel::insert_into(agent_usage::table)
        .values((
            agent_usage::organization_id.eq(organization),
            agent_usage::month.eq(month),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("agent_usage_organization_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    // The lock lets racing runs of an organization begin one after the other.
    let used: i64 = agent_usage::table
        .find((organization, month))
        .select(agent_usage::total_tokens)
        .for_update()
        .first(connection)
        .await?;
    // Before the count: runs of servers that died must not occupy places.
    diesel::delete(agent_run::table)
        .filter(agent_run::organization_id.eq(organization))
        .filter(agent_run::lease_until.le(sql::<Timestamptz>("clock_timestamp()")))
        .execute(connection)
        .await?;
    let in_progress: i64 = agent_run::table
        .filter(agent_run::organization_id.eq(organization))
        .count()
        .get_result(connection)
        .await?;
    let facts = RunFacts {
        in_progress: u32::try_from(in_progress).unwrap_or(u32::MAX),
        tokens_used: u64::try_from(used)
            .map_err(|_| corrupt("agent_usage", "total_tokens", run.organization))?,
    };
    if let Err(refusal) = decide(facts) {
        return Ok(Err(refusal));
    }
    diesel::insert_into(agent_run::table)
        .values((
            agent_run::id.eq(run.id.as_uuid()),
            agent_run::organization_id.eq(organization),
            agent_run::user_id.eq(run.user.as_uuid()),
            agent_run::lease_until.eq(sql::<Timestamptz>(LEASE_BEGINS)
                .bind::<Double, _>(run.lease.as_seconds_f64())
                .sql(")")),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("agent_run_user_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    Ok(Ok(()))
}

async fn cancel(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    id: AgentRunId,
) -> Result<(), Fault> {
    let found = diesel::update(agent_run::table)
        .filter(agent_run::id.eq(id.as_uuid()))
        .filter(agent_run::organization_id.eq(organization.as_uuid()))
        .filter(agent_run::user_id.eq(user.as_uuid()))
        // A run whose lease has expired has no server that could end it.
        .filter(agent_run::lease_until.gt(sql::<Timestamptz>("clock_timestamp()")))
        .set(agent_run::cancel_requested.eq(true))
        .execute(connection)
        .await?;
    if found == 0 {
        return Err(PortError::NotFound(Resource::AgentRun).into());
    }
    notify_of(connection, Channel::AgentRunCancelled, &[id.as_uuid()]).await
}

#[async_trait]
impl AgentRunRepository for PgAgentRunRepository {
    async fn begin(&self, run: BeginRun, decide: &DecideStart) -> Result<(), BeginRunError> {
        let begun = transacted!(
            self.database.of(run.organization),
            connection => begin(connection, run, decide)
        );
        Ok(begun.map_err(PortError::from)??)
    }

    async fn renew(
        &self,
        organization: OrganizationId,
        id: AgentRunId,
        lease: Duration,
    ) -> Result<RenewedRun, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let cancel_requested: Option<bool> = diesel::update(agent_run::table)
            .filter(agent_run::id.eq(id.as_uuid()))
            .filter(agent_run::organization_id.eq(organization.as_uuid()))
            .set(
                agent_run::lease_until.eq(sql::<Timestamptz>(LEASE_BEGINS)
                    .bind::<Double, _>(lease.as_seconds_f64())
                    .sql(")")),
            )
            // The renewal also brings the request, in case its notification was lost.
            .returning(agent_run::cancel_requested)
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(match cancel_requested {
            Some(false) => RenewedRun::Held,
            Some(true) => RenewedRun::CancelRequested,
            None => RenewedRun::Lost,
        })
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: AgentRunId,
    ) -> Result<(), PortError> {
        let cancelled = transacted!(
            self.database.of(organization),
            connection => cancel(connection, organization, user, id)
        );
        Ok(cancelled?)
    }

    async fn end(&self, organization: OrganizationId, id: AgentRunId) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::delete(agent_run::table)
            .filter(agent_run::id.eq(id.as_uuid()))
            .filter(agent_run::organization_id.eq(organization.as_uuid()))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(())
    }

    fn follow(&self, id: AgentRunId) -> Box<dyn Wakeups> {
        Box::new(self.database.follow(id.as_uuid()))
    }

    async fn add_usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
        usage: Usage,
    ) -> Result<Usage, PortError> {
        let usage = usage.with_total();
        let added = |tokens: Option<u64>| number(tokens.unwrap_or_default());
        let (input, output, total) = (
            added(usage.input_tokens)?,
            added(usage.output_tokens)?,
            added(usage.total_tokens)?,
        );
        let mut connection = self.database.of(organization).connection().await?;
        let tokens: Tokens = diesel::insert_into(agent_usage::table)
            .values((
                agent_usage::organization_id.eq(organization.as_uuid()),
                agent_usage::month.eq(start(month)),
                agent_usage::input_tokens.eq(input),
                agent_usage::output_tokens.eq(output),
                agent_usage::total_tokens.eq(total),
            ))
            .on_conflict((agent_usage::organization_id, agent_usage::month))
            .do_update()
            .set((
                // Added by the database: several runs of an organization may end at the same time.
                agent_usage::input_tokens.eq(agent_usage::input_tokens + input),
                agent_usage::output_tokens.eq(agent_usage::output_tokens + output),
                agent_usage::total_tokens.eq(agent_usage::total_tokens + total),
            ))
            .returning((
                agent_usage::input_tokens,
                agent_usage::output_tokens,
                agent_usage::total_tokens,
            ))
            .get_result(&mut connection)
            .await
            .map_err(|error| {
                let fault = Fault::from(error).of_commit();
                PortError::from(fault.on_violation("agent_usage_organization_fkey", || {
                    PortError::NotFound(Resource::Organization)
                }))
            })?;
        usage_of(organization, tokens)
    }

    async fn usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
    ) -> Result<Usage, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let tokens: Option<Tokens> = agent_usage::table
            .find((organization.as_uuid(), start(month)))
            .select((
                agent_usage::input_tokens,
                agent_usage::output_tokens,
                agent_usage::total_tokens,
            ))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        // A month in which nothing was used has no row.
        usage_of(organization, tokens.unwrap_or_default())
    }
}
