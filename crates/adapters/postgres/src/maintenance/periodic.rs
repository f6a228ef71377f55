//! Schedule of periodic tasks.

use async_trait::async_trait;
use diesel::{prelude::*, query_dsl::methods::FilterDsl};
use diesel_async::RunQueryDsl;
use labdata_ports::{
    PortError,
    maintenance::{PassClaim, PassResult, PeriodicTaskStore},
};
use time::OffsetDateTime;

use crate::{
    database::{errors::port_error, pool::Database},
    schema::periodic_task,
};

/// Periodic tasks in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgPeriodicTaskStore {
    database: Database,
}

impl PgPeriodicTaskStore {
    /// The store over this database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl PeriodicTaskStore for PgPeriodicTaskStore {
    async fn claim(
        &self,
        task: &str,
        now: OffsetDateTime,
        next_due_at: OffsetDateTime,
    ) -> Result<PassClaim, PortError> {
        let mut connection = self.database.connection().await?;
        let upsert = diesel::insert_into(periodic_task::table)
            .values((
                periodic_task::name.eq(task),
                periodic_task::due_at.eq(next_due_at),
            ))
            .on_conflict(periodic_task::name)
            .do_update()
            .set(periodic_task::due_at.eq(next_due_at));
        // The row's lock decides between servers: the second one finds the time moved, and changes nothing.
        let claimed = FilterDsl::filter(upsert, periodic_task::due_at.le(now))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        if claimed > 0 {
            return Ok(PassClaim::Granted);
        }
        let (due_at, last_success_at) = periodic_task::table
            .find(task)
            .select((periodic_task::due_at, periodic_task::succeeded_at))
            .first(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(PassClaim::NotDue {
            due_at,
            last_success_at,
        })
    }

    async fn record(&self, task: &str, result: &PassResult) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        let row = diesel::update(periodic_task::table.find(task));
        let recorded = match result {
            PassResult::Succeeded { at } => {
                row.set((
                    periodic_task::succeeded_at.eq(at),
                    periodic_task::error.eq(None::<&str>),
                ))
                .execute(&mut connection)
                .await
            }
            PassResult::Failed { at, error, due_at } => {
                row.set((
                    periodic_task::failed_at.eq(at),
                    periodic_task::error.eq(error),
                    periodic_task::due_at.eq(due_at),
                ))
                .execute(&mut connection)
                .await
            }
        };
        recorded.map_err(port_error)?;
        Ok(())
    }
}
